//! What a stage says to git about covered paths, before it is judged.
//!
//! Duty: reveal each staged index in place, and find the changes of git folders that must be held because
//! they change a covered path. Non-goals: all other verdicts (the judge), and what else is held with
//! these (the group of a git folder). Trust boundary: the stage is the adversary's. Indexes are read and
//! replaced through handles of their folders, and no symlink is followed.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, Mode, fchmod, renameat};
use rustix::io::Errno;

use super::reasons;
use super::refs::{self, HeldRef, Question, RefsError};
use crate::engine::plan::WorkTree;
use crate::git_index::covered::Covered;
use crate::git_index::{IndexError, MAX_INDEX, Tracked, reveal, reveal_new};
use crate::stage::change::{Change, Held, RootKind, What};
use crate::stage::conflict::open_file;
use crate::stage::group::{self, Part};
use crate::stage::handles::{open_folder, open_own, split};
use crate::stage::layer::{self, Entry};
use crate::stage::merged::Merged;
use crate::stage::repository::Repositories;
use crate::stage::worktree::{self, Worktree};

/// How long git may compare commits.
const PATIENCE: Duration = Duration::from_secs(10);

/// Where the host's git is looked for. `PATH` could lead into a workspace.
const GITS: [&str; 4] =
    ["/usr/bin/git", "/usr/local/bin/git", "/bin/git", "/run/current-system/sw/bin/git"];

/// One root of a stage.
#[derive(Clone, Copy)]
pub struct Staged<'a> {
    /// The host's folder.
    pub host: BorrowedFd<'a>,
    /// The upper layer.
    pub upper: BorrowedFd<'a>,
    /// The root's absolute path.
    pub root: &'a Path,
    /// What it is.
    pub kind: RootKind,
    /// What was covered, below the workspace.
    pub covered: &'a BTreeSet<PathBuf>,
    /// The working trees that were known when the call began.
    pub trees: &'a [WorkTree],
    /// A folder on the file system of the upper layer that only this program writes.
    pub room: &'a Path,
}

/// Reveals the staged indexes, and names the changes to hold back, by their number.
#[must_use]
pub fn settle(changes: &mut [Change], staged: &Staged<'_>) -> BTreeMap<usize, Held> {
    let mut found: BTreeMap<PathBuf, GitFolder> = BTreeMap::new();
    for (at, change) in changes.iter().enumerate() {
        let Some((folder, rest)) = staged.git_folder(&change.path) else { continue };
        let common = found.entry(common(&folder)).or_default();
        match rest.to_str() {
            Some("index") => common.indexes.push((at, folder)),
            _ if group::moves_branch(&rest) => common.refs.push(at),
            _ => {}
        }
        common.all.push(at);
    }
    found.retain(|_, git| !git.indexes.is_empty() || !git.refs.is_empty());
    if found.is_empty() {
        return BTreeMap::new();
    }
    let new = new_worktrees(changes, staged);
    let mut held = BTreeMap::new();
    for (folder, git) in &found {
        let mut own = BTreeMap::new();
        for (at, index) in &git.indexes {
            if let Err(why) = one_index(&mut changes[*at], &staged.covered_of(index, &new), staged)
            {
                own.insert(*at, reasons::index(&changes[*at].path, &why));
            }
        }
        if !git.refs.is_empty()
            && let Some(why) = moved_refs(folder, staged, &new)
        {
            own.extend(git.refs.iter().map(|at| (*at, why.clone())));
        }
        if !own.is_empty() {
            let belongs = |at: &&usize| {
                let path = &changes[**at].path;
                staged
                    .git_folder(path)
                    .is_some_and(|(_, rest)| group::part_of_rest(&rest) == Part::Metadata)
            };
            for at in git.all.iter().filter(belongs) {
                own.entry(*at).or_insert_with(reasons::with_index);
            }
        }
        held.extend(own);
    }
    held
}

/// The changes of a git folder and of the linked worktrees that it has.
#[derive(Debug, Default)]
struct GitFolder {
    /// Each staged index, with the git folder that it is in.
    indexes: Vec<(usize, PathBuf)>,
    refs: Vec<usize>,
    all: Vec<usize>,
}

/// The git folder that a linked worktree shares with others; any other folder itself.
fn common(folder: &Path) -> PathBuf {
    match folder.parent() {
        Some(parent) if parent.file_name() == Some(OsStr::new("worktrees")) => {
            parent.parent().unwrap_or(Path::new("")).to_owned()
        }
        _ => folder.to_owned(),
    }
}

fn new_worktrees(changes: &[Change], staged: &Staged<'_>) -> Vec<Worktree> {
    let merged = Merged::new(staged.host, staged.upper, staged.root, changes);
    let repositories = Repositories::new(&merged, staged.kind);
    worktree::find(changes, &merged, &repositories, staged.root)
}

