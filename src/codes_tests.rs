//! The list is complete, unique and well formed.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::*;

#[test]
fn words_are_unique_and_rows_are_whole() {
    let mut seen = BTreeSet::new();
    for row in TABLE {
        assert!(seen.insert(row.code), "{} stands twice", row.code);
        assert!(row.code.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{}", row.code);
        assert!(row.about.ends_with('.') && row.suggestion.ends_with('.'), "{}", row.code);
        assert!(!row.about.contains('|') && !row.suggestion.contains('|'), "{}", row.code);
    }
    assert!(TABLE.is_sorted_by_key(|row| row.group));
    for (at, (group, _)) in Group::ALL.iter().enumerate() {
        assert_eq!(*group as usize, at);
    }
}

#[test]
fn words_of_others_lead_to_ours() {
    for (other, ours) in ALIASES {
        assert!(TABLE.iter().all(|row| row.code != *other), "{other} is ours already");
        assert_eq!(find(&other.to_uppercase()).map(|row| row.code), Some(*ours), "{other}");
    }
    let limited = find("RATE_LIMIT_EXCEEDED").unwrap();
    assert_eq!((limited.group, limited.recoverable), (Group::Thrown, Recoverable::Yes));
    assert!(find("no_such_word").is_none());
}

#[test]
fn every_code_of_decisions_and_refusals_is_listed() {
    let decisions = runner_policy::Code::ALL.iter().map(|(_, word, _)| *word);
    let refusals = crate::broker::Code::ALL.iter().map(|(code, word, _)| {
        let recoverable = find(word).map(|row| row.recoverable == Recoverable::Yes);
        assert_eq!(recoverable, Some(code.can_pass()), "{word}");
        *word
    });
    for word in decisions.chain(refusals) {
        assert!(find(word).is_some_and(|row| row.code == word), "{word} is not in the list");
    }
}

/// Codes are literals: in `fn code`, beside an ending, in the runtime's errors. What the source spells is listed.
#[test]
fn every_code_in_the_source_is_listed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = BTreeSet::new();
    for path in files(&root.join("src"), "rs") {
        let text = fs::read_to_string(&path).unwrap();
        let text = text.split("\n#[cfg(test)]").next().unwrap_or_default();
        for body in text.split("fn code(&self) -> &'static str {").skip(1) {
            let end = body.find("\n    }").unwrap_or(body.len());
            found.extend(literals(&body[..end]));
        }
        for call in text.split("of_kind(").skip(1) {
            let end = call.find(')').unwrap_or(call.len());
            found.extend(literals(&call[..end]));
        }
    }
    for path in files(&root.join("images/runtime"), "mjs") {
        let tested = path.components().any(|part| part.as_os_str() == "tests");
        if tested || path.ends_with("zod.mjs") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        for call in text.split("RunnerError(").skip(1).chain(text.split("failure(").skip(1)) {
            // `RunnerError("code", …)`, `failure(thrown, "code")`: the message, if there is one, comes later.
            let words = call.split([')', ';']).next().unwrap_or_default();
            let end = words.match_indices(',').nth(1).map_or(words.len(), |(at, _)| at);
            found.extend(literals(&call[..end]));
        }
    }
    assert!(found.len() > 60, "the source is not read as it is written any more: {found:?}");
    let missing: Vec<_> = found.iter().filter(|word| find(word).is_none()).collect();
    assert!(missing.is_empty(), "not in the list: {missing:?}");
}

/// A finding is added to a report, or made, with its code as a literal. What the source spells is listed, and what is
/// listed the source spells.
#[test]
fn every_code_of_a_finding_is_listed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut added = BTreeSet::new();
    let mut spelled = BTreeSet::new();
    let calls = ["report.add(", "self.add(", "report.add_hidden(", "code: "];
    for folder in ["policy", "policy_files", "config", "tool", "compiler", "mcp"] {
        for path in files(&root.join(folder), "rs") {
            let part = |word| path.components().any(|part| part.as_os_str() == word);
            if part("tests") || part("benches") || part("builtin") {
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            let text = text.split("\n#[cfg(test)]").next().unwrap_or_default();
            for call in calls.iter().flat_map(|call| text.split(call).skip(1)) {
                let call = call.trim_start();
                let word = call.strip_prefix('"').and_then(|call| call.split('"').next());
                added.extend(word.map(str::to_owned));
            }
            spelled.extend(literals(text));
        }
    }
    let listed: BTreeSet<String> = FINDINGS.iter().map(|(code, _)| (*code).to_owned()).collect();
    assert_eq!(listed.len(), FINDINGS.len(), "one stands twice");
    assert!(FINDINGS.is_sorted_by_key(|(code, _)| *code));
    assert!(added.len() > 40, "the source is not read as it is written any more: {added:?}");
    let missing: Vec<_> = added.difference(&listed).collect();
    assert!(missing.is_empty(), "not in the list: {missing:?}");
    let stale: Vec<_> = listed.difference(&spelled).collect();
    assert!(stale.is_empty(), "nobody says: {stale:?}");
}

fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, ending));
        } else if path.extension().is_some_and(|it| it == ending) {
            found.push(path);
        }
    }
    found
}

/// The words in quotes that could be codes.
fn literals(text: &str) -> Vec<String> {
    let quoted = text.split('"').skip(1).step_by(2);
    let is_code = |word: &&str| {
        !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
    };
    quoted.filter(is_code).map(str::to_owned).collect()
}
