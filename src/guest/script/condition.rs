//! `[[ … ]]`, `case`, and `command -v`.

use super::{Leave, Shell, broken};
use crate::{program, sys, test};
use runner_glob::fits;
use runner_wire::{Block, Bytes, Expand, Step, Why};
use std::ffi::OsStr;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// What bash answers to `command -v` by itself, and what the guest starts as no program.
#[rustfmt::skip]
pub(super) const BUILTINS: [&str; 61] = [
    ".", ":", "[", "alias", "bg", "bind", "break", "builtin", "caller", "cd", "command", "compgen", "complete",
    "compopt", "continue", "declare", "dirs", "disown", "echo", "enable", "eval", "exec", "exit", "export", "false",
    "fc", "fg", "getopts", "hash", "help", "history", "jobs", "kill", "let", "local", "logout", "mapfile", "popd",
    "printf", "pushd", "pwd", "read", "readarray", "readonly", "return", "set", "shift", "shopt", "source", "suspend",
    "test", "times", "trap", "true", "type", "typeset", "ulimit", "umask", "unalias", "unset", "wait",
];

#[rustfmt::skip]
const KEYWORDS: [&str; 22] = [
    "!", "[[", "]]", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if", "in",
    "select", "then", "time", "until", "while", "{", "}",
];

/// Builtins that are programs as well, with the same meaning.
const PROGRAMS: [&str; 8] = ["[", "echo", "false", "kill", "printf", "pwd", "test", "true"];

/// Whether only a shell does what this names.
pub(super) fn is_builtin(name: &[u8]) -> bool {
    let is = |known: &str| known.as_bytes() == name;
    BUILTINS.iter().any(|known| is(known)) && !PROGRAMS.iter().any(|known| is(known))
}

impl Shell {
    /// The status of `[[ … ]]`.
    pub(super) fn condition(&mut self, steps: &[Step]) -> Result<u8, Leave> {
        let mut stack: Vec<bool> = Vec::new();
        for step in steps {
            let result = match step {
                Step::Unary(operator, word) => {
                    let word = Bytes(self.text(word)?);
                    test::status(&[operator.clone(), word]) == 0
                }
                Step::Binary(left, operator, right) => {
                    let (left, right) = (self.text(left)?, self.text(right)?);
                    let numeric = !matches!(&operator.0[..], b"-nt" | b"-ot" | b"-ef");
                    let words = if numeric {
                        [number(&left)?, operator.clone(), number(&right)?]
                    } else {
                        [Bytes(left), operator.clone(), Bytes(right)]
                    };
                    test::status(&words) == 0
                }
                Step::Match(word, pattern) => {
                    let word = self.text(word)?;
                    fits(&self.pattern(pattern)?, &word)
                }
                Step::Not => !stack.pop().unwrap_or_default(),
                Step::And | Step::Or => {
                    let right = stack.pop().unwrap_or_default();
                    let left = stack.pop().unwrap_or_default();
                    if *step == Step::And { left && right } else { left || right }
                }
            };
            stack.push(result);
        }
        Ok(u8::from(stack.pop() != Some(true)))
    }

    /// The block of the first arm that matches.
    pub(super) fn arm(
        &mut self,
        word: &Expand,
        arms: &[(Vec<Expand>, Block)],
    ) -> Result<Option<Block>, Leave> {
        let word = self.text(word)?;
        for (patterns, block) in arms {
            for pattern in patterns {
                if fits(&self.pattern(pattern)?, &word) {
                    return Ok(Some(*block));
                }
            }
        }
        Ok(None)
    }

    /// `command -v`
    pub(super) fn which(&self, names: &[Bytes]) -> u8 {
        let mut status = 1;
        for name in names {
            let is = |known: &str| known.as_bytes() == name.0;
            let own = BUILTINS.iter().chain(&KEYWORDS).any(|known| is(known));
            let found = if own {
                Some(name.0.clone())
            } else {
                let executable = |path: &Vec<u8>| {
                    let path = Path::new(OsStr::from_bytes(path));
                    path.is_file() && sys::may(path, sys::Permission::Execute)
                };
                program::candidates(None, name, &self.env).into_iter().find(executable)
            };
            if let Some(found) = found {
                status = 0;
                let _ = io::stdout().write_all(&[&found[..], b"\n"].concat());
                let _ = io::stdout().flush();
            }
        }
        status
    }
}

/// A number as every shell reads it; nothing is as good as zero.
fn number(text: &[u8]) -> Result<Bytes, Leave> {
    let trimmed = text.trim_ascii();
    let digits = trimmed.strip_prefix(b"-").or(trimmed.strip_prefix(b"+")).unwrap_or(trimmed);
    let octal = digits.len() > 1 && digits.starts_with(b"0");
    if trimmed.is_empty() {
        return Ok(Bytes::from("0"));
    }
    if digits.is_empty() || digits.len() > 18 || octal || !digits.iter().all(u8::is_ascii_digit) {
        return Err(broken(text, Why::Number));
    }
    Ok(Bytes(trimmed.to_vec()))
}
