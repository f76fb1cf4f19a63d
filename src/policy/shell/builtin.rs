//! Names that are special to a shell: reserved words, builtins, and its own variables.
//!
//! Lists are those of bash 5.2. A reserved word counts only where nothing of it is quoted; a builtin
//! counts however it is quoted.

use super::script::{Part, SimpleCommand};
use super::stop::{Construct, Stop};

/// Builtins that also exist as programs, or that the guest knows: they change nothing unseen.
const ORDINARY: [&str; 11] =
    [":", "[", "cd", "echo", "export", "false", "kill", "printf", "pwd", "test", "true"];

/// Builtins that change the shell, ask it about itself, or run what is not written in the line.
#[rustfmt::skip]
const CHANGING: [&str; 47] = [
    ".", "alias", "bg", "bind", "break", "builtin", "caller", "compgen", "complete", "compopt", "continue",
    "declare", "dirs", "disown", "enable", "eval", "exec", "exit", "fc", "fg", "getopts", "help", "history",
    "jobs", "let", "local", "logout", "mapfile", "popd", "pushd", "read", "readarray", "readonly", "return",
    "shift", "shopt", "source", "suspend", "times", "trap", "typeset", "ulimit", "umask", "unalias", "unset",
    "wait", "command",
];

/// Variables that bash computes or keeps from being set.
#[rustfmt::skip]
const COMPUTED: [&str; 17] = [
    "UID", "EUID", "PPID", "SHELLOPTS", "RANDOM", "SRANDOM", "SECONDS", "EPOCHSECONDS", "EPOCHREALTIME",
    "LINENO", "DIRSTACK", "FUNCNAME", "GROUPS", "HISTCMD", "PIPESTATUS", "COMP_WORDBREAKS", "_",
];

/// Variables that change how later commands of the line are read, found or run.
#[rustfmt::skip]
const GOVERNING: [&str; 10] = [
    "IFS", "HOME", "PATH", "CDPATH", "PWD", "OLDPWD", "GLOBIGNORE", "GLOBSORT", "EXECIGNORE", "POSIXLY_CORRECT",
];

/// What a reserved word at the start of a command begins.
pub(super) fn reserved(word: &str) -> Option<Construct> {
    Some(match word {
        "{" => Construct::Group,
        "function" => Construct::Function,
        "[[" => Construct::DoubleBracket,
        "time" => Construct::Time,
        "coproc" => Construct::Coprocess,
        "if" | "for" | "while" | "until" | "case" | "select" => Construct::Compound,
        "then" | "else" | "elif" | "fi" | "do" | "done" | "esac" | "in" | "}" | "!" | "]]" => {
            Construct::Syntax
        }
        _ => return None,
    })
}

/// Refuses commands that only a shell can run; `command NAME` becomes `NAME`.
pub(super) fn check(command: &mut SimpleCommand) -> Result<(), Stop> {
    let wrappers = command
        .words
        .iter()
        .take_while(|word| word.literal() == Some("command"))
        .count()
        .min(command.words.len().saturating_sub(1));
    if wrappers > 0 && command.words[wrappers].may_start_with_dash() {
        let at = command.words[wrappers - 1].at.start as usize;
        return Err(Stop::new(at, Construct::WhichBuiltin, "command"));
    }
    command.words.drain(..wrappers);
    for (name, value) in &command.assignments {
        let alone = command.words.is_empty();
        let computed =
            COMPUTED.contains(&name.as_str()) || (name.starts_with("BASH") && name != "BASH_ENV");
        if computed || (alone && GOVERNING.contains(&name.as_str())) {
            let at = value.at.start as usize;
            return Err(Stop::new(at, Construct::ShellVariable, name.as_str()));
        }
    }
    let Some(first) = command.words.first() else {
        return Ok(());
    };
    let at = first.at.start as usize;
    let Some(name) = first.literal() else {
        return if first.is_glob() || first.parts.first() != Some(&Part::Home) {
            Err(Stop::new(at, Construct::CommandPattern, first.text("~")))
        } else {
            Ok(())
        };
    };
    match name {
        "type" | "hash" => Err(Stop::new(at, Construct::WhichBuiltin, name)),
        "set" => Err(Stop::new(at, Construct::SetBuiltin, name)),
        "export" => export(command),
        "cd" => change_folder(command),
        "printf" if sets_variable(command) => Err(Stop::new(at, Construct::Builtin, "printf %n")),
        "printf" | "test" | "[" if asks_shell(command, name) => {
            Err(Stop::new(at, Construct::Builtin, format!("{name} -v")))
        }
        _ if ORDINARY.contains(&name) => Ok(()),
        _ if CHANGING.contains(&name) => Err(Stop::new(at, Construct::Builtin, name)),
        _ => Ok(()),
    }
}

