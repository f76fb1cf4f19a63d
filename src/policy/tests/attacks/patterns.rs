//! Denies by pattern, and the spellings that could slip past them.

use runner_policy::decide::Code;

use runner_policy::{What, parse};

use super::{ask, line, policy, refused};

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

const PROGRAMS: &str = r#"
policy: 1
name: programs
files: { read: ["**"], write: ["**"] }
commands:
  - { id: own, allow: "./** ...", effects: [code] }
"#;

#[test]
fn a_program_of_the_workspace_is_one_whose_path_lies_in_it() {
    refused(
        &policy(&[PROGRAMS]),
        &[
            "run",
            "/run",
            "/w2/run",
            "../run",
            "../w2/run",
            "./../run",
            "a/../../run",
            "cd .. && ./run",
            "cd .. && w2/run",
            "cd /tmp && ./run",
            "cd a/.. || cd /; ./run",
            "~/run",
            "cd && ./run",
            "env -C / ./run",
            "/proc/self/cwd/run",
            "/proc/self/root/w/run",
            "/w",
            ".",
            "./",
            "/w/",
            "a/..",
            "xargs",
            "*/run",
            // What such a program does besides is granted by nothing.
            "./run > ../x",
            "X=1 ./run",
            "LD_PRELOAD=./x.so ls",
            "./run; ls",
        ],
        &[
            "./run",
            "a/run x y",
            "./a/../b/.c/run",
            "/w/run",
            "/w/a/b/run --all",
            "cd a && ../run",
            "cd .. && w/run",
            "cd /tmp && /w/run",
            "timeout 5 ./run",
            "env -C a ./run",
            "xargs ./run",
            "nice ./run",
        ],
    );
}

#[test]
fn a_folder_of_programs_is_a_pattern_of_paths() {
    let text = PROGRAMS.replace("./** ...", "{./**/node_modules/.bin/*,./**/.venv/bin/py*} ...");
    let own = policy(&[&text]);
    refused(
        &own,
        &[
            "./run",
            "node_modules/.bin/a/b",
            "node_modules/x/.bin/a",
            ".venv/bin/sh",
            "/node_modules/.bin/a",
            "../node_modules/.bin/a",
            "cd node_modules/.bin && ../../a",
            "tsc",
        ],
        &[
            "node_modules/.bin/tsc --noEmit",
            "./packages/a/node_modules/.bin/tsc",
            "cd packages/a && node_modules/.bin/tsc",
            "cd node_modules/.bin && ./tsc",
            ".venv/bin/pytest -q",
            "/w/.venv/bin/python x.py",
        ],
    );
    // The workspace is where the question is asked, not where the command runs.
    let words = ["./run".to_owned()];
    let everywhere = policy(&[PROGRAMS]);
    for (cwd, allowed) in [("/w", true), ("/w/a/b", true), ("/", false), ("/wx", false)] {
        let decision = ask(&everywhere, cwd, What::Argv(&words));
        assert_eq!(decision.decision == runner_policy::Verdict::Allow, allowed, "{cwd}");
    }
    for pattern in ["./**/ ...", "./**/../x ...", "./**/[ ..."] {
        let text = PROGRAMS.replace("./** ...", pattern);
        let source = runner_policy::Source {
            file: "t.yml",
            text: &text,
            origin: runner_policy::Origin::Managed,
        };
        assert!(parse(source).is_err(), "{pattern}");
    }
}

#[test]
fn a_deny_of_programs_in_the_workspace_holds_for_every_way_there() {
    denied(
        "{ id: never, deny: \"./**/bin/x ...\" }",
        &[
            "bin/x",
            "./a/bin/x 1",
            "a/../bin/x",
            "cd bin && ./x",
            "timeout 5 /w/bin/x",
            "xargs bin/x",
        ],
        &["bin/y", "/bin/x", "x", "cd bin && x"],
    );
}
