//! Looking around in repositories of every shape, under the policy that applies without any choice.

use std::path::Path;
use std::process::Command;

use super::Caller;
use crate::support::containers;

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
    if !containers() {
        return;
    }
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
    if !containers() {
        return;
    }
    let Some(caller) = Caller::ordinary("/var/tmp") else { return };
    let project = repository(&caller);
    std::fs::write(project.join("new.txt"), "").expect("a file");
    caller.own(&project);
    look_around(&caller, &project);
    let done = Command::new("chown").args(["-R", "0:0"]).arg(&project).status();
    assert!(done.expect("chown").success());
    look_around(&caller, &project);
}
