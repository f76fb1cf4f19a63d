//! Everyday work with the host's own toolchains: small projects of the common ecosystems.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::process::Command;

use crate::support::{Home, Ran};

/// A project of these files, with the caller's own toolchains in reach.
fn project(files: &[(&str, &str)]) -> Home {
    let home = Home::new();
    for (name, text) in files {
        let path = home.path("project").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    home.git(&["init", "-q"]);
    home.git(&["add", "."]);
    home.git(&["commit", "-qm", "first"]);
    home
}

/// Runs with the real home, where toolchains live, and state of our own.
fn exec(home: &Home, args: &[&str]) -> Ran {
    let mut command = home.runner();
    command.env("HOME", std::env::var_os("HOME").unwrap_or_default());
    Ran::from(command.args(["exec", "--policy", "develop"]).args(args).output().unwrap())
}

#[test]
fn a_rust_project_is_tested_and_its_files_are_the_callers() {
    let home = project(&[
        ("Cargo.toml", "[package]\nname = \"small\"\nversion = \"0.1.0\"\nedition = \"2021\"\n"),
        ("src/lib.rs", "#[test]\nfn passes() { assert_eq!(1 + 1, 2); }\n"),
    ]);
    // The folder is mounted read-only, so the lock file has to be there.
    let mut lock = Command::new("cargo");
    lock.args(["generate-lockfile", "--offline"]).current_dir(home.path("project"));
    assert!(lock.status().unwrap().success());
    let ran = exec(&home, &["--", "cargo", "test"]);
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("1 passed"), "{}", ran.out);
    let owner = |name: &str| fs::metadata(home.path("project").join(name)).unwrap().uid();
    assert_eq!(owner("target"), owner("src"));
}

#[test]
fn a_node_project_is_tested() {
    let home = project(&[
        ("package.json", "{ \"name\": \"small\", \"scripts\": { \"test\": \"node --test\" } }\n"),
        ("small.test.js", "const test = require('node:test');\ntest('passes', () => {});\n"),
    ]);
    let ran = exec(&home, &["--", "npm", "test"]);
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("pass 1"), "{}", ran.out);
    let ran = exec(&home, &["--shell", "cd . && FOO=1 npm test 2>&1 | tail -5"]);
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
}

#[test]
fn a_python_project_is_tested() {
    let home = project(&[("test_small.py", "def test_passes():\n    assert 1 + 1 == 2\n")]);
    let ran = exec(
        &home,
        &["--", "python3", "-c", "import test_small; test_small.test_passes(); print('ok')"],
    );
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "ok\n"), "{}", ran.err);
    let ran = exec(&home, &["--", "pytest", "-q"]);
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("1 passed"), "{}", ran.out);
}

#[test]
fn git_works_in_a_repository_and_in_a_linked_worktree() {
    let home = project(&[("a.txt", "one\n")]);
    home.git(&["worktree", "add", "-q", "../linked"]);
    for folder in ["project", "linked"] {
        let run = |args: &[&str]| {
            let mut command = home.runner();
            Ran::from(
                command
                    .current_dir(home.path(folder))
                    .args(["exec", "--"])
                    .args(args)
                    .output()
                    .unwrap(),
            )
        };
        let ran = run(&["git", "log", "--oneline"]);
        assert_eq!(ran.code, Some(0), "{folder}: {}", ran.err);
        assert!(ran.out.contains("first"), "{folder}: {}", ran.out);
        assert_eq!(run(&["git", "status", "--short"]).out, "", "{folder}");
        assert_eq!(run(&["find", ".", "-name", "a.txt"]).out, "./a.txt\n", "{folder}");
        assert_eq!(run(&["rg", "-n", "one"]).out, "a.txt:1:one\n", "{folder}");
    }
}
