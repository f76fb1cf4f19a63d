//! Covered files that git tracks: git in a sandbox neither shows nor changes them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::everyday::Caller;
use crate::support::{Ran, needs_engine};

const SECRET: &str = "KEY=canary\n";

fn git(folder: &Path, args: &[&str]) -> String {
    let done = Command::new("git")
        .args(["-c", "user.name=Ann", "-c", "user.email=ann@example.org", "-c", "safe.directory=*"])
        .args(["-c", "protocol.file.allow=always"])
        .args(args)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .output()
        .expect("git");
    assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).expect("UTF-8")
}

/// A repository that tracks `.env`, with a second branch.
fn repository(caller: &Caller, name: &str) -> PathBuf {
    let project = caller.project(
        name,
        &[(".env", SECRET), ("sub/.env", SECRET), ("a.txt", "one\n"), ("b.txt", "one\n")],
    );
    git(&project, &["init", "-q", "-b", "main"]);
    git(&project, &["config", "user.name", "Ann"]);
    git(&project, &["config", "user.email", "ann@example.org"]);
    git(&project, &["add", "-f", "-A"]);
    git(&project, &["commit", "-q", "-m", "one"]);
    git(&project, &["switch", "-q", "-c", "side"]);
    fs::write(project.join("b.txt"), "side\n").expect("a file");
    git(&project, &["commit", "-q", "-a", "-m", "side"]);
    git(&project, &["switch", "-q", "main"]);
    project
}

fn call(caller: &Caller, folder: &Path, script: &str) -> Ran {
    caller.run(folder, &["exec", "--policy", "contained", "--", "sh", "-ec", script])
}

/// Runs a script whose changes are all applied, and what git tells afterwards is clean.
fn works(caller: &Caller, folder: &Path, script: &str) -> String {
    let ran = call(caller, folder, script);
    assert_eq!(ran.code, Some(0), "{script}: {}{}", ran.out, ran.err);
    assert!(!ran.err.contains("held"), "{script}: {}", ran.err);
    intact(folder);
    ran.out
}

fn intact(folder: &Path) {
    for name in [".env", "sub/.env"] {
        assert_eq!(fs::read_to_string(folder.join(name)).expect("the file"), SECRET);
        assert_eq!(git(folder, &["ls-files", "-v", name]), format!("H {name}\n"));
        assert_eq!(git(folder, &["show", &format!("HEAD:{name}")]), SECRET);
    }
    assert_eq!(git(folder, &["status", "--porcelain", "-uno"]), "");
    git(folder, &["fsck", "--strict"]);
}

fn subjects(folder: &Path) -> Vec<String> {
    git(folder, &["log", "--format=%s"]).lines().map(str::to_owned).collect()
}

#[test]
fn git_neither_shows_nor_changes_them() {
    needs_engine();
    let caller = Caller::ourselves("/var/tmp");
    let project = repository(&caller, "repository");
    let works = |script: &str| works(&caller, &project, script);
    assert_eq!(works("python3 -c 'print(len(open(\".env\").read()))'"), "0\n");
    assert_eq!(works("git status --porcelain; git diff; git diff HEAD; git stash list"), "");
    assert_eq!(works("git status --porcelain",), "");
    works("echo two > a.txt; git add -A; git commit -q -m two");
    works("echo three > a.txt; git commit -q -a -m three");
    assert_eq!(subjects(&project), ["three", "two", "one"]);
    works(
        "echo four > a.txt; echo x > new; git stash -q -u; git stash pop -q; git commit -qam four; rm new",
    );
    works("git switch -q side; git switch -q -");
    works("git merge -q --no-edit side");
    assert!(subjects(&project)[0].starts_with("Merge branch"));
    works("git switch -q -c topic HEAD~1; echo t > t.txt; git add t.txt; git commit -qm topic");
    works("git rebase -q main");
    assert_eq!(subjects(&project)[0], "topic");
    assert_eq!(git(&project, &["branch", "--show-current"]), "topic\n");
    works("git checkout -q main; git reset -q --hard HEAD~1; git reset -q --hard ORIG_HEAD");
}

#[test]
fn a_stash_waits_for_the_next_call() {
    needs_engine();
    let caller = Caller::ourselves("/var/tmp");
    let project = repository(&caller, "repository");
    works(&caller, &project, "echo two > a.txt; git stash -q");
    assert_eq!(git(&project, &["stash", "list"]).lines().count(), 1);
    assert_eq!(fs::read_to_string(project.join("a.txt")).expect("the file"), "one\n");
    let ran = call(&caller, &project, "git stash pop -q; git status --porcelain");
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), " M a.txt\n"), "{}", ran.err);
    assert_eq!(fs::read_to_string(project.join("a.txt")).expect("the file"), "two\n");
    git(&project, &["checkout", "-q", "a.txt"]);
    intact(&project);
}

