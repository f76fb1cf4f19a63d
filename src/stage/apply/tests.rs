//! Each operation, conflicts, disk full, a hostile host, git folders.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{CWD, XattrFlags, lgetxattr, lsetxattr, renameat_with};

use super::testing::{Bench, Memory, odd, snapshot, write};
use super::*;
use crate::stage::change::{Verdict, Why};

const FILES: &[(&str, &str)] = &[
    ("edited", "old"),
    ("replaced", "old"),
    ("gone", "old"),
    ("same", "same"),
    ("was-file", "old"),
    ("was-folder/a", "a"),
    ("removed/deep/a", "a"),
    ("removed/b", "b"),
    ("there/x", "x"),
];

fn changed(bench: &Bench) {
    let upper = bench.stage().upper(0);
    bench.edit("edited", "new");
    bench.put("replaced", "new");
    bench.remove("gone");
    bench.edit("same", "same");
    bench.put("was-file/inside", "new");
    bench.put("was-folder", "new");
    bench.remove("removed");
    bench.put("there/new", "new");
    bench.put(Path::new("there").join(odd()), "odd");
    bench.put("tree/a", "a");
    bench.put("tree/sub/b", "b");
    bench.put("closed/c", "c");
    symlink("there/x", upper.join("link")).unwrap();
    let mode = |path: &str, mode| {
        fs::set_permissions(upper.join(path), fs::Permissions::from_mode(mode)).unwrap();
    };
    mode("closed", 0o500);
    mode("there", 0o750);
    mode("tree/a", 0o755);
    for path in ["tree/a", "tree", "replaced"] {
        for name in ["user.overlay.opaque", "user.overlay.overlay.opaque", "user.mine"] {
            lsetxattr(upper.join(path), name, b"y", XattrFlags::empty()).unwrap();
        }
    }
}

fn check_all(bench: &Bench) {
    let before = bench.snapshot();
    changed(bench);
    let applied = bench.apply();
    assert_eq!(applied.held, []);
    assert!(applied.undo);
    let after = bench.snapshot();
    let says = |path: &str| after.get(Path::new(path)).map(String::as_str);
    for (path, wanted) in [
        ("edited", Some("644 new")),
        ("replaced", Some("644 new")),
        ("gone", None),
        ("same", Some("644 same")),
        ("was-file", Some("folder 755")),
        ("was-file/inside", Some("644 new")),
        ("was-folder", Some("644 new")),
        ("removed", None),
        ("there", Some("folder 750")),
        ("there/x", Some("644 x")),
        ("there/new", Some("644 new")),
        ("tree/a", Some("755 a")),
        ("tree/sub/b", Some("644 b")),
        ("closed", Some("folder 500")),
        ("closed/c", Some("644 c")),
        ("link", Some("-> there/x")),
    ] {
        assert_eq!(says(path), wanted, "{path}");
    }
    assert_eq!(after.get(&Path::new("there").join(odd())).map(String::as_str), Some("644 odd"));
    assert_eq!(after.len(), 17, "{after:?}");
    for path in ["tree/a", "tree", "replaced"] {
        let mut value = [0; 8];
        let path = bench.workspace.join(path);
        assert!(lgetxattr(&path, "user.overlay.opaque", &mut value[..]).is_err());
        assert!(lgetxattr(&path, "user.overlay.overlay.opaque", &mut value[..]).is_err());
    }
    // Nothing is left in the stage.
    let rest: Vec<PathBuf> = snapshot(&bench.stage().upper(0)).into_keys().collect();
    assert!(
        rest.iter()
            .all(|path| bench.stage().upper(0).join(path).is_dir() || path.ends_with("same")),
        "{rest:?}"
    );
    bench.undo(bench.stage().label().as_str()).unwrap();
    assert_eq!(bench.snapshot(), before);
}

#[test]
fn each_operation_is_applied_and_undone() {
    let mut bench = Bench::new(FILES);
    bench.begin();
    check_all(&bench);
    let Bench { stage, state, .. } = bench;
    stage.unwrap().discard().unwrap();
    assert_eq!(crate::stage::folder::list(&state).unwrap(), []);
}

