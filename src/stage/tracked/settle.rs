//! What a stage says to git, before it is judged.
//!
//! Duty: reveal each staged index in place, and find the changes of git folders that must be held because
//! they change a covered path, or bring what a call may not change. Non-goals: all other verdicts (the
//! judge), and what else is held with these (the group of a git folder). Trust boundary: the stage is the
//! adversary's. Indexes are read and replaced through handles of their folders, and no symlink is followed.

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

use super::checkout::Checkout;
use super::refs::{self, Entry as Tracking, HeldRef, Question, RefsError};
use super::{import, reasons};
use crate::engine::plan::WorkTree;
use crate::git_index::covered::Covered;
use crate::git_index::{IndexError, MAX_INDEX, new_entries, reveal, reveal_new};
use crate::stage::change::{Change, Held, RootKind, What};
use crate::stage::conflict::open_file;
use crate::stage::group::{self, GitFolders, Part};
use crate::stage::handles::{open_folder, open_own, split};
use crate::stage::judge::Rules;
use crate::stage::layer::{self, Entry};
use crate::stage::merged::Merged;
use crate::stage::repository::Repositories;
use crate::stage::worktree::{self, Worktree};

/// How long git may compare commits.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long git may take over objects: those of a whole repository after `git gc`.
const OBJECTS_PATIENCE: Duration = Duration::from_secs(60);

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
    /// How changes of the workspace are judged, in which working trees of the root stand.
    pub rules: &'a Rules<'a>,
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

/// What came of the objects of a stage.
#[derive(Debug, Default)]
pub struct Imported {
    /// The commits that it brings, by the git folder that has the objects.
    folders: BTreeMap<PathBuf, Result<Vec<String>, RefsError>>,
}

impl Imported {
    /// Whether the stage is another one now.
    #[must_use]
    pub fn is_changed(&self) -> bool {
        !self.folders.is_empty()
    }
}

/// Takes over the staged objects of the git folders that the host has. The stage must be walked again
/// where it was changed.
#[must_use]
pub fn import(changes: &[Change], staged: &Staged<'_>) -> Imported {
    let folders = staged.folders();
    let mut imported = Imported::default();
    for change in changes {
        let Some((folder, rest)) = folders.of(&change.path) else { continue };
        let is_object = rest.starts_with("objects") && rest != Path::new("objects");
        if is_object && !imported.folders.contains_key(&folder) {
            let (Ok(host), Ok(upper)) =
                (open_folder(staged.host, &folder), open_own(staged.upper, &folder))
            else {
                continue;
            };
            let taken = host_git(staged.root).and_then(|git| {
                import::import(&import::Import {
                    host: host.as_fd(),
                    staged: upper.as_fd(),
                    git: &git,
                    room: staged.room,
                    deadline: Instant::now() + OBJECTS_PATIENCE,
                })
            });
            imported.folders.insert(folder, taken);
        }
    }
    imported
}