#[test]
fn a_new_worktree_comes_without_them() {
    needs_engine();
    let caller = Caller::ourselves("/var/tmp");
    let project = repository(&caller, "repository");
    let script =
        "git worktree add -q sub/wt; cd sub/wt; echo w > a.txt; git commit -q -am worktree";
    let ran = call(&caller, &project, script);
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    intact(&project);
    let tree = project.join("sub/wt");
    assert_eq!(subjects(&tree), ["worktree", "one"]);
    assert_eq!(fs::read_to_string(tree.join("a.txt")).expect("the file"), "w\n");
    assert!(!tree.join(".env").exists());
}

#[test]
fn what_changes_them_is_held_with_everything() {
    needs_engine();
    let caller = Caller::ourselves("/var/tmp");
    let project = repository(&caller, "repository");
    let before = git(&project, &["rev-parse", "HEAD", "main", "side"]);
    let blob = "$(echo evil | git hash-object -w --stdin)";
    for script in [
        format!(
            "echo x > a.txt; git update-index --cacheinfo 100644,{blob},.env; git commit -qm evil a.txt -i"
        ),
        format!(
            "echo x > a.txt; git add a.txt; git update-index --cacheinfo 100644,{blob},.env; git commit -qm evil"
        ),
        "echo x > a.txt; git rm -q --cached --sparse .env; git commit -qm gone".to_owned(),
        format!(
            "echo x > a.txt; export GIT_INDEX_FILE=/tmp/i; cp .git/index /tmp/i; \
             git update-index --cacheinfo 100644,{blob},.env; \
             git update-ref refs/heads/main $(git commit-tree -p HEAD -m evil $(git write-tree))"
        ),
    ] {
        let ran = call(&caller, &project, &script);
        assert!(ran.err.contains("held"), "{script}: {}{}", ran.out, ran.err);
        intact(&project);
        assert_eq!(git(&project, &["rev-parse", "HEAD", "main", "side"]), before, "{script}");
        assert_eq!(fs::read_to_string(project.join("a.txt")).expect("the file"), "one\n");
    }
    // The index alone: nothing of the git folder changes, and other files do.
    let ran = call(
        &caller,
        &project,
        &format!("echo y > a.txt; git update-index --cacheinfo 100644,{blob},.env"),
    );
    assert!(ran.err.contains("held"), "{}", ran.err);
    assert_eq!(fs::read_to_string(project.join("a.txt")).expect("the file"), "y\n");
    assert_eq!(git(&project, &["diff", "--cached", "--name-only"]), "");
}

#[test]
fn an_unfinished_rebase_is_held_as_a_whole() {
    needs_engine();
    let caller = Caller::ourselves("/var/tmp");
    let project = repository(&caller, "repository");
    fs::write(project.join("b.txt"), "main\n").expect("a file");
    git(&project, &["commit", "-q", "-a", "-m", "main"]);
    let ran = call(&caller, &project, "git switch -q side; git rebase main || true");
    assert!(ran.err.contains("held"), "{}{}", ran.out, ran.err);
    intact(&project);
    assert_eq!(git(&project, &["branch", "--show-current"]), "main\n");
    assert!(!project.join(".git/rebase-merge").exists());
}

#[test]
fn a_linked_worktree_and_a_submodule_are_workspaces_too() {
    needs_engine();
    let caller = Caller::ourselves("/var/tmp");
    let project = repository(&caller, "repository");
    let linked = caller.path("linked");
    git(&project, &["worktree", "add", "-q", "-b", "linked", linked.to_str().expect("text")]);
    let outer = caller.project("outer", &[("x", "x")]);
    git(&outer, &["init", "-q", "-b", "main"]);
    git(&outer, &["submodule", "--quiet", "add", project.to_str().expect("text"), "module"]);
    for folder in [linked, outer.join("module")] {
        git(&folder, &["config", "user.email", "ann@example.org"]);
        let read = caller.works(&folder, &["exec", "--", "git", "status", "--porcelain"]);
        assert_eq!(read, "", "a reading call");
        let works = |script: &str| works(&caller, &folder, script);
        assert_eq!(works("git status --porcelain; git diff HEAD"), "");
        works("echo two > a.txt; git -c user.name=Ann commit -q -a -m two");
        assert_eq!(subjects(&folder), ["two", "one"]);
        let held = call(
            &caller,
            &folder,
            "git rm -q --cached --sparse .env; git -c user.name=Ann commit -qm gone",
        );
        assert!(held.err.contains("held"), "{}", held.err);
        intact(&folder);
        assert_eq!(subjects(&folder), ["two", "one"]);
    }
    intact(&project);
}

#[test]
fn a_split_index_is_noted_and_what_it_commits_of_them_is_held() {
    needs_engine();
    let caller = Caller::ourselves("/var/tmp");
    let project = repository(&caller, "repository");
    git(&project, &["update-index", "--split-index"]);
    let ran = caller.run(
        &project,
        &[
            "exec",
            "--json=full",
            "--policy",
            "contained",
            "--",
            "git",
            "commit",
            "-q",
            "-a",
            "-m",
            "x",
        ],
    );
    assert!(ran.out.contains("git_index"), "{}{}", ran.out, ran.err);
    intact(&project);
    assert_eq!(subjects(&project), ["one"]);
}