#[test]
fn each_operation_is_applied_and_undone_from_another_file_system() {
    let dir = tempfile::tempdir().unwrap();
    let memory = Memory::mount(&dir.path().join("memory"), "64m");
    let (state, workspace) = (memory.0.join("state"), dir.path().join("work"));
    let mut bench = Bench::at(dir, state, workspace, FILES);
    bench.begin();
    check_all(&bench);
    drop(bench.stage.take());
}

#[test]
fn a_new_folder_is_one_rename_and_undo_sees_any_change_in_it() {
    let mut bench = Bench::new(&[]);
    bench.begin();
    for number in 0..50 {
        bench.put(format!("tree/{}/{number}", number % 5), "content");
    }
    let inode = |path: PathBuf| std::os::unix::fs::MetadataExt::ino(&fs::metadata(path).unwrap());
    let staged = inode(bench.stage().upper(0).join("tree"));
    let applied = bench.apply();
    assert_eq!((applied.counts.created, applied.counts.folders), (50, 6));
    assert_eq!(applied.counts.bytes, 350);
    assert_eq!(inode(bench.workspace.join("tree")), staged);
    let call = bench.stage().label().to_string();
    fs::write(bench.workspace.join("tree/1/1"), "changed").unwrap();
    let refused = bench.undo(&call).unwrap_err();
    assert!(refused.contains("changed since"), "{refused}");
    assert!(bench.workspace.join("tree/0/0").exists());
}

#[test]
fn what_is_held_stays_and_the_rest_of_a_new_folder_goes_name_by_name() {
    let mut bench = Bench::new(&[]);
    bench.begin();
    bench.put("tree/good", "good");
    bench.put("tree/.envrc", "evil");
    let linked = bench.stage().upper(0).join("tree/linked");
    fs::hard_link(bench.stage().upper(0).join("tree/.envrc"), linked).unwrap();
    let mut judged = bench.walk();
    for judged in &mut judged {
        if judged.change.path.ends_with(".envrc") {
            let held = Held { why: Why::RunsOnHost, ..plan::hold_group("") };
            judged.verdict = Verdict::Hold(held);
        }
    }
    let applied = apply(bench.stage(), &[judged], &bench.context()).unwrap();
    assert_eq!(applied.held.len(), 1);
    assert_eq!(applied.held[0].2.why, Why::RunsOnHost);
    assert!(bench.workspace.join("tree/good").exists());
    assert!(!bench.workspace.join("tree/.envrc").exists());
    // It shared an inode with what is held, and does not any more.
    let about = fs::metadata(bench.workspace.join("tree/linked")).unwrap();
    assert_eq!(std::os::unix::fs::MetadataExt::nlink(&about), 1);
    assert_eq!(bench.stage().held().unwrap(), applied.held);
    let label = bench.stage().label().clone();
    drop(bench.stage.take());
    let listed = crate::stage::folder::list(&bench.state).unwrap();
    assert_eq!(listed[0].state, crate::stage::folder::StageState::Kept);
    assert!(
        crate::stage::recover::recover(&bench.state, Sync::Never, &|_| false).unwrap().is_empty()
    );
    Stage::open(&bench.state, &label).unwrap().discard().unwrap();
}

/// Applies one change after the host did something, which must be a conflict and stay.
fn conflicts(prepare: impl Fn(&Bench), host: impl Fn(&Path)) {
    let mut bench = Bench::new(&[("a/file", "host")]);
    bench.begin();
    prepare(&bench);
    super::testing::tick(bench.dir.path());
    // Both before the walk, and between walk and apply.
    let early = bench.walk();
    host(&bench.workspace);
    let after = bench.snapshot();
    for judged in [bench.walk(), early] {
        let applied = apply(bench.stage(), &[judged], &bench.context()).unwrap();
        assert!(!applied.held.is_empty());
        assert!(applied.held.iter().all(|(_, _, held)| held.why == Why::Conflict), "{applied:?}");
        assert_eq!(bench.snapshot(), after);
    }
}