/// Reveals the staged indexes, and names the changes to hold back, by their number.
#[must_use]
pub fn settle(
    changes: &mut [Change],
    staged: &Staged<'_>,
    imported: &Imported,
) -> BTreeMap<usize, Held> {
    let folders = staged.folders();
    let mut found: BTreeMap<PathBuf, GitFolder> = BTreeMap::new();
    for (at, change) in changes.iter().enumerate() {
        let Some((folder, rest)) = folders.of(&change.path) else { continue };
        let common = found.entry(common(&folder)).or_default();
        match rest.to_str() {
            Some("index") => common.indexes.push((at, folder)),
            _ if group::moves_branch(&rest) || group::keeps_commit(&rest) => common.refs.push(at),
            _ => {}
        }
        common.all.push((at, group::part_of_rest(&rest)));
    }
    let has_commits = |folder: &Path| {
        imported.folders.get(folder).is_some_and(|it| !matches!(it, Ok(none) if none.is_empty()))
    };
    found.retain(|folder, git| {
        !git.indexes.is_empty() || !git.refs.is_empty() || has_commits(folder)
    });
    if found.is_empty() {
        return BTreeMap::new();
    }
    let new = new_worktrees(changes, staged);
    let mut held = BTreeMap::new();
    for (folder, git) in &found {
        let mut own = BTreeMap::new();
        let commits = match imported.folders.get(folder) {
            None => &[],
            Some(Ok(commits)) => &commits[..],
            Some(Err(why)) => {
                held.extend(git.all.iter().map(|(at, _)| (*at, reasons::objects(why))));
                continue;
            }
        };
        let checkout = staged.checkout(folder, &new);
        for (at, index) in &git.indexes {
            let covered = staged.covered_of(index, &new);
            if let Err(why) = one_index(&mut changes[*at], folder, &covered, &checkout, staged) {
                own.insert(*at, reasons::index(&changes[*at].path, &why));
            }
        }
        let mut with_objects = false;
        if (!git.refs.is_empty() || !commits.is_empty())
            && let Some((why, is_commit)) = moved_refs(folder, staged, &new, &checkout, commits)
        {
            // A later call could refer to a commit that is there.
            with_objects = is_commit;
            let objects = git.all.iter().filter(|(_, part)| is_commit && *part == Part::Objects);
            let all = git.refs.iter().copied().chain(objects.map(|(at, _)| *at));
            own.extend(all.map(|at| (at, why.clone())));
        }
        if !own.is_empty() {
            for (at, part) in &git.all {
                if *part == Part::Metadata || (with_objects && *part == Part::Objects) {
                    own.entry(*at).or_insert_with(reasons::with_index);
                }
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
    all: Vec<(usize, Part)>,
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
    let repositories = Repositories::new(&merged, staged.kind, staged.rules.home);
    worktree::find(changes, &merged, &repositories, staged.root)
}

impl<'a> Staged<'a> {
    fn folders(&self) -> GitFolders<'a> {
        GitFolders::new(self.kind, self.host)
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

    /// Where entries of a git folder and of its linked worktrees would be checked out.
    fn checkout(&self, folder: &Path, new: &[Worktree]) -> Checkout<'a> {
        let known = self
            .trees
            .iter()
            .filter(|tree| tree.git.strip_prefix(self.root).is_ok_and(|git| common(git) == folder));
        let new = new.iter().filter(|tree| common(&tree.own) == folder);
        let mut tops: Vec<PathBuf> = known.map(|tree| tree.top.clone()).collect();
        tops.extend(new.map(|tree| tree.folder.clone()));
        Checkout { rules: self.rules, tops }
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
    #[error("it has a path that the call may not change, and not as the host has it")]
    Checkout(Vec<u8>),
    #[error(transparent)]
    Git(#[from] RefsError),
    #[error("the index cannot be read or replaced in the stage: {0}")]
    Io(#[from] io::Error),
    #[error("it would be removed, and tracks covered paths")]
    Removed,
}

/// Reveals one index and notes what lies in the stage now.
fn one_index(
    change: &mut Change,
    git: &Path,
    covered: &Covered,
    checkout: &Checkout<'_>,
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
        Some(original) => reveal(&text, original, &is_covered)?,
        None => reveal_new(&text, &is_covered)?,
    };
    new_in_index(&text, original.as_deref(), git, checkout, staged)?;
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

/// Refuses an index with a new entry that may not be checked out.
fn new_in_index(
    index: &[u8],
    original: Option<&[u8]>,
    git: &Path,
    checkout: &Checkout<'_>,
    staged: &Staged<'_>,
) -> Result<(), NotRevealed> {
    let mut entries = Vec::new();
    new_entries(index, original, |path, mode, id| {
        entries.push(Tracking { path: path.to_vec(), mode, id: id.to_vec(), target: None });
    })?;
    if entries.iter().any(|entry| entry.mode == refs::LINK) {
        with_question(git, staged, &[], &|_| None, |question| {
            refs::read_targets(question, &mut entries)
        })?;
    }
    checkout.held(&entries).map_or(Ok(()), |path| Err(NotRevealed::Checkout(path)))
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

/// Why the refs of a git folder are held, if they are; and whether a new commit is the reason.
fn moved_refs(
    folder: &Path,
    staged: &Staged<'_>,
    new: &[Worktree],
    checkout: &Checkout<'_>,
    commits: &[String],
) -> Option<(Held, bool)> {
    let covered = staged.covered_of_all(folder, new);
    let held = |entries: &[Tracking]| {
        let changed = entries.iter().find(|entry| covered.has(&entry.path));
        changed.map(|entry| entry.path.clone()).or_else(|| checkout.held(entries))
    };
    match with_question(folder, staged, commits, &held, refs::check) {
        Ok(held) => held.iter().max_by_key(|held| held.is_commit).map(|found| {
            let HeldRef { name, path, is_commit } = found;
            let why = match covered.has(path) {
                true => reasons::moved_ref(name, path),
                false => reasons::ref_brings(name, path),
            };
            (why, *is_commit)
        }),
        Err(why) => Some((reasons::unknown_refs(&why), !commits.is_empty())),
    }
}

/// Asks about the git folder that has the objects.
fn with_question<T>(
    folder: &Path,
    staged: &Staged<'_>,
    commits: &[String],
    held: &dyn Fn(&[Tracking]) -> Option<Vec<u8>>,
    ask: impl FnOnce(&Question<'_>) -> Result<T, RefsError>,
) -> Result<T, RefsError> {
    let host = open_folder(staged.host, folder).map_err(RefsError::Read)?;
    let upper = open_own(staged.upper, folder).map_err(RefsError::Read)?;
    ask(&Question {
        host: host.as_fd(),
        staged: upper.as_fd(),
        commits,
        held,
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
