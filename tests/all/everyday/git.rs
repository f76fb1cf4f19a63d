//! Looking around in repositories of every shape, under the policy that applies without any choice.

use std::path::Path;
use std::process::Command;

use super::Caller;
use crate::support::needs_engine;

const FILES: &[(&str, &str)] =
    &[("src/main.rs", "fn main() {} // needle\n"), ("README.md", "read me\n")];

fn git(folder: &Path, args: &[&str]) {
    let done = Command::new("git")
        .arg("-C")
        .arg(folder)
        .args(["-c", "user.name=Ann", "-c", "user.email=ann@example.org", "-c", "safe.directory=*"])
        .args(args)
        .output()
        .expect("git");
    assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
}

fn repository(caller: &Caller) -> std::path::PathBuf {
    let project = caller.project("repository", FILES);
    git(&project, &["init", "-q", "-b", "main"]);
    git(&project, &["add", "."]);
    git(&project, &["commit", "-q", "-m", "First words"]);
    project
}

/// What an agent does first in any repository.
fn look_around(caller: &Caller, folder: &Path) {
    let works = |words: &[&str]| {
        let args: Vec<&str> = ["exec", "--"].iter().chain(words).copied().collect();
        caller.works(folder, &args)
    };
    assert!(works(&["git", "log", "--oneline"]).contains("First words"));
    assert_eq!(works(&["git", "status", "--short"]), "?? new.txt\n");
    assert!(works(&["git", "diff", "--stat", "HEAD"]).is_empty());
    assert_eq!(works(&["rg", "--no-heading", "needle"]), "src/main.rs:fn main() {} // needle\n");
    assert_eq!(works(&["find", ".", "-name", "*.rs"]), "./src/main.rs\n");
    assert_eq!(works(&["git", "show", "HEAD:README.md"]), "read me\n");
}

#[test]
fn a_repository_and_its_linked_worktree() {
    needs_engine();
    let caller = Caller::ourselves("/var/tmp");
    let project = repository(&caller);
    std::fs::write(project.join("new.txt"), "").expect("a file");
    look_around(&caller, &project);
    let linked = caller.path("linked");
    git(&project, &["worktree", "add", "-q", "-b", "side", linked.to_str().expect("text")]);
    std::fs::write(linked.join("new.txt"), "").expect("a file");
    look_around(&caller, &linked);
}

#[test]
fn an_ordinary_user_in_an_own_and_in_a_root_owned_repository() {
    needs_engine();
    let caller = Caller::ordinary("/var/tmp");
    let project = repository(&caller);
    std::fs::write(project.join("new.txt"), "").expect("a file");
    caller.own(&project);
    look_around(&caller, &project);
    let done = Command::new("chown").args(["-R", "0:0"]).arg(&project).status();
    assert!(done.expect("chown").success());
    look_around(&caller, &project);
}

/// Makes a hostile repository: its drivers mark each line that they touch, and it has a toolchain of its own.
fn trap(project: &Path) {
    let write = |path: &str, text: &str| {
        let path = project.join(path);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        std::fs::write(&path, text).expect("a file");
    };
    let content = |text: &str| ["a.txt", "b.md", "c.log"].iter().for_each(|name| write(name, text));
    content("first\n");
    git(project, &["init", "-q", "-b", "main"]);
    git(project, &["add", "a.txt", "b.md", "c.log"]);
    git(project, &["commit", "-q", "-m", "First words"]);
    for (key, value) in [
        ("filter.F.clean", "sed s/^/ran-filter:/"),
        ("filter.F.smudge", "cat"),
        ("filter.F.required", "true"),
        ("diff.d.textconv", "sed s/^/ran-textconv:/"),
        ("diff.E.command", "echo ran-command"),
        ("core.fsmonitor", "echo ran-fsmonitor >&2"),
    ] {
        git(project, &["config", key, value]);
    }
    write(".git/info/attributes", "*.txt diff=d\n*.md diff=E\n*.log filter=F\n");
    content("changed\n");
    let toolchain = project.join("evil");
    write("rust-toolchain.toml", &format!("[toolchain]\npath = \"{}\"\n", toolchain.display()));
    write("evil/lib/x", "");
    for program in ["rustc", "cargo"] {
        write(&format!("evil/bin/{program}"), "#!/bin/sh\necho ran-toolchain\n");
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(project.join("evil/bin").join(program), open).expect("a mode");
    }
    write("run.sh", "git diff\nrustc --version\ncargo --version\n");
}

#[test]
fn nothing_of_a_repository_runs_where_no_code_is_granted() {
    needs_engine();
    let caller = Caller::ourselves("/var/tmp");
    let project = caller.project("trap", &[]);
    trap(&project);
    let rustup = Command::new("rustup").arg("--version").output().is_ok();
    // The control: where code is granted, all of it runs.
    let ran = caller.works(&project, &["exec", "--policy", "contained", "--", "sh", "run.sh"]);
    for mark in ["ran-textconv:changed", "ran-filter:changed", "ran-command"]
        .into_iter()
        .chain(rustup.then_some("ran-toolchain"))
    {
        assert!(ran.contains(mark), "{mark}: {ran}");
    }
    for (words, shown) in [
        (&["git", "status", "--short"][..], " M a.txt"),
        (&["git", "diff"], "+changed"),
        (&["git", "diff", "HEAD", "--", "b.md"], "+changed"),
        (&["git", "diff", "--", "c.log"], "+changed"),
        (&["git", "log", "-p", "--oneline"], "+first"),
        (&["git", "show", "HEAD"], "+first"),
        (&["git", "blame", "a.txt"], "changed"),
        (&["git", "diff", "--stat"], "a.txt"),
    ] {
        let args: Vec<&str> = ["exec", "--"].iter().chain(words).copied().collect();
        let result = caller.run(&project, &args);
        assert_eq!(result.code, Some(0), "{words:?}: {}{}", result.out, result.err);
        assert!(result.out.contains(shown), "{words:?}: {}", result.out);
        let all = format!("{}{}", result.out, result.err);
        assert!(!all.contains("ran-"), "{words:?}: {all}");
    }
    for program in ["rustc", "cargo"].into_iter().filter(|_| rustup) {
        let result = caller.run(&project, &["exec", "--", program, "--version"]);
        assert_eq!(result.code, Some(0), "{program}: {}{}", result.out, result.err);
        assert!(result.out.starts_with(&format!("{program} ")), "{}", result.out);
        assert!(!result.out.contains("ran-"), "{}", result.out);
    }
}