#[test]
fn an_edit_in_place_is_a_conflict() {
    conflicts(
        |bench| bench.edit("a/file", "call"),
        |root| fs::write(root.join("a/file"), "mine").unwrap(),
    );
}

#[test]
fn a_rename_over_is_a_conflict() {
    conflicts(
        |bench| bench.edit("a/file", "call"),
        |root| {
            fs::write(root.join("next"), "mine").unwrap();
            fs::rename(root.join("next"), root.join("a/file")).unwrap();
        },
    );
}

#[test]
fn a_new_file_of_the_host_is_a_conflict() {
    conflicts(
        |bench| bench.put("a/new", "call"),
        |root| fs::write(root.join("a/new"), "mine").unwrap(),
    );
}

#[test]
fn a_file_that_the_host_removed_is_a_conflict() {
    let mut bench = Bench::new(&[("a/file", "host"), ("a/other", "host")]);
    bench.begin();
    bench.edit("a/file", "call");
    let judged = bench.walk();
    fs::remove_file(bench.workspace.join("a/file")).unwrap();
    let applied = apply(bench.stage(), &[judged], &bench.context()).unwrap();
    assert_eq!(applied.held[0].2.why, Why::Conflict);
    assert!(!bench.workspace.join("a/file").exists());
}

#[test]
fn a_removal_of_what_the_host_edited_is_a_conflict() {
    conflicts(
        |bench| bench.remove("a/file"),
        |root| fs::write(root.join("a/file"), "mine").unwrap(),
    );
}

#[test]
fn a_folder_that_became_a_symlink_is_a_conflict() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("file"), "outside").unwrap();
    conflicts(
        |bench| {
            bench.edit("a/file", "call");
            bench.put("a/new", "call");
        },
        |root| {
            fs::rename(root.join("a"), root.join("b")).unwrap();
            symlink(outside.path(), root.join("a")).unwrap();
        },
    );
    assert_eq!(snapshot(outside.path()).len(), 1);
    assert_eq!(fs::read_to_string(outside.path().join("file")).unwrap(), "outside");
}

#[test]
fn a_full_workspace_gets_nothing_and_keeps_all() {
    let dir = tempfile::tempdir().unwrap();
    let memory = Memory::mount(&dir.path().join("work"), "256k");
    let (state, workspace) = (dir.path().join("state"), memory.0.clone());
    let mut bench = Bench::at(dir, state, workspace, &[("a", "old"), ("b", "old")]);
    bench.begin();
    let before = bench.snapshot();
    for name in ["a", "b", "c", "d", "e/f"] {
        bench.put(name, &"x".repeat(100_000));
    }
    let failed = apply(bench.stage(), &[bench.walk()], &bench.context()).unwrap_err();
    assert!(failed.to_string().contains("nothing was applied"), "{failed}");
    assert_eq!(bench.snapshot(), before);
    assert!(bench.undo(bench.stage().label().as_str()).is_ok());
    // What the command made is still there, and goes when there is room.
    rustix::mount::mount_remount(&memory.0, rustix::mount::MountFlags::empty(), c"size=16m")
        .unwrap();
    assert_eq!(bench.apply().held, []);
    assert_eq!(fs::metadata(bench.workspace.join("e/f")).unwrap().len(), 100_000);
}