impl Staged<'_> {
    /// The git folder that a path is in, and the rest of the path. A git folder under another name is
    /// known if a `.git` file leads to it.
    fn git_folder(&self, path: &Path) -> Option<(PathBuf, PathBuf)> {
        group::git_folder(self.kind, path).or_else(|| {
            let known = self.trees.iter().find_map(|tree| {
                let folder = tree.git.strip_prefix(self.root).ok()?;
                Some((folder, path.strip_prefix(folder).ok()?))
            })?;
            (!known.1.as_os_str().is_empty()).then(|| (known.0.to_owned(), known.1.to_owned()))
        })
    }

    /// The covered paths of the working trees that have their index in a git folder.
    fn covered_of(&self, git: &Path, new: &[Worktree]) -> Covered {
        let known = self.trees.iter().filter(|tree| tree.git.strip_prefix(self.root) == Ok(git));
        let known = known.map(|tree| tree.top.as_path());
        let new = new.iter().filter(|tree| tree.own == git).map(|tree| tree.folder.as_path());
        let mut tops = known.chain(new).peekable();
        if tops.peek().is_none() {
            return Covered::anywhere(self.covered);
        }
        let mut covered = Covered::default();
        tops.for_each(|top| covered.extend(Covered::below(self.covered, top)));
        covered
    }

    /// The same for a git folder with all of its linked worktrees.
    fn covered_of_all(&self, folder: &Path, new: &[Worktree]) -> Covered {
        let known = self.trees.iter().filter_map(|tree| tree.git.strip_prefix(self.root).ok());
        let known: BTreeSet<&Path> = known.filter(|git| common(git) == folder).collect();
        if known.is_empty() {
            return self.covered_of(folder, new);
        }
        let mut covered = Covered::default();
        known.into_iter().for_each(|git| covered.extend(self.covered_of(git, new)));
        covered
    }
}

/// Why an index cannot be applied.
#[derive(Debug, thiserror::Error)]
pub(in crate::stage) enum NotRevealed {
    #[error(transparent)]
    Index(#[from] IndexError),
    #[error("the index cannot be read or replaced in the stage: {0}")]
    Io(#[from] io::Error),
    #[error("it would be removed, and tracks covered paths")]
    Removed,
}

/// Reveals one index and notes what lies in the stage now.
fn one_index(
    change: &mut Change,
    covered: &Covered,
    staged: &Staged<'_>,
) -> Result<(), NotRevealed> {
    let mode = match &change.what {
        What::File(file) => file.mode & 0o777,
        What::Removed if covered.is_empty() => return Ok(()),
        What::Removed => return Err(NotRevealed::Removed),
        // The judge holds what is no file.
        What::Link { .. } | What::Folder { .. } | What::Special => return Ok(()),
    };
    let Some((folder, name)) = split(&change.path) else { return Ok(()) };
    let upper = open_own(staged.upper, folder).map_err(io::Error::from)?;
    let text = read(open_file(&upper, name)?)?;
    let original = match open_folder(staged.host, folder) {
        Ok(folder) => match open_file(folder, name) {
            Ok(file) => Some(read(file)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error.into()),
        },
        Err(Errno::NOENT) => None,
        Err(error) => return Err(io::Error::from(error).into()),
    };
    let is_covered = |path: &[u8]| covered.has(path);
    let revealed = match &original {
        Some(original) => reveal(&text, original, &is_covered),
        None => reveal_new(&text, &is_covered),
    };
    let revealed = match revealed {
        // The user's own choice, which this program cannot rewrite. Nothing in it had to be hidden.
        Err(IndexError::SplitIndex) if covered.is_empty() && is_split(original.as_deref()) => {
            return Ok(());
        }
        revealed => revealed?,
    };
    if revealed == text {
        return Ok(());
    }
    replace(staged.room, (upper.as_fd(), name), mode, &revealed)?;
    let Ok(Entry::File(file, _)) = layer::read(upper.as_fd(), name) else {
        return Err(io::Error::from(io::ErrorKind::InvalidData).into());
    };
    change.what = What::File(file);
    Ok(())
}

fn is_split(index: Option<&[u8]>) -> bool {
    index.is_some_and(|index| matches!(Tracked::read(index), Err(IndexError::SplitIndex)))
}

fn read(file: File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(MAX_INDEX as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Puts another content in the place of a staged file. Other names of that file keep theirs.
fn replace(
    room: &Path,
    (folder, name): (BorrowedFd<'_>, &OsStr),
    mode: u32,
    bytes: &[u8],
) -> io::Result<()> {
    let temporary = room.join(format!("index-{:016x}", u64::from_le_bytes(crate::sys::random()?)));
    let options = &mut std::fs::OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(0o600).open(&temporary)?;
    let placed = file
        .write_all(bytes)
        .and_then(|()| Ok(fchmod(&file, Mode::from_raw_mode(mode))?))
        .and_then(|()| Ok(renameat(CWD, &temporary, folder, name)?));
    if placed.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    placed
}

/// Why the refs of a git folder are held, if they are.
fn moved_refs(folder: &Path, staged: &Staged<'_>, new: &[Worktree]) -> Option<Held> {
    let covered = staged.covered_of_all(folder, new);
    if covered.is_empty() {
        return None;
    }
    match check(folder, staged, &covered) {
        Ok(held) => held.first().map(|HeldRef { name, path }| reasons::moved_ref(name, path)),
        Err(why) => Some(reasons::unknown_refs(&why)),
    }
}

fn check(folder: &Path, staged: &Staged<'_>, covered: &Covered) -> Result<Vec<HeldRef>, RefsError> {
    let host = open_folder(staged.host, folder).map_err(RefsError::Read)?;
    let upper = open_own(staged.upper, folder).map_err(RefsError::Read)?;
    refs::check(&Question {
        host: host.as_fd(),
        staged: upper.as_fd(),
        covered: &|path| covered.has(path),
        git: &host_git(staged.root)?,
        room: staged.room,
        deadline: Instant::now() + PATIENCE,
    })
}

/// The host's own git, which no command could have written.
fn host_git(root: &Path) -> Result<PathBuf, RefsError> {
    let outside = |path: &PathBuf| !path.starts_with(root);
    let found = GITS.iter().filter_map(|path| Path::new(path).canonicalize().ok()).find(outside);
    found.ok_or_else(|| RefsError::NoGit(io::ErrorKind::NotFound.into()))
}

#[cfg(test)]
#[path = "settle_tests.rs"]
mod tests;
