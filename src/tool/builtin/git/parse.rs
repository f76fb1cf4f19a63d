//! What git says, as data. Names are git's bytes, made text where they are not.

use serde_json::{Map, Value, json};

/// Fields of a commit, with a byte between them that no name or subject has.
pub(super) const LOG_FORMAT: &str = "%H%x1f%an%x1f%ae%x1f%aI%x1f%s";
/// Fields of a branch.
pub(super) const BRANCH_FORMAT: &str =
    "%(HEAD)%1f%(refname:short)%1f%(objectname:short)%1f%(upstream:short)";

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// `git status --porcelain=v2 --branch -z`.
pub(super) fn status(bytes: &[u8]) -> Value {
    let mut about = Map::new();
    let (mut ahead, mut behind) = (0, 0);
    let mut changes = Vec::new();
    let mut records = bytes.split(|byte| *byte == 0).filter(|record| !record.is_empty());
    while let Some(record) = records.next() {
        let record = text(record);
        let (kind, rest) = record.split_once(' ').unwrap_or((&record, ""));
        // The last field is the path, which may hold spaces.
        let field = |before: usize| rest.splitn(before + 1, ' ').nth(before).unwrap_or_default();
        let state = rest.split(' ').next().unwrap_or_default();
        match kind {
            "#" => match rest.split_once(' ') {
                Some(("branch.head", name)) => {
                    let name = (name != "(detached)").then(|| Value::from(name));
                    about.insert("branch".to_owned(), name.unwrap_or_default());
                }
                Some(("branch.upstream", name)) => {
                    about.insert("upstream".to_owned(), name.into());
                }
                Some(("branch.ab", counts)) => {
                    let mut counts = counts
                        .split(' ')
                        .map(|it| it.trim_start_matches(['+', '-']).parse().unwrap_or(0_u64));
                    (ahead, behind) = (counts.next().unwrap_or(0), counts.next().unwrap_or(0));
                }
                _ => {}
            },
            "1" => changes.push(change(state, field(7), None)),
            "2" => {
                let from = records.next().map(text);
                changes.push(change(state, field(8), from));
            }
            "u" => changes.push(change(state, field(9), None)),
            "?" => {
                changes.push(json!({ "path": rest, "index": "untracked", "worktree": "untracked" }))
            }
            _ => {}
        }
    }
    about.entry("branch").or_insert(Value::Null);
    about.entry("upstream").or_insert(Value::Null);
    about.insert("ahead".to_owned(), ahead.into());
    about.insert("behind".to_owned(), behind.into());
    about.insert("clean".to_owned(), changes.is_empty().into());
    about.insert("changes".to_owned(), changes.into());
    Value::Object(about)
}

fn change(state: &str, path: &str, from: Option<String>) -> Value {
    let mut letters = state.chars().map(word);
    let (index, worktree) = (letters.next(), letters.next());
    let mut value = json!({ "path": path, "index": index, "worktree": worktree });
    if let (Some(from), Some(value)) = (from, value.as_object_mut()) {
        value.insert("from".to_owned(), from.into());
    }
    value
}

fn word(letter: char) -> &'static str {
    match letter {
        '.' => "unchanged",
        'M' => "modified",
        'T' => "type changed",
        'A' => "added",
        'D' => "deleted",
        'R' => "renamed",
        'C' => "copied",
        'U' => "unmerged",
        _ => "other",
    }
}

/// `git log -z` with [`LOG_FORMAT`].
pub(super) fn log(bytes: &[u8]) -> Vec<Value> {
    let records = bytes.split(|byte| *byte == 0).filter(|record| !record.is_empty());
    let commit = |record: &[u8]| {
        let record = text(record);
        let mut fields = record.trim_end().split('\u{1f}');
        let mut next = || fields.next().unwrap_or_default().to_owned();
        json!({ "hash": next(), "author": next(), "email": next(), "date": next(), "subject": next() })
    };
    records.map(commit).collect()
}

/// `git branch --list` with [`BRANCH_FORMAT`].
pub(super) fn branches(bytes: &[u8]) -> Vec<Value> {
    let said = text(bytes);
    let branch = |line: &str| {
        let mut fields = line.split('\u{1f}').map(str::to_owned);
        let mut next = || fields.next().unwrap_or_default();
        let current = next() == "*";
        let (name, hash) = (next(), next());
        let upstream = Some(next()).filter(|name| !name.is_empty());
        json!({ "name": name, "current": current, "hash": hash, "upstream": upstream })
    };
    said.lines().filter(|line| !line.is_empty()).map(branch).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_read_whole() {
        let said = "# branch.oid abc\0# branch.head main\0# branch.upstream origin/main\0# branch.ab +2 -1\0\
            1 .M N... 100644 100644 100644 aaa bbb a b.txt\0\
            2 R. N... 100644 100644 100644 aaa bbb R100 new name\0old name\0\
            u UU N... 100644 100644 100644 100644 a b c both.txt\0? new.txt\0";
        let status = status(said.as_bytes());
        assert_eq!(
            (&status["branch"], &status["upstream"]),
            (&json!("main"), &json!("origin/main"))
        );
        assert_eq!(
            (&status["ahead"], &status["behind"], &status["clean"]),
            (&json!(2), &json!(1), &json!(false))
        );
        assert_eq!(
            status["changes"],
            json!([
                { "path": "a b.txt", "index": "unchanged", "worktree": "modified" },
                { "path": "new name", "index": "renamed", "worktree": "unchanged", "from": "old name" },
                { "path": "both.txt", "index": "unmerged", "worktree": "unmerged" },
                { "path": "new.txt", "index": "untracked", "worktree": "untracked" },
            ])
        );
        assert_eq!(super::status(b"# branch.head (detached)\0")["branch"], Value::Null);
        for odd in ["1", "2 R.", "u", "# branch.ab", "# branch.ab x", "\u{fffd}"] {
            let _ = super::status(odd.as_bytes());
        }
    }

    #[test]
    fn commits_and_branches_are_read() {
        let commits =
            log("h\u{1f}Ann\u{1f}a@b\u{1f}2026-01-01T00:00:00Z\u{1f}One | two\0".as_bytes());
        assert_eq!(
            (&commits[0]["author"], &commits[0]["subject"]),
            (&json!("Ann"), &json!("One | two"))
        );
        let said = branches(
            "*\u{1f}main\u{1f}abc\u{1f}origin/main\n \u{1f}side\u{1f}def\u{1f}\n".as_bytes(),
        );
        assert_eq!(
            (&said[0]["current"], &said[1]["name"], &said[1]["upstream"]),
            (&json!(true), &json!("side"), &Value::Null)
        );
    }
}