#[test]
fn a_full_stage_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let memory = Memory::mount(&dir.path().join("memory"), "8m");
    let (state, workspace) = (memory.0.join("state"), dir.path().join("work"));
    let mut bench = Bench::at(dir, state, workspace, &[("a", "old"), ("b", "old")]);
    bench.begin();
    for number in 0..100 {
        bench.put(format!("new/{number}"), "x");
    }
    bench.edit("a", "new");
    let before = bench.snapshot();
    let mut fill = fs::File::create(memory.0.join("fill")).unwrap();
    let full = std::io::copy(&mut std::io::repeat(b'x'), &mut fill);
    assert!(full.is_err());
    drop(fill);
    let judged = bench.walk();
    apply(bench.stage(), std::slice::from_ref(&judged), &bench.context()).unwrap_err();
    assert_eq!(bench.snapshot(), before);
    fs::remove_file(memory.0.join("fill")).unwrap();
    let applied = match Journal::open(bench.stage()).unwrap() {
        None => bench.apply(),
        Some(_) => panic!("a journal stays"),
    };
    assert_eq!(applied.held, []);
    assert_eq!(fs::read_to_string(bench.workspace.join("a")).unwrap(), "new");
    drop(bench.stage.take());
}

#[test]
fn a_parent_that_becomes_a_symlink_at_full_speed_leads_nowhere() {
    let outside = tempfile::tempdir().unwrap();
    for number in 0..200 {
        fs::write(outside.path().join(number.to_string()), "outside").unwrap();
    }
    let before = snapshot(outside.path());
    for round in 0..20 {
        let mut bench = Bench::new(&[]);
        for number in 0..200 {
            write(&bench.workspace.join(format!("a/{number}")), "host");
        }
        symlink(outside.path(), bench.workspace.join("b")).unwrap();
        bench.begin();
        for number in 0..200 {
            match (number + round) % 4 {
                0 => bench.remove(&format!("a/{number}")),
                1 => bench.put(format!("a/new-{number}"), "call"),
                _ => bench.edit(&format!("a/{number}"), "call"),
            }
        }
        let judged = bench.walk();
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let root = bench.workspace.clone();
            let over = &over;
            scope.spawn(move || {
                let (a, b) = (root.join("a"), root.join("b"));
                while !over.load(Ordering::Relaxed) {
                    renameat_with(CWD, &a, CWD, &b, rustix::fs::RenameFlags::EXCHANGE).unwrap();
                }
            });
            let applied = apply(bench.stage(), &[judged], &bench.context());
            over.store(true, Ordering::Relaxed);
            applied.unwrap();
        });
        assert_eq!(snapshot(outside.path()), before);
        let left = bench
            .snapshot()
            .into_keys()
            .filter(|path| path.to_string_lossy().contains("runner-temp"));
        assert_eq!(left.count(), 0);
    }
}

/// A repository with a commit, and a call that made another one in its stage.
fn committed(bench: &mut Bench) {
    let git = |root: &Path, args: &[&str]| {
        let done = std::process::Command::new("git")
            .args(["-c", "user.name=x", "-c", "user.email=x@x"])
            .args(args)
            .current_dir(root)
            .output()
            .unwrap();
        assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
    };
    git(&bench.workspace, &["init", "-q", "-b", "main"]);
    git(&bench.workspace, &["add", "."]);
    git(&bench.workspace, &["commit", "-qm", "one"]);
    bench.begin();
    // The same in a copy, whose differences become the stage.
    let copy = bench.dir.path().join("copy");
    let copied = std::process::Command::new("cp")
        .arg("-a")
        .arg(&bench.workspace)
        .arg(&copy)
        .status()
        .unwrap();
    assert!(copied.success());
    fs::write(copy.join("tracked"), "committed").unwrap();
    git(&copy, &["commit", "-qam", "two"]);
    let before = bench.snapshot();
    for (path, says) in snapshot(&copy) {
        if before.get(&path) == Some(&says) || says.starts_with("folder") {
            continue;
        }
        let to = bench.stage().upper(0).join(&path);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(copy.join(&path), &to).unwrap();
    }
}

#[test]
fn a_commit_is_applied_with_its_files() {
    let mut bench = Bench::new(&[("tracked", "old"), ("sub/x", "x")]);
    committed(&mut bench);
    let before = bench.snapshot();
    let applied = bench.apply();
    assert_eq!(applied.held, []);
    let log = std::process::Command::new("git")
        .args(["log", "--format=%s"])
        .current_dir(&bench.workspace)
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(log.stdout).unwrap(), "two\none\n");
    let locks = bench
        .snapshot()
        .into_keys()
        .filter(|path| path.extension().is_some_and(|end| end == "lock"));
    assert_eq!(locks.count(), 0);
    bench.undo(bench.stage().label().as_str()).unwrap();
    assert_eq!(bench.snapshot(), before);
}

