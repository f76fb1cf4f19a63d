//! New linked worktrees, as `git worktree add` leaves them.
//!
//! Duty: recognise the two halves of a new worktree in a stage: the `.git` file, and its folder
//! below `worktrees` of a repository that the host has. If they name each other and nothing else,
//! git runs in the new worktree by the configuration and the hooks of that repository, which the
//! call cannot change. So they are data. Non-goals: every other new repository stays held. Trust
//! boundary: all texts are the adversary's, and are compared with what git writes, byte by byte.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::change::{Change, Host, What};
use super::merged::Merged;
use super::repository::Repositories;
use crate::workspace::protected::table;

/// Longest text that is compared: a path, and a little more.
const MAX_TEXT: usize = 8 * 1024;

/// Names that lead git elsewhere, and whose text is checked here.
const CHECKED: [&str; 2] = ["commondir", "gitdir"];

/// A new worktree of a repository that the host has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worktree {
    /// The folder that holds the `.git` file, below the root.
    pub folder: PathBuf,
    /// Its folder below `worktrees`.
    pub own: PathBuf,
    /// The repository's git folder.
    pub git: PathBuf,
}

impl Worktree {
    /// Whether a path is one of its two halves, or the folder `worktrees` that is made for it.
    #[must_use]
    pub fn holds(&self, path: &Path) -> bool {
        path.starts_with(&self.own)
            || self.own.parent() == Some(path)
            || (path.file_name() == Some(OsStr::new(".git")) && path.parent() == Some(&self.folder))
    }
}

/// The new worktrees among changes.
#[must_use]
pub fn find(
    changes: &[Change],
    merged: &Merged<'_>,
    repositories: &Repositories<'_>,
    root: &Path,
) -> Vec<Worktree> {
    changes
        .iter()
        .filter(|change| change.path.file_name() == Some(OsStr::new("gitdir")))
        .filter_map(|change| read(change, changes, merged, repositories, root))
        .collect()
}

/// The worktree whose `gitdir` a change is.
fn read(
    gitdir: &Change,
    changes: &[Change],
    merged: &Merged<'_>,
    repositories: &Repositories<'_>,
    root: &Path,
) -> Option<Worktree> {
    let own = gitdir.path.parent()?;
    let worktrees =
        own.parent().filter(|path| path.file_name() == Some(OsStr::new("worktrees")))?;
    let git = worktrees.parent()?;
    let made = merged.change(own)?;
    let is_new = made.host == Host::Absent && matches!(made.what, What::Folder { .. });
    if !is_new || !repositories.is_git_on_host(git) {
        return None;
    }
    let text = |path: &Path| {
        let change = merged.change(path).filter(|change| change.host == Host::Absent)?;
        let text = merged.read_staged(change, MAX_TEXT)?;
        text.strip_suffix(b"\n").map(<[u8]>::to_vec)
    };
    if text(&own.join("commondir"))? != b"../.." {
        return None;
    }
    let back = text(&gitdir.path)?;
    let pointer = Path::new(OsStr::from_bytes(&back)).strip_prefix(root).ok()?;
    let folder = pointer.parent().filter(|folder| !folder.as_os_str().is_empty())?;
    let plain = pointer.file_name() == Some(OsStr::new(".git"))
        && root.join(pointer).as_os_str().as_bytes() == back;
    let there = [b"gitdir: ", root.join(own).as_os_str().as_bytes()].concat();
    // What is there already was judged as a folder of another working tree.
    if !plain || text(pointer)? != there || merged.on_host(folder) != Host::Absent {
        return None;
    }
    let is_data = |change: &Change| {
        let below = change.path.strip_prefix(own).unwrap_or(Path::new(""));
        let checked = CHECKED.iter().any(|name| below == Path::new(name));
        matches!(change.what, What::Folder { .. } | What::File(_))
            && (checked || table::find_in_git(below).is_none())
            // Nothing in it is a repository of its own: `logs` has a `HEAD`, and nothing else of one.
            && (below == Path::new("logs/HEAD") || !is_part_of_another(below))
    };
    let all = changes.iter().filter(|change| change.path.starts_with(own)).all(is_data);
    all.then(|| Worktree { folder: folder.to_owned(), own: own.to_owned(), git: git.to_owned() })
}

/// Whether a path below the folder of a worktree has a name by which git knows a repository.
fn is_part_of_another(below: &Path) -> bool {
    let parts = ["HEAD", "objects", "commondir"];
    below.iter().count() > 1
        && below.file_name().is_some_and(|name| {
            parts.iter().any(|part| table::is_same_name(name.as_bytes(), part.as_bytes()))
        })
}
