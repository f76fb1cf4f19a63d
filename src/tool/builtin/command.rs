//! What the tools that run commands share: words that cannot be taken for options, and output within bounds.

use serde_json::{Value, json};

use super::problem::Problem;
use crate::broker::client::{Ran, Thrown};

/// Bytes of one stream that are shown: both, with every character escaped, are still within a result.
const SHOWN_MAX: usize = 256 << 10;

/// Output as text, with a visible mark where something was left out; and whether something was.
pub(super) fn shown(bytes: &[u8]) -> (String, bool) {
    if bytes.len() <= SHOWN_MAX {
        return (String::from_utf8_lossy(bytes).into_owned(), false);
    }
    let (head, tail) = (&bytes[..SHOWN_MAX / 2], &bytes[bytes.len() - SHOWN_MAX / 2..]);
    let left = bytes.len() - SHOWN_MAX;
    let [head, tail] = [head, tail].map(String::from_utf8_lossy);
    (format!("{head}\n[... {left} bytes left out ...]\n{tail}"), true)
}

/// How a command ended and what it said.
pub(super) fn ended(ran: &Ran) -> Value {
    let ((stdout, cut_out), (stderr, cut_err)) = (shown(&ran.stdout), shown(&ran.stderr));
    json!({
        "success": ran.exit_code == 0,
        "exitCode": ran.exit_code,
        "status": ran.status,
        "stdout": stdout,
        "stderr": stderr,
        "truncated": ran.truncated || cut_out || cut_err,
        "durationMs": ran.duration,
        "call": ran.call,
    })
}

/// A command that must go well: its output, or what it said.
pub(super) fn went_well(ran: Ran, what: &str) -> Result<Ran, Thrown> {
    if ran.exit_code == 0 {
        return Ok(ran);
    }
    let said = shown(&ran.stderr).0;
    let said = if said.trim().is_empty() { shown(&ran.stdout).0 } else { said };
    let message = format!("{what} ended with exit code {}: {}", ran.exit_code, said.trim());
    let thrown = Problem::Command.says(message).with("exitCode", ran.exit_code);
    Err(thrown.with("status", ran.status).with("call", ran.call))
}

/// A revision, branch or remote: never an option, and nothing that git reads as something else.
pub(super) fn revision(word: &str) -> Result<&str, Thrown> {
    let odd = |c: char| c.is_whitespace() || c.is_control() || "\\?*[".contains(c);
    if word.is_empty() || word.starts_with('-') || word.contains(odd) {
        let hint = "a branch, a tag, a commit, or two of them with `..` between";
        return Err(Problem::Arguments.says(format!("`{word}` is not a revision")).hint(hint));
    }
    Ok(word)
}

/// Paths as operands: they stand after `--`, and none is a pattern of git's.
pub(super) fn paths(paths: &[String]) -> Result<(), Thrown> {
    match paths.iter().find(|path| path.starts_with(':') || path.is_empty()) {
        None => Ok(()),
        Some(path) => {
            let hint = "name a file or a folder";
            Err(Problem::Arguments.says(format!("`{path}` is not a path")).hint(hint))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revision_is_never_an_option() {
        for word in ["main", "HEAD~1", "v1.0", "a..b", "HEAD^{tree}", "origin/main", "abc123"] {
            assert!(revision(word).is_ok(), "{word}");
        }
        for word in ["-x", "--output=x", "", "a b", "a\nb", "a*", "[a"] {
            assert!(revision(word).is_err(), "{word}");
        }
        assert!(paths(&["-rf".to_owned(), "a b".to_owned()]).is_ok());
        assert!(paths(&[":(top)x".to_owned()]).is_err());
    }

    #[test]
    fn output_is_cut_in_the_middle() {
        let (text, cut) = shown(&vec![b'x'; SHOWN_MAX + 10]);
        assert!(cut && text.contains("[... 10 bytes left out ...]"));
        assert_eq!(shown(b"a\xff"), ("a\u{fffd}".to_owned(), false));
    }
}
