//! A new folder with all that is in it, as one operation.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Stat};

use super::super::change::{Change, What};
use super::super::handles::{self, split};
use super::super::journal::Act;
use crate::undo::trees::DEPTH_MAX;

/// The changes that make up a tree, by path.
pub(super) type Expected<'a> = HashMap<&'a Path, &'a Change>;

/// One folder on the way down.
struct Level {
    handle: OwnedFd,
    path: PathBuf,
    waiting: Vec<OsString>,
}

/// Walks a staged folder and makes every entry fit for the host. `None` if an entry is not what was
/// judged, or was not judged at all, or the tree is too deep: then its entries are applied one by one.
pub(super) fn take_tree(
    upper: &OwnedFd,
    top: &Path,
    expected: &Expected<'_>,
    owner: Option<(u32, u32)>,
) -> io::Result<Option<Act>> {
    let Some((folder, name)) = split(top) else { return Ok(None) };
    let parent = handles::open_own(upper, folder)?;
    let Some(stat) = handles::stat(&parent, name)? else { return Ok(None) };
    let staged = handles::identity(&stat);
    let Some(change) = expected.get(top).filter(|change| is_judged(change, &stat)) else {
        return Ok(None);
    };
    handles::clean(parent.as_fd(), name, &stat, mode_of(change), owner)?;
    let (mut files, mut folders, mut size) = (0_u64, 1_u64, 0_u64);
    let mut levels = vec![level(handles::open_own(&parent, Path::new(name))?, top.to_owned())?];
    while let Some(current) = levels.last_mut() {
        let Some(name) = current.waiting.pop() else {
            levels.pop();
            continue;
        };
        let path = current.path.join(&name);
        let Some(stat) = handles::stat(&current.handle, &name)? else { return Ok(None) };
        let judged = expected.get(path.as_path()).filter(|change| is_judged(change, &stat));
        let Some(change) = judged else { return Ok(None) };
        if let What::Link { target } = &change.what
            && handles::target(&current.handle, &name)? != *target
        {
            return Ok(None);
        }
        handles::clean(current.handle.as_fd(), &name, &stat, mode_of(change), owner)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => {
                let inside = handles::open_own(&current.handle, Path::new(&name))?;
                if levels.len() >= DEPTH_MAX {
                    return Ok(None);
                }
                folders += 1;
                levels.push(level(inside, path)?);
            }
            _ => {
                files += 1;
                size += handles::facts(&stat).size;
            }
        }
    }
    let complete = files + folders == expected.len() as u64;
    Ok(complete.then_some(Act::Tree { staged, files, folders, size }))
}

/// Everything below a staged folder, without a word where it cannot be read.
pub(super) fn entries(upper: &OwnedFd, top: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let first = handles::open_own(upper, top).map_err(io::Error::from);
    let Ok(first) = first.and_then(|folder| level(folder, top.to_owned())) else { return found };
    let mut levels = vec![first];
    while let Some(current) = levels.last_mut() {
        let Some(name) = current.waiting.pop() else {
            levels.pop();
            continue;
        };
        let path = current.path.join(&name);
        found.push(path.clone());
        // What is no folder cannot be opened as one.
        if levels.len() < DEPTH_MAX
            && let Some(current) = levels.last()
            && let Ok(inside) = handles::open_own(&current.handle, Path::new(&name))
            && let Ok(inside) = level(inside, path)
        {
            levels.push(inside);
        }
    }
    found
}

fn level(handle: OwnedFd, path: PathBuf) -> io::Result<Level> {
    let waiting = handles::names(&handle)?;
    Ok(Level { handle, path, waiting })
}

fn is_judged(change: &Change, stat: &Stat) -> bool {
    match (&change.what, FileType::from_raw_mode(stat.st_mode)) {
        (What::File(staged), FileType::RegularFile) => handles::identity(stat) == staged.identity,
        (What::Link { .. }, FileType::Symlink) | (What::Folder { .. }, FileType::Directory) => true,
        _ => false,
    }
}

fn mode_of(change: &Change) -> Option<u32> {
    match &change.what {
        What::File(staged) => Some(staged.mode),
        What::Folder { mode } => Some(*mode),
        What::Link { .. } | What::Removed | What::Special => None,
    }
}
