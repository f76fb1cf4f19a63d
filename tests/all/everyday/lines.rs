//! Lines as agents write them.

use super::Caller;
use crate::support::{Ran, needs_engine};

#[test]
fn a_line_with_a_folder_a_variable_a_redirection_and_a_pipe() {
    needs_engine();
    let caller = Caller::ourselves("/var/tmp");
    let project = caller.project(
        "lines",
        &[
            (
                "web/package.json",
                r#"{"name": "web", "version": "1.0.0", "scripts": {"test": "node show.js"}}"#,
            ),
            (
                "web/show.js",
                "for (let i = 0; i < 20; i++) console.error(i + ' ' + process.env.FOO);",
            ),
            (".runner/.keep", ""),
        ],
    );
    let line = "cd web && FOO=1 npm test 2>&1 | tail -5";
    for args in [
        &["exec", "--policy", "develop", "--shell", line][..],
        &["exec", "--policy", "develop", "--", "sh", "-c", line],
        &["exec", "--policy", "develop", "--", "bash", "-lc", line],
    ] {
        assert_eq!(caller.works(&project, args), "15 1\n16 1\n17 1\n18 1\n19 1\n", "{args:?}");
    }
}

#[test]
fn lists_globs_tests_and_redirections() {
    needs_engine();
    let caller = Caller::ourselves("/var/tmp");
    let project = caller.project(
        "lines",
        &[("a.txt", "one\n"), ("b.txt", "two\n"), ("src/main.rs", ""), (".runner/.keep", "")],
    );
    let line = |policy: &str, text: &str| -> Ran {
        caller.run(&project, &["exec", "--policy", policy, "--shell", text])
    };
    let read = |text: &str| {
        let ran = line("readonly", text);
        assert_eq!(ran.code, Some(0), "{text}: {}", ran.err);
        ran.out
    };
    assert_eq!(read("cat *.txt | sort -r"), "two\none\n");
    assert_eq!(
        read("cd src && find . -type f | head -1 && test -f ../b.txt && sort ../a.txt ../b.txt"),
        "./main.rs\none\ntwo\n"
    );
    assert_eq!(read("test -f a.txt && echo yes || echo no"), "yes\n");
    assert_eq!(read("[ -f c.txt ] || echo none; false; true"), "none\n");
    assert_eq!(read("cat nosuch 2>/dev/null || cat a.txt"), "one\n");
    assert_eq!(read("cat <<'END' | wc -l\na\nb\nEND"), "2\n");
    assert_eq!(line("readonly", "true && false").code, Some(1));
    // Writing where nothing grants it is denied before anything runs.
    let denied = line("readonly", "echo x > c.txt");
    assert_eq!(denied.code, Some(126), "{}", denied.err);
    assert!(!project.join("c.txt").exists());
    // A form that is not read is code of `sh`.
    let denied = line("readonly", "f() { echo x; }; f");
    assert_eq!(denied.code, Some(126), "{}", denied.err);
}

#[test]
fn variables_conditions_and_loops() {
    needs_engine();
    let caller = Caller::ourselves("/var/tmp");
    let project = caller.project(
        "loops",
        &[
            ("a.txt", "one\n"),
            ("b.txt", "two\n"),
            (".env", "SECRET=canary\n"),
            ("sub/-rf", "dash\n"),
            (".runner/.keep", ""),
        ],
    );
    let read =
        |text: &str| caller.run(&project, &["exec", "--policy", "readonly", "--shell", text]);
    for (text, out) in [
        ("for f in *.txt; do cat \"$f\"; done", "one\ntwo\n"),
        ("x=a.txt; if [ -f $x ]; then cat $x; else echo none; fi", "one\n"),
        ("cat $(ls *.txt) | while read -r x; do echo \"<$x>\"; done", "<one>\n<two>\n"),
        ("cd sub && echo \"${PWD}\" | grep -c sub", "1\n"),
        // A denied file reads as empty, however it is named.
        ("for f in .* *; do if [ -f \"$f\" ]; then cat \"$f\"; fi; done", "one\ntwo\n"),
    ] {
        let ran = read(text);
        assert_eq!((ran.code, ran.out.as_str()), (Some(0), out), "{text}: {}", ran.err);
    }
    // A word that could be an option, or leads out, ends the line before a program gets it.
    for text in [
        "cd sub && for f in *; do cat \"$f\"; done; echo after",
        "x=$(echo /etc/passwd); cat \"$x\"; echo after",
        "x=$(echo -n); sort $x a.txt; echo after",
    ] {
        let ran = read(text);
        assert_eq!((ran.code, ran.out.as_str()), (Some(126), ""), "{text}: {}", ran.err);
        assert!(ran.err.contains("the line ended at the word"), "{text}: {}", ran.err);
    }
    for text in
        ["x=.env; cat $x", "cmd=cat; $cmd .env", "$(echo rm) -rf sub", "x=-delete; find . $x"]
    {
        let ran = read(text);
        assert_eq!((ran.code, ran.out.as_str()), (Some(126), ""), "{text}: {}", ran.err);
    }
    assert!(project.join("sub/-rf").exists());
}

/// `${x-y}` and `${x:-y}` under a policy that lets nothing run as code: each line in a real bash too, several times with
/// other values.
#[test]
fn defaults_of_variables_are_what_they_are_in_bash() {
    needs_engine();
    let caller = Caller::ourselves("/var/tmp");
    let project = caller.project(
        "defaults",
        &[("a.txt", "one\n"), ("b.txt", "two\n"), ("empty", ""), (".runner/.keep", "")],
    );
    for text in [
        "echo ${x:-a} ${x-b} \"${x:-c}\" \"${x-d}\"",
        "cat ${f:-a.txt}; f=b.txt; cat ${f:-a.txt}",
        "echo \"[${x:-}]\" .${x-}. end",
        "printf '<%s>' ${v:-a/b.c,d:e@f%g+h-i} \"${v-1}\"",
        "set -u; echo ${x:-unset} \"${x-unset}\"",
        "for f in a.txt b.txt; do cat \"${f:-empty}\"; done",
        "n=$(wc -l < empty); echo \"${n:-none} lines\"; e=$(cat empty); echo ${e:-nothing} \"${e-something}\"",
        "if [ \"${MODE:-fast}\" = fast ]; then echo quick; else echo slow; fi",
        "case ${x:-b} in a) echo a;; b) echo b;; esac",
        "while read -r l; do echo \"${l:-blank}\"; done < a.txt",
        "cat <<E\n${x:-here} ${x-there}\nE",
        "x='p q'; printf '<%s>' ${x:-r} \"${x:-r}\"",
        "[[ ${x:-1} == 1 ]] && echo equal || echo other",
    ] {
        for before in ["", "x=; v=; f=; ", "x='*.txt two  words'; "] {
            let text = format!("{before}{text}");
            let ran = caller.run(&project, &["exec", "--policy", "readonly", "--shell", &text]);
            let mut bash = std::process::Command::new("bash");
            bash.args(["-c", &text]).current_dir(&project).env_clear().env("PATH", "/usr/bin:/bin");
            let bash = Ran::from(bash.output().unwrap());
            assert_eq!((ran.code, &ran.out), (bash.code, &bash.out), "{text}: {}", ran.err);
        }
    }
}
