//! Git's own lock files, held while its metadata are applied.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags, openat, renameat_with, unlinkat};
use rustix::io::Errno;

use super::super::conflict::open_file;
use super::super::folder::Stage;
use super::super::handles::{open_folder, split};
use super::act::RootHandles;
use crate::undo::names::decode;

/// What our lock files hold, so that recovery removes ours and no other.
fn content(stage: &Stage) -> String {
    format!("runner {}\n", stage.label())
}

/// Takes all locks, or none. `false` if another process holds one.
pub(super) fn take(
    stage: &Stage,
    roots: &[RootHandles],
    locks: &[(usize, String)],
) -> io::Result<bool> {
    for (root, path) in locks {
        match take_one(stage, &roots[*root], path) {
            Ok(true) => {}
            Ok(false) => {
                release(stage, roots, locks);
                return Ok(false);
            }
            Err(error) => {
                release(stage, roots, locks);
                return Err(error);
            }
        }
    }
    Ok(true)
}

fn take_one(stage: &Stage, root: &RootHandles, path: &str) -> io::Result<bool> {
    let path = decode(path);
    let (folder, name) = split(&path).ok_or(io::ErrorKind::InvalidInput)?;
    let folder = match open_folder(&root.host, folder) {
        Ok(folder) => folder,
        // Without its folder the operation is a conflict of its own.
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV) => return Ok(true),
        Err(error) => return Err(error.into()),
    };
    // Complete before it has its name: a death must not leave an empty lock, which would be nobody's.
    write(&root.old, OsStr::new("lock"), stage)?;
    let flags = RenameFlags::NOREPLACE;
    match renameat_with(&root.old, "lock", &folder, name, flags) {
        Ok(()) => Ok(true),
        Err(Errno::EXIST) => Ok(is_ours(stage, &folder, name)),
        Err(Errno::XDEV) => match write(&folder, name, stage) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Ok(is_ours(stage, &folder, name))
            }
            written => written.map(|()| true),
        },
        Err(error) => Err(error.into()),
    }
}

fn write(folder: &OwnedFd, name: &OsStr, stage: &Stage) -> io::Result<()> {
    if name == "lock" {
        let _ = unlinkat(folder, name, AtFlags::empty());
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(folder, name, flags, Mode::from_raw_mode(0o644))?;
    File::from(file).write_all(content(stage).as_bytes())
}

fn is_ours(stage: &Stage, folder: &OwnedFd, name: &OsStr) -> bool {
    let wanted = content(stage);
    let read = || -> io::Result<Vec<u8>> {
        let mut found = Vec::new();
        open_file(folder, name)?.take(wanted.len() as u64 + 1).read_to_end(&mut found)?;
        Ok(found)
    };
    read().is_ok_and(|found| found == wanted.as_bytes())
}

/// Removes the locks that are ours.
pub(in crate::stage) fn release(stage: &Stage, roots: &[RootHandles], locks: &[(usize, String)]) {
    for (root, path) in locks {
        let path = decode(path);
        let Some((folder, name)) = split(&path) else { continue };
        let Ok(folder) = open_folder(&roots[*root].host, folder) else { continue };
        if is_ours(stage, &folder, name) {
            let _ = unlinkat(&folder, name, AtFlags::empty());
        }
    }
}