#[test]
fn a_commit_waits_if_a_tracked_file_is_in_conflict_or_git_holds_a_lock() {
    for lock in [".git/index.lock", ".git/refs/heads/main.lock", ""] {
        let mut bench = Bench::new(&[("tracked", "old")]);
        committed(&mut bench);
        match lock {
            "" => fs::write(bench.workspace.join("tracked"), "mine").unwrap(),
            lock => fs::write(bench.workspace.join(lock), "").unwrap(),
        }
        let before = bench.snapshot();
        let applied = bench.apply();
        assert_eq!(applied.counts, Counts::default());
        let of = |why| applied.held.iter().filter(|(_, _, held)| held.why == why).count();
        assert_eq!(of(Why::Conflict), 1, "{applied:?}");
        assert_eq!(of(Why::Group) + 1, applied.held.len());
        assert_eq!(bench.snapshot(), before);
    }
}

#[test]
fn a_refreshed_index_is_no_conflict() {
    for remembered in [true, false] {
        let mut bench = Bench::new(&[("tracked", "old")]);
        committed(&mut bench);
        let index = bench.workspace.join(".git/index");
        if remembered {
            crate::stage::group::remember_index(bench.stage(), 0, Path::new(".git")).unwrap();
        }
        // As `git status` does after a file was touched: another file with other times in it.
        let mut bytes = fs::read(&index).unwrap();
        bytes[12] ^= 1;
        // Zeros stand for no checksum.
        let sum = bytes.len() - 20;
        bytes[sum..].fill(0);
        fs::write(bench.workspace.join("next"), bytes).unwrap();
        fs::rename(bench.workspace.join("next"), &index).unwrap();
        assert_eq!(bench.apply().held.is_empty(), remembered);
    }
}

#[test]
fn a_commit_waits_if_the_state_of_a_rebase_is_held() {
    let mut bench = Bench::new(&[("tracked", "old")]);
    committed(&mut bench);
    bench.put(".git/rebase-merge/done", "exec x\n");
    let before = bench.snapshot();
    let mut judged = bench.walk();
    for change in &mut judged {
        if change.change.path.starts_with(".git/rebase-merge") {
            change.verdict = Verdict::Hold(super::plan::hold_group("for the test"));
        }
    }
    let applied = super::apply(bench.stage(), &[judged], &bench.context()).unwrap();
    assert_eq!(applied.counts, Counts::default());
    assert_eq!(bench.snapshot(), before);
}

#[test]
fn a_worktree_tracks_files_in_its_own_folder() {
    for (path, waits) in [("sub/wt/tracked", true), ("sub/wt/other", false), ("wt/tracked", false)]
    {
        let mut bench = Bench::new(&[("tracked", "old")]);
        for args in [
            &["init", "-q"][..],
            &["add", "."],
            &["-c", "user.name=x", "-c", "user.email=x@x", "commit", "-qm", "one"],
            &["worktree", "add", "-q", "sub/wt"],
        ] {
            let mut git = std::process::Command::new("git");
            assert!(git.args(args).current_dir(&bench.workspace).status().unwrap().success());
        }
        bench.begin();
        bench.put(".git/worktrees/wt/HEAD", "ref: refs/heads/other\n");
        bench.put("new", "");
        bench.put(path, "staged");
        let mut judged = bench.walk();
        for change in judged.iter_mut().filter(|it| it.change.path == Path::new(path)) {
            change.verdict = Verdict::Hold(super::plan::hold_group("for the test"));
        }
        let applied = super::apply(bench.stage(), &[judged], &bench.context()).unwrap();
        assert_eq!(applied.counts == Counts::default(), waits, "{path}: {applied:?}");
    }
}
