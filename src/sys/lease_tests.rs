//! Leases of one process and of several, of owners that are killed, and of files that change their name.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::*;

fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    (folder, path)
}

fn exclusive(path: &Path) -> Option<Lease<Exclusive>> {
    Lease::try_take(path).unwrap()
}

fn shared(path: &Path) -> Option<Lease<Shared>> {
    Lease::try_take(path).unwrap()
}

fn is_held(path: &Path) -> bool {
    matches!(find(path).unwrap(), Found::Held(_))
}

/// A process that holds the lock of a file, and waits until it does.
fn holder(path: &Path) -> Child {
    let mut command = Command::new("flock");
    command.arg("--no-fork").arg(path).args(["sleep", "600"]);
    let child = command.spawn().expect("this test needs flock of util-linux");
    while !is_held(path) {
        std::thread::sleep(Duration::from_millis(1));
    }
    child
}

#[test]
fn one_alone_or_many_shared_within_one_process() {
    let (_folder, path) = folder();
    let first = exclusive(&path).unwrap();
    assert!(exclusive(&path).is_none() && shared(&path).is_none());
    drop(first);
    let (one, two) = (shared(&path).unwrap(), shared(&path).unwrap());
    assert!(exclusive(&path).is_none());
    drop(one);
    assert!(exclusive(&path).is_none(), "the second still holds it");
    drop(two);
    assert!(exclusive(&path).is_some());
}

#[test]
fn the_file_is_for_the_caller_alone_and_keeps_its_content() {
    let (_folder, path) = folder();
    let lease = Lease::with_content(&path, b"longer content").unwrap();
    lease.replace(b"content").unwrap();
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    // One that asks reads what the owner says of itself.
    match find(&path).unwrap() {
        Found::Held(file) => assert_eq!(file.read().unwrap(), b"content"),
        other => panic!("{other:?}"),
    }
    assert!(Lease::with_content(&path, b"another").is_err());
    drop(lease);
    assert_eq!(exclusive(&path).unwrap().read().unwrap(), b"content");
}

#[test]
fn a_killed_owner_holds_nothing() {
    let (_folder, path) = folder();
    std::fs::write(&path, "mine").unwrap();
    let mut owner = holder(&path);
    assert!(exclusive(&path).is_none() && shared(&path).is_none());
    // SIGKILL: the owner runs no code of its own any more.
    owner.kill().unwrap();
    owner.wait().unwrap();
    match find(&path).unwrap() {
        Found::Free(lease) => assert_eq!(lease.read().unwrap(), b"mine"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn who_waits_is_served_when_the_owner_is_killed() {
    let (_folder, path) = folder();
    let mut owner = holder(&path);
    let waiting = {
        let path = path.clone();
        std::thread::spawn(move || Lease::<Exclusive>::wait(&path).unwrap())
    };
    // Until the kernel lists it as blocked.
    let inode = format!(":{} ", path.metadata().unwrap().ino());
    while !std::fs::read_to_string("/proc/locks")
        .unwrap()
        .lines()
        .any(|line| line.contains("->") && line.contains(&inode))
    {
        std::thread::sleep(Duration::from_millis(1));
    }
    owner.kill().unwrap();
    owner.wait().unwrap();
    let lease = waiting.join().unwrap();
    assert!(exclusive(&path).is_none());
    drop(lease);
    assert!(exclusive(&path).is_some());
}

#[test]
fn a_program_that_is_started_does_not_inherit_a_lease() {
    let (_folder, path) = folder();
    let lease = exclusive(&path).unwrap();
    let mut program = Command::new("sleep").arg("600").spawn().unwrap();
    drop(lease);
    let free = exclusive(&path).is_some();
    program.kill().unwrap();
    program.wait().unwrap();
    assert!(free, "the program held the lease");
}

#[test]
fn a_file_that_was_removed_before_it_is_locked_is_opened_anew() {
    let (_folder, path) = folder();
    let removed = |path: &Path| {
        let early = LockFile::open(path).unwrap();
        exclusive(path).unwrap().remove().unwrap();
        early
    };
    let Attempt::Taken(lease) = removed(&path).try_take::<Exclusive>().unwrap() else { panic!() };
    assert!(exclusive(&path).is_none(), "the lease is on the file of this name");
    lease.remove().unwrap();
    let lease: Lease<Exclusive> = removed(&path).wait().unwrap();
    assert!(is_held(&path));
    drop(lease);
    // Another file has the name by then, and an owner.
    let early = LockFile::open(&path).unwrap();
    exclusive(&path).unwrap().remove().unwrap();
    let owner = exclusive(&path).unwrap();
    assert!(matches!(early.try_take::<Shared>().unwrap(), Attempt::Busy(_)));
    drop(owner);
}

#[test]
fn a_file_that_its_owner_removed_or_renamed_is_not_a_dead_owners() {
    let (folder, path) = folder();
    let early = || LockFile::open_as(&path, Opening::Existing).unwrap();
    let gone = |early: LockFile| match early.owner() {
        Err(error) => assert_eq!(error.kind(), io::ErrorKind::NotFound),
        other => panic!("{other:?}"),
    };
    let owner = exclusive(&path).unwrap();
    let opened = early();
    owner.remove().unwrap();
    gone(opened);
    let owner = exclusive(&path).unwrap();
    let opened = early();
    let other = folder.path().join("other");
    let owner = owner.rename(&other).unwrap();
    assert_eq!(owner.path(), other);
    assert!(is_held(&other), "it is held under its new name");
    drop(owner);
    gone(opened);
    assert!(matches!(find(&path).unwrap(), Found::Gone));
    assert!(matches!(find(&other).unwrap(), Found::Free(_)));
}

#[test]
fn one_holds_it_at_a_time_while_many_remove_it() {
    let (_folder, path) = folder();
    let inside = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..200 {
                    let lease = Lease::<Exclusive>::wait(&path).unwrap();
                    assert!(!inside.swap(true, Ordering::SeqCst), "two hold it at once");
                    std::thread::yield_now();
                    inside.store(false, Ordering::SeqCst);
                    lease.remove().unwrap();
                }
            });
        }
    });
    assert!(!path.exists());
}

#[test]
fn what_is_not_a_file_is_refused() {
    let (folder, path) = folder();
    std::fs::write(folder.path().join("target"), "kept").unwrap();
    let refused = |path: &Path| {
        assert!(Lease::<Exclusive>::try_take(path).is_err(), "{}", path.display());
        assert!(Lease::<Shared>::wait_to_read(path).is_err(), "{}", path.display());
        assert!(find(path).is_err(), "{}", path.display());
    };
    symlink("target", &path).unwrap();
    refused(&path);
    // Also one that leads nowhere: nothing is made behind it.
    let loose = folder.path().join("loose");
    symlink("nowhere", &loose).unwrap();
    refused(&loose);
    assert!(!folder.path().join("nowhere").exists());
    let below = folder.path().join("folder");
    std::fs::create_dir(&below).unwrap();
    refused(&below);
    let pipe = folder.path().join("pipe");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    refused(&pipe);
}

#[test]
fn reading_makes_no_file() {
    let (_folder, path) = folder();
    let missing = Lease::wait_to_read(&path).unwrap_err();
    assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    assert!(matches!(find(&path).unwrap(), Found::Gone));
    assert!(!path.exists());
    std::fs::write(&path, "x").unwrap();
    let lease = Lease::wait_to_read(&path).unwrap();
    assert_eq!(lease.read().unwrap(), b"x");
    assert!(exclusive(&path).is_none() && shared(&path).is_some());
}
