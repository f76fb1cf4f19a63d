//! The list is unique and well formed, and holds nothing that nothing raises.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::*;

#[test]
fn words_are_unique_and_rows_are_whole() {
    let mut seen = BTreeSet::new();
    for row in TABLE {
        let word = row.code.as_str();
        assert!(seen.insert(word), "{word} stands twice");
        assert!(word.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'), "{word}");
        assert!(row.about.ends_with('.') && row.suggestion.ends_with('.'), "{word}");
        assert!(!row.about.contains('|') && !row.suggestion.contains('|'), "{word}");
        assert_eq!((row.code.row().code, Code::parse(word)), (row.code, Some(row.code)));
    }
    assert!(TABLE.is_sorted_by_key(|row| row.group));
    for (at, (group, _)) in Group::ALL.iter().enumerate() {
        assert_eq!(*group as usize, at);
    }
}

#[test]
fn a_code_is_named_as_its_word_and_read_back_from_it() {
    for row in TABLE {
        let named: String = row.code.as_str().split('_').collect();
        assert_eq!(format!("{:?}", row.code).to_lowercase(), named);
        let json = serde_json::to_string(&row.code).unwrap();
        assert_eq!(json, format!("\"{}\"", row.code));
        assert_eq!(serde_json::from_str::<Code>(&json).unwrap(), row.code);
    }
    assert!(serde_json::from_str::<Code>("\"NOT_FOUND\"").is_err());
}

#[test]
fn words_of_others_lead_to_ours() {
    for (other, ours) in ALIASES {
        assert!(Code::parse(other).is_none(), "{other} is ours already");
        assert_eq!(find(&other.to_uppercase()), Some(*ours), "{other}");
    }
    let limited = find("RATE_LIMIT_EXCEEDED").unwrap().row();
    assert_eq!((limited.group, limited.recoverable), (Group::Thrown, Recoverable::Yes));
    assert!(find("no_such_word").is_none());
}

#[test]
fn a_decisions_code_keeps_its_word() {
    for (code, word, _) in runner_policy::Code::ALL {
        assert_eq!(Code::from(*code), *word);
    }
}

/// What the runtime of tools says of itself, it says with codes of the list.
#[test]
fn every_code_of_the_runtime_is_listed() {
    let found = said_by_the_runtime();
    assert!(found.len() > 10, "the runtime is not read as it is written any more: {found:?}");
    let missing: Vec<_> = found.iter().filter(|word| Code::parse(word).is_none()).collect();
    assert!(missing.is_empty(), "not in the list: {missing:?}");
}

/// A code that nothing raises is removed. Tools throw those of the last group themselves.
#[test]
fn every_code_is_raised() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut raised = said_by_the_runtime();
    for path in files(&root, "rs") {
        let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
        if name.ends_with("_tests") || lies_in(&path, "tests") {
            continue;
        }
        let below = path.strip_prefix(&root).unwrap();
        if below == Path::new("codes.rs") || below.starts_with("policy") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let text = text.split("\n#[cfg(test)]").next().unwrap_or_default();
        let ours = if below.starts_with("codes") { "Self::" } else { "Code::" };
        let named = text.split(ours).skip(1).map(|rest| {
            rest.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default()
        });
        let named: BTreeSet<&str> = named.collect();
        let codes = TABLE.iter().map(|row| row.code);
        let here = codes.filter(|code| named.contains(format!("{code:?}").as_str()));
        raised.extend(here.map(|code| code.to_string()));
    }
    let thrown = |code: Code| code.row().group == Group::Thrown;
    let codes = TABLE.iter().map(|row| row.code);
    let stale: Vec<_> = codes.filter(|it| !thrown(*it) && !raised.contains(it.as_str())).collect();
    assert!(stale.is_empty(), "nothing raises: {stale:?}");
}

fn said_by_the_runtime() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for path in files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("images/runtime"), "mjs") {
        if lies_in(&path, "tests") || path.ends_with("zod.mjs") {
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
    found
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
            if ["tests", "benches", "builtin"].iter().any(|folder| lies_in(&path, folder)) {
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

/// Whether a folder of this name is above a file in the repository; where the repository itself lies does not count.
fn lies_in(path: &Path, folder: &str) -> bool {
    let below = path.strip_prefix(env!("CARGO_MANIFEST_DIR")).unwrap();
    below.iter().any(|part| part == folder)
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
