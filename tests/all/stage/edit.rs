//! The policy `edit`: an agent changes sources and commits, and nothing that the host runs changes.

use std::fs;
use std::path::Path;
use std::process::Command;

use runner::workspace::protected::table::{Class, TABLE};
use serde_json::{Value, json};

use super::harness::{Project, copy, why_of};
use crate::support::Ran;

fn shell(project: &Project, line: &str) -> Value {
    project.home.run(["exec", "--json", "--policy", "edit", "--shell", line]).json()
}

fn git(folder: &Path, words: &[&str]) -> String {
    let mut command = Command::new("git");
    command.args(["-c", "safe.directory=*"]).args(words).current_dir(folder);
    let done = command.env("GIT_CONFIG_GLOBAL", "/dev/null").output().unwrap();
    assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

fn sorted(text: &str) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines.join("\n")
}

/// What git tells of a repository that does not depend on the time.
fn told(folder: &Path) -> [String; 6] {
    git(folder, &["fsck", "--strict"]);
    [
        sorted(&git(folder, &["log", "--branches", "--tags", "--format=%D %s %T"])),
        git(folder, &["status", "--porcelain"]),
        git(folder, &["branch", "--list"]),
        git(folder, &["tag", "--list"]),
        git(folder, &["stash", "list", "--format=%gd"]),
        fs::read_to_string(folder.join("src/a")).unwrap(),
    ]
}

/// Each line is a call of its own, and what is on the host afterwards is what bash makes of the same lines.
#[test]
fn git_works_as_it_does_without_us() {
    let project = Project::new();
    let config = "[user]\n\tname = Ann\n\temail = ann@example.org\n";
    fs::write(project.home.path(".gitconfig"), config).unwrap();
    for name in ["b", "c"] {
        project.write(&format!("src/{name}"), "1\n2\n3\n4\n5\n");
    }
    project.home.git(&["add", "-A"]);
    project.home.git(&["commit", "-q", "-m", "more"]);
    let aside = project.home.path("aside");
    copy(&project.file(""), &aside);
    for line in [
        "sed -i s/original/changed/ src/a && git add -A && git commit -q -m second",
        "cat > src/new.ts <<'E'\nexport const x = 1\nE",
        "git add src/new.ts && git commit -q -m third && git tag v1",
        "git switch -q -c topic HEAD~1 && sed -i s/5/five/ src/b && git commit -q -am topic",
        "git switch -q main && git merge -q --no-edit topic",
        "git switch -q -c other v1 && sed -i s/1/one/ src/c && git commit -q -am other",
        "git rebase -q main",
        "git switch -q main && git cherry-pick -x other",
        "git revert --no-edit HEAD",
        "echo wip >> src/a && git stash -q",
        "git stash pop -q && git restore src/a",
        "echo again >> src/a && git stash push -q -m kept",
        "git mv src/c src/d && git commit -q -m moved",
        "git rm -q src/new.ts && git commit -q --amend --no-edit",
        "git branch -D topic && git checkout -q -b last && git reset -q --hard HEAD~1",
        "git worktree add -q sub/tree main",
        "cd sub/tree && echo tree >> src/a && git commit -q -am tree",
        "git bisect start HEAD v1 && git bisect run test -f src/b && git bisect reset",
        "mkdir -p out && mv src/b out/b && rm -r out && git checkout -q -- src/b",
    ] {
        let result = shell(&project, line);
        assert_eq!(
            (&result["exit"], &result["changes"]["held_count"]),
            (&json!(0), &json!(0)),
            "{line}: {result:#}"
        );
        let mut bash = Command::new("bash");
        bash.args(["-c", line]).current_dir(&aside).env("HOME", project.home.path(""));
        let ran = Ran::from(bash.output().unwrap());
        assert_eq!(ran.code, Some(0), "{line}: {}", ran.err);
        assert_eq!(told(&project.file("")), told(&aside), "{line}");
    }
    assert_eq!(project.text(".env"), "SECRET=1\n");
    project.assert_sound();
}

