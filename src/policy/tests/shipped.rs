//! The shipped policies load, and their examples and tests hold.
#![allow(clippy::disallowed_methods, reason = "a test reads the files it tests")]

use runner_policy::{Origin, PolicySet, Source, check, parse};

#[test]
fn shipped_policies_hold_what_they_promise() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../policies");
    let mut set = PolicySet::default();
    let mut texts = Vec::new();
    let mut findings = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let file = format!("policies/{}", path.file_name().unwrap().to_string_lossy());
        match parse(Source { file: &file, text: &text, origin: Origin::Shipped }) {
            Ok(policy) => {
                texts.push((policy.name.clone(), text));
                set.add(policy).unwrap();
            }
            Err(found) => findings.extend(found),
        }
    }
    let now = "2026-06-01T00:00:00Z".parse().unwrap();
    let mut ran = 0;
    for (name, text) in &texts {
        match set.effective(name) {
            Ok(policy) => {
                let checked = check::check(&policy, text, now);
                ran += checked.ran;
                findings.extend(checked.findings);
            }
            Err(found) => findings.extend(found),
        }
    }
    let shown: Vec<String> = findings.iter().map(ToString::to_string).collect();
    assert!(shown.is_empty(), "{} of {ran} failed:\n{}", shown.len(), shown.join("\n"));
}
