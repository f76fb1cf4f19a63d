//! Indexes of git that hide covered files which git tracks.
//!
//! Duty: find the working trees of a workspace; for each that has covered files, make a copy of its index
//! in which they are not looked at ([`crate::stage::tracked`] says why), and remember it. Non-goals:
//! placing the copy (the layer of covers does), and what comes back (settling does).
//!
//! ```text
//! state/tracked/<digest>   empty: no covered file is tracked; else the copy
//! ```
//!
//! The digest is over the facts of the index and the covered paths, so that an index that did not change
//! is not read again. Git never writes an index in place: another content is another file.
//!
//! Trust boundary: indexes and `.git` files are the adversary's. They are opened beneath the folder that
//! is shown, through no symlink.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, Stat, fstat, openat2};
use rustix::io::Errno;

use super::covers::{Content, KEPT_SECONDS};
use super::materials::Missing;
use crate::engine::plan::{Note, WorkTree};
use crate::git_index::covered::{Covered, below};
use crate::git_index::{IndexError, MAX_INDEX, hide};
use crate::workspace::{Owner, Workspace};

/// The folder of copies in the caller's state folder.
pub const FOLDER: &str = "tracked";

/// Changes whenever another copy would be made of the same index.
const FORMAT: u64 = 1;

/// Longest `.git` file that is read: a path, and a little more.
const MAX_POINTER: u64 = 8 * 1024;

/// What indexes are hidden by.
#[derive(Clone, Copy)]
pub struct Hiding<'a> {
    /// What is covered, below the workspace.
    pub covered: &'a BTreeSet<PathBuf>,
    /// The caller's state folder.
    pub state: &'a Path,
    /// Whether to make what is missing.
    pub missing: Missing,
}

/// The working trees that have their git folder in the workspace; `repositories` are their `.git`.
#[must_use]
pub fn trees(workspace: &Workspace, repositories: &BTreeSet<PathBuf>) -> Vec<WorkTree> {
    let tree = |dot_git: &PathBuf| {
        let path = workspace.root().join(dot_git);
        let top = dot_git.parent()?;
        let git = match workspace.open(dot_git).ok()?.kind {
            FileType::RegularFile => {
                let mut text = Vec::new();
                let file = File::from(open(workspace.handle(), dot_git).ok()?);
                file.take(MAX_POINTER).read_to_end(&mut text).ok()?;
                let written = text.strip_prefix(b"gitdir:")?.trim_ascii();
                workspace.root().join(top).join(OsStr::from_bytes(written)).canonicalize().ok()?
            }
            FileType::Directory => path,
            _ => path.canonicalize().ok()?,
        };
        git.starts_with(workspace.root()).then(|| WorkTree { git, top: top.to_owned() })
    };
    repositories.iter().filter_map(tree).collect()
}

/// The copies of indexes that lie in a folder, by path below it.
#[must_use]
pub fn contents(
    (folder, path): (BorrowedFd<'_>, &Path),
    trees: &[WorkTree],
    hiding: Hiding<'_>,
    notes: &mut Vec<Note>,
) -> BTreeMap<PathBuf, Content> {
    let mut contents = BTreeMap::new();
    for tree in trees {
        let Ok(git) = tree.git.strip_prefix(path) else { continue };
        let index = git.join("index");
        if below(hiding.covered, &tree.top).next().is_none() {
            continue;
        }
        match content(folder, &index, tree, hiding) {
            Ok(Some(content)) => drop(contents.insert(index, content)),
            Ok(None) => {}
            Err(why) => notes.push(note(tree, &why)),
        }
    }
    contents
}

/// Why an index is not hidden.
#[derive(Debug, thiserror::Error)]
enum NotHidden {
    #[error("{0}")]
    Index(#[from] IndexError),
    #[error("the index cannot be read: {0}")]
    Io(#[from] io::Error),
}

fn note(tree: &WorkTree, why: &NotHidden) -> Note {
    let top = if tree.top.as_os_str().is_empty() { Path::new(".") } else { &tree.top };
    let text = format!(
        "git shows covered files in `{}` as changed: {why}; what it commits of them is held back",
        top.display()
    );
    Note { code: "git_index", text }
}

fn content(
    folder: BorrowedFd<'_>,
    path: &Path,
    tree: &WorkTree,
    hiding: Hiding<'_>,
) -> Result<Option<Content>, NotHidden> {
    let mut file = match open(folder, path) {
        Ok(handle) => File::from(handle),
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
        Err(error) => return Err(io::Error::from(error).into()),
    };
    let found = fstat(&file).map_err(io::Error::from)?;
    if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
        return Err(io::Error::from(io::ErrorKind::InvalidInput).into());
    }
    let digest = digest(&found, hiding.covered, &tree.top);
    let source = hiding.state.join(FOLDER).join(&digest);
    let any = match source.symlink_metadata() {
        Ok(remembered) => remembered.len() > 0,
        Err(_) => {
            let mut bytes = Vec::new();
            (&mut file).take(MAX_INDEX as u64 + 1).read_to_end(&mut bytes)?;
            let covered = Covered::below(hiding.covered, &tree.top);
            let hidden = hide(&bytes, &|path| covered.has(path))?;
            if hiding.missing == Missing::Make {
                remember(&source, hidden.as_deref().unwrap_or_default())?;
            }
            hidden.is_some()
        }
    };
    Ok(any.then(|| Content {
        digest,
        source,
        mode: found.st_mode & 0o777,
        owner: Owner { uid: found.st_uid, gid: found.st_gid },
        modified: (found.st_mtime, i64::try_from(found.st_mtime_nsec).unwrap_or(0)),
    }))
}

fn open(folder: BorrowedFd<'_>, path: &Path) -> Result<std::os::fd::OwnedFd, Errno> {
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    openat2(folder, path, flags, Mode::empty(), beneath)
}

fn digest(index: &Stat, covered: &BTreeSet<PathBuf>, top: &Path) -> String {
    let mut hasher = blake3::Hasher::new();
    let numbers = [
        FORMAT,
        index.st_dev,
        index.st_ino,
        index.st_size.cast_unsigned(),
        index.st_mtime.cast_unsigned(),
        index.st_mtime_nsec,
        index.st_ctime.cast_unsigned(),
        index.st_ctime_nsec,
    ];
    for number in numbers {
        hasher.update(&number.to_le_bytes());
    }
    for path in below(covered, top) {
        let name = path.as_os_str().as_bytes();
        hasher.update(&(name.len() as u64).to_le_bytes());
        hasher.update(name);
    }
    hasher.finalize().to_hex()[..32].to_owned()
}

/// Writes under a name of its own first: another call sees all or nothing.
pub(super) fn remember(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let random = u64::from_le_bytes(crate::sys::random()?);
    let temporary = folder.join(format!(".new-{random:016x}"));
    let written = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&temporary)
        .and_then(|mut file| file.write_all(bytes))
        .and_then(|()| std::fs::rename(&temporary, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    written
}

/// Removes copies that are older than any sandbox. One that is still right is made again.
pub fn forget(state: &Path) {
    forget_old(&state.join(FOLDER));
}

/// Removes files of a folder of ours that are older than any sandbox.
pub(super) fn forget_old(folder: &Path) {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries {
        let made = entry.metadata().and_then(|found| found.modified()).ok();
        let age = made.and_then(|made| made.elapsed().ok());
        if age.is_some_and(|age| age.as_secs() > KEPT_SECONDS) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
#[path = "hidden_index_tests.rs"]
mod tests;
