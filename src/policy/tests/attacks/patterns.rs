//! Denies by pattern, and the spellings that could slip past them.

use runner_policy::decide::Code;

use super::{line, policy};

const CONTAINED: &str = r#"
policy: 1
name: contained
files: { read: ["**"], write: ["**"] }
commands:
  - { id: all, allow: "** ...", effects: any }
  - { id: known, allow: catalog, effects: any }
"#;

/// Every line is denied by the rule, and every control is not.
fn denied(rule: &str, lines: &[&str], controls: &[&str]) {
    let contained = policy(&[&format!("{CONTAINED}  - {rule}\n")]);
    let mut wrong = Vec::new();
    for (text, expected) in
        lines.iter().map(|t| (t, true)).chain(controls.iter().map(|t| (t, false)))
    {
        let decision = line(&contained, text);
        if (decision.code == Code::DeniedByRule) != expected {
            wrong.push(format!("{}: {text}: {}", decision.code.word(), decision.message));
        }
    }
    assert!(wrong.is_empty(), "{rule}\n{}", wrong.join("\n"));
}

#[test]
fn a_deny_holds_for_the_program_by_any_path() {
    denied(
        "{ id: never, deny: \"sort ...\" }",
        &[
            "/usr/bin/sort a",
            "./sort a",
            "x/../sort a",
            "nice /usr/bin/sort a",
            "/usr/bin/nice sort a",
            "/usr/bin/env sort a",
            "sh -c '/usr/bin/sort a'",
            "busybox sort a",
            "find . -exec sort {} ';'",
            "xargs sort",
        ],
        &["cat a", "/usr/bin/cat a", "/usr/bin/sort/x a"],
    );
}

#[test]
fn a_deny_of_options_knows_clusters_and_repeats() {
    denied(
        "{ id: never, deny: \"sort -ru ...\" }",
        &["sort -ru a", "sort -r -u a", "sort -ur a", "sort --unique -r a", "sort a -r --unique"],
        &["sort -r a", "sort -u a"],
    );
    denied(
        "{ id: never, deny: \"sort -o out ...\" }",
        &[
            "sort -o out a",
            "sort -oout a",
            "sort --output=out a",
            "sort -o x -o out a",
            "sort -o out -o x a",
            "/usr/bin/sort -k1 -oout a",
        ],
        &["sort -o x a", "sort a"],
    );
    denied(
        "{ id: never, deny: \"sort -o * ...\" }",
        &["sort -o out a", "sort -uoout", "find . -exec sort -o x{} a ';'"],
        &["sort a"],
    );
}

#[test]
fn a_deny_of_a_value_holds_where_the_value_is_not_known() {
    denied(
        "{ id: never, deny: \"sort -o xy ...\" }",
        &["find . -exec sort -o x{} a ';'", "xargs sort"],
        &["sort -o z a"],
    );
    denied("{ id: never, deny: \"cat secret ...\" }", &["xargs cat", "cat s*"], &["cat a"]);
}