#[test]
fn programs_of_the_project_run_and_their_changes_arrive() {
    let project = Project::new();
    project.write("script.sh", "#!/bin/sh\necho $1 > src/by-script\ncat .env\n");
    let made = project.home.run(["exec", "--policy", "edit", "--", "chmod", "+x", "script.sh"]);
    assert_eq!(made.code, Some(0), "{}", made.err);
    for (line, out) in [
        ("./script.sh one && cat src/by-script", "one\n"),
        ("for i in two; do ./script.sh $i; done; cat src/by-script", "two\n"),
        ("bash script.sh three; cat src/by-script", "three\n"),
        ("find . -name by-script -exec sh -c 'cat \"$1\"' _ {} ';'", "three\n"),
    ] {
        let result = shell(&project, line);
        assert_eq!(
            (&result["exit"], &result["stdout"], &result["changes"]["held_count"]),
            (&json!(0), &json!(out), &json!(0)),
            "{line}: {result:#}"
        );
    }
    assert_eq!(project.text("src/by-script"), "three\n");
}

/// `**` names no file. Whatever a policy has to name stays, beside a control that changes.
#[test]
fn no_file_that_the_host_runs_is_named_by_accident() {
    let project = Project::new();
    let rows: Vec<_> = TABLE.iter().filter(|row| row.class != Class::Source).collect();
    let mut script = String::from("mkdir -p control .git/hooks\n");
    let mut places = vec![".git/hooks/pre-commit".to_owned(), ".git/config".to_owned()];
    for row in &rows {
        let path = row.pattern.replace('*', "x");
        // What is a folder for some is a file for others; both hold.
        places.push(format!("deep/{path}/x"));
    }
    for place in &places {
        script += &format!("mkdir -p \"$(dirname {place})\"; echo x >> {place}\n");
    }
    script += "echo x > control/a; echo x >> src/a\n";
    let result = project.sh("edit", &script);
    assert_eq!(result["exit"], 0, "{result:#}");
    let call = result["call"].as_str().unwrap();
    let shown = project.home.run(["stage", "show", call, "--json"]).json();
    for (place, kind) in [
        (".git/hooks/pre-commit", "runs_on_host"),
        ("deep/.envrc", "runs_on_host"),
        ("deep/.github/workflows", "named"),
        ("deep/rust-toolchain.toml", "named"),
        ("deep/.npmrc", "denied"),
    ] {
        assert_eq!(why_of(&shown, place), kind, "{place}");
    }
    assert!(project.exists("control/a"));
    assert_eq!(project.text("src/a"), "original\nx\n");
    assert!(!project.text(".git/config").ends_with("x\n"));
    for place in &places[2..] {
        assert!(!project.exists(place), "{place}");
    }
}

/// A monorepo under `develop`: each package builds into its own folders, and sources stay as they are.
#[test]
fn a_build_writes_beside_every_manifest_and_nowhere_else() {
    let project = Project::new();
    for name in ["packages/a/package.json", "node_modules/x/package.json", "rust/Cargo.toml"] {
        project.write(name, "{}\n");
    }
    project.write("node_modules/x/dist/index.js", "original\n");
    project.write("packages/a/src/dist/x.ts", "original\n");
    let mut apply = vec![
        "packages/a/dist/deep/x.js",
        "packages/a/tsconfig.tsbuildinfo",
        "packages/a/node_modules/.cache/x",
        "rust/target/debug/x",
        ".coverage",
    ];
    let mut hold = vec![
        "node_modules/x/dist/index.js",
        "packages/a/src/dist/x.ts",
        "packages/b/dist/x.js",
        "packages/a/dist/.envrc",
        "packages/a/dist/.github/workflows/x.yml",
        "rust/dist/x",
        "src/a",
    ];
    let mut script = String::new();
    for path in apply.iter().chain(&hold) {
        script += &format!("mkdir -p $(dirname {path}); echo x >> {path}\n");
    }
    script +=
        "mkdir -p made/dist; echo {} > made/package.json; echo x > made/dist/x; echo $NO_COLOR\n";
    hold.push("made/dist/x");
    let result = project.sh("develop", &script);
    assert_eq!((&result["exit"], &result["stdout"]), (&json!(0), &json!("1\n")), "{result:#}");
    let changed = |path: &&str| {
        fs::read_to_string(project.file(path)).is_ok_and(|text| text.ends_with("x\n"))
    };
    apply.retain(|path| !changed(path));
    hold.retain(changed);
    assert_eq!((apply, hold), (Vec::<&str>::new(), Vec::<&str>::new()), "{result:#}");
}