/// `printf -v NAME` sets, `test -v NAME` and `test -R NAME` ask for, a variable of the shell. NAME can be
/// `a[$(…)]`, in which bash expands everything. A pattern counts if a file could make it `-v`.
fn asks_shell(command: &SimpleCommand, name: &str) -> bool {
    let mut words = command.words.iter().skip(1);
    match name {
        "printf" => {
            words.next().and_then(|word| word.literal()).is_some_and(|word| word.starts_with("-v"))
        }
        _ => words.any(|word| word.may_be("-v") || word.may_be("-R")),
    }
}

/// `printf '%n' NAME` sets a variable of bash. A format that files decide could hold anything.
fn sets_variable(command: &SimpleCommand) -> bool {
    let dashes = command.words.get(1).and_then(|word| word.literal()) == Some("--");
    let Some(format) = command.words.get(1 + usize::from(dashes)) else { return false };
    format.literal().map_or(format.is_glob(), |format| {
        // What follows each `%`; of `%%` the second begins nothing.
        let mut pieces = format.split('%').skip(1);
        while let Some(piece) = pieces.next() {
            if piece.is_empty() {
                pieces.next();
                continue;
            }
            let size = |c: char| c.is_ascii_digit() || "#-+ '.*hlLjzt".contains(c);
            if piece.trim_start_matches(size).starts_with('n') {
                return true;
            }
        }
        false
    })
}

/// `cd` and `cd FOLDER`; options and `-` need what only a shell remembers.
fn change_folder(command: &SimpleCommand) -> Result<(), Stop> {
    match command.words.as_slice() {
        [_] => Ok(()),
        [_, folder] if !folder.may_start_with_dash() => Ok(()),
        [_, word, ..] => {
            let at = command.words[0].at.start as usize;
            Err(Stop::new(at, Construct::ChangeFolder, format!("cd {}", word.text("~"))))
        }
        [] => Ok(()),
    }
}

/// `export NAME=VALUE…` with nothing that shells expand differently there.
fn export(command: &SimpleCommand) -> Result<(), Stop> {
    if !command.assignments.is_empty() || command.words.len() < 2 {
        return Err(Stop::new(command.at.start as usize, Construct::Export, "export"));
    }
    for (index, word) in command.words.iter().enumerate().skip(1) {
        let stop = |construct| Stop::new(word.at.start as usize, construct, word.text("~"));
        let Some(Part::Text(text)) = word.parts.first() else {
            return Err(stop(Construct::Export));
        };
        let name = text.split_once('=').map_or("", |(name, _)| name);
        let is_name = !name.is_empty()
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        let braced = command.words[index - 1].at == word.at;
        if !is_name || word.is_glob() || braced {
            return Err(stop(Construct::Export));
        }
        if COMPUTED.contains(&name) || GOVERNING.contains(&name) || name.starts_with("BASH") {
            return Err(Stop::new(word.at.start as usize, Construct::ShellVariable, name));
        }
    }
    Ok(())
}
