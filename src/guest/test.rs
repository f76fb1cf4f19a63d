//! The `test` builtin: the unary and binary forms that lines use, with `!`, `-a`, `-o` and brackets.

use runner_wire::Bytes;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

/// Deeper nesting than this is an error, not a stack overflow.
const DEPTH_MAX: u32 = 64;

/// 0 true, 1 false, 2 not understood.
pub fn status(words: &[Bytes]) -> u8 {
    let words: Vec<&[u8]> = words.iter().map(|word| &word.0[..]).collect();
    match evaluate(&words) {
        Some(true) => 0,
        Some(false) => 1,
        None => 2,
    }
}

/// The rules for up to four words are fixed by their number, so that `test "$x" = !` is safe.
fn evaluate(words: &[&[u8]]) -> Option<bool> {
    match words {
        [] => Some(false),
        [word] => Some(!word.is_empty()),
        [b"!", word] => Some(word.is_empty()),
        [operator, word] => unary(operator, word),
        [left, operator, right] if is_binary(operator) => binary(left, operator, right),
        [b"!", rest @ ..] if rest.len() < 4 => evaluate(rest).map(|result| !result),
        [b"(", word, b")"] => Some(!word.is_empty()),
        _ => {
            let mut parser = Parser { words, at: 0 };
            let result = parser.any(0)?;
            (parser.at == words.len()).then_some(result)
        }
    }
}

struct Parser<'a> {
    words: &'a [&'a [u8]],
    at: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<&'a [u8]> {
        self.words.get(self.at).copied()
    }

    fn next(&mut self) -> Option<&'a [u8]> {
        let word = self.peek()?;
        self.at += 1;
        Some(word)
    }

    fn any(&mut self, depth: u32) -> Option<bool> {
        let mut result = self.all(depth)?;
        while self.peek() == Some(b"-o") {
            self.at += 1;
            result |= self.all(depth)?;
        }
        Some(result)
    }

    fn all(&mut self, depth: u32) -> Option<bool> {
        let mut result = self.one(depth)?;
        while self.peek() == Some(b"-a") {
            self.at += 1;
            result &= self.one(depth)?;
        }
        Some(result)
    }

    fn one(&mut self, depth: u32) -> Option<bool> {
        if depth > DEPTH_MAX {
            return None;
        }
        let word = self.next()?;
        if let (Some(operator), Some(right)) = (self.peek(), self.words.get(self.at + 1))
            && is_binary(operator)
        {
            self.at += 2;
            return binary(word, operator, right);
        }
        match word {
            b"!" => self.one(depth + 1).map(|result| !result),
            b"(" => {
                let result = self.any(depth + 1)?;
                (self.next()? == b")").then_some(result)
            }
            [b'-', _] if self.peek().is_some() => {
                let operand = self.next()?;
                unary(word, operand)
            }
            _ => Some(!word.is_empty()),
        }
    }
}

fn is_binary(operator: &[u8]) -> bool {
    matches!(
        operator,
        b"=" | b"=="
            | b"!="
            | b"-eq"
            | b"-ne"
            | b"-lt"
            | b"-le"
            | b"-gt"
            | b"-ge"
            | b"-nt"
            | b"-ot"
            | b"-ef"
    )
}

fn binary(left: &[u8], operator: &[u8], right: &[u8]) -> Option<bool> {
    let number = |text: &[u8]| std::str::from_utf8(text).ok()?.trim().parse::<i64>().ok();
    let modified = |path: &[u8]| metadata(path).map(|meta| (meta.mtime(), meta.mtime_nsec()));
    Some(match operator {
        b"=" | b"==" => left == right,
        b"!=" => left != right,
        b"-eq" => number(left)? == number(right)?,
        b"-ne" => number(left)? != number(right)?,
        b"-lt" => number(left)? < number(right)?,
        b"-le" => number(left)? <= number(right)?,
        b"-gt" => number(left)? > number(right)?,
        b"-ge" => number(left)? >= number(right)?,
        b"-nt" => modified(left) > modified(right),
        b"-ot" => modified(left) < modified(right),
        b"-ef" => metadata(left)
            .zip(metadata(right))
            .is_some_and(|(a, b)| (a.dev(), a.ino()) == (b.dev(), b.ino())),
        _ => return None,
    })
}

fn metadata(path: &[u8]) -> Option<std::fs::Metadata> {
    std::fs::metadata(as_path(path)).ok()
}

fn as_path(path: &[u8]) -> &Path {
    use std::os::unix::ffi::OsStrExt;
    Path::new(std::ffi::OsStr::from_bytes(path))
}

fn unary(operator: &[u8], word: &[u8]) -> Option<bool> {
    let meta = || metadata(word);
    let kind =
        |check: fn(&std::fs::FileType) -> bool| meta().is_some_and(|meta| check(&meta.file_type()));
    Some(match operator {
        b"-n" => !word.is_empty(),
        b"-z" => word.is_empty(),
        b"-e" => meta().is_some(),
        b"-f" => kind(std::fs::FileType::is_file),
        b"-d" => kind(std::fs::FileType::is_dir),
        b"-p" => kind(std::fs::FileType::is_fifo),
        b"-S" => kind(std::fs::FileType::is_socket),
        b"-b" => kind(std::fs::FileType::is_block_device),
        b"-c" => kind(std::fs::FileType::is_char_device),
        b"-h" | b"-L" => as_path(word).symlink_metadata().is_ok_and(|meta| meta.is_symlink()),
        b"-s" => meta().is_some_and(|meta| meta.len() > 0),
        b"-r" => crate::sys::may(as_path(word), crate::sys::Permission::Read),
        b"-w" => crate::sys::may(as_path(word), crate::sys::Permission::Write),
        b"-x" => crate::sys::may(as_path(word), crate::sys::Permission::Execute),
        // The streams of a sandbox are pipes.
        b"-t" => false,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_have_the_status_of_sh() {
        for (line, expected) in [
            ("", 1),
            ("x", 0),
            ("!", 0),
            ("! x", 1),
            ("-n x", 0),
            ("-z x", 1),
            ("-d /proc", 0),
            ("-f /proc", 1),
            ("-e /nosuch", 1),
            ("a = a", 0),
            ("! = !", 0),
            ("( = (", 0),
            ("a != a", 1),
            ("! a = a", 1),
            ("2 -gt 1", 0),
            ("x -gt 1", 2),
            ("-q x", 2),
            ("a = a -a b = b", 0),
            ("a = b -o -d /proc", 0),
            ("! ( a = b )", 0),
            ("( a = b -o x ) -a y", 0),
            ("a b c d", 2),
        ] {
            let words: Vec<Bytes> = line.split_whitespace().map(Bytes::from).collect();
            assert_eq!(status(&words), expected, "{line}");
        }
    }
}
