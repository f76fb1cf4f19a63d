//! What a stage says to git about covered paths, before it is judged.
//!
//! Duty: reveal each staged index in place, and find the changes of git folders that must be held because
//! they change a covered path, or bring what the host runs. Non-goals: all other verdicts (the judge), and what else is held with
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
use super::refs::{self, Entry as Tracking, HeldRef, Question, RefsError};
use super::runs::Runs;
use crate::engine::plan::WorkTree;
use crate::git_index::covered::Covered;
use crate::git_index::{IndexError, MAX_INDEX, new_entries, reveal, reveal_new};
use crate::stage::change::{Change, Held, RootKind, What};
use crate::stage::conflict::open_file;
use crate::stage::group::{self, Part};
use crate::stage::handles::{open_folder, open_own, split};
use crate::stage::layer::{self, Entry};
use crate::stage::led::Led;
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
    /// The workspace, which is the root or has working trees of it.
    pub workspace: BorrowedFd<'a>,
    /// Where configurations outside the root lead git to, below the workspace.
    pub led: &'a [Led],
    /// The `.git` of each repository below the root that is known.
    pub repositories: &'a BTreeSet<PathBuf>,
    /// The caller's home, for which `~` stands in a configuration.
    pub home: Option<&'a Path>,
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
    let (new, led) = surroundings(changes, staged);
    let mut held = BTreeMap::new();
    for (folder, git) in &found {
        let mut own = BTreeMap::new();
        for (at, index) in &git.indexes {
            let covered = staged.covered_of(index, &new);
            let runs = staged.runs(folder, &new, &led);
            if let Err(why) = one_index(&mut changes[*at], &covered, &runs, staged) {
                own.insert(*at, reasons::index(&changes[*at].path, &why));
            }
        }
        if !git.refs.is_empty()
            && let Some(why) = moved_refs(folder, staged, &new, &led)
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

/// The new worktrees, and where configurations lead git to.
fn surroundings(changes: &[Change], staged: &Staged<'_>) -> (Vec<Worktree>, Vec<Led>) {
    let merged = Merged::new(staged.host, staged.upper, staged.root, changes);
    let repositories = Repositories::new(&merged, staged.kind, staged.home);
    let worktrees = worktree::find(changes, &merged, &repositories, staged.root);
    let mut led = staged.led.to_vec();
    // Of a git folder elsewhere, the configurations outside tell.
    if staged.kind == RootKind::Workspace {
        let paths = changes.iter().map(|change| change.path.as_path());
        let known = staged.repositories.iter().filter_map(|git| git.parent());
        // Too many to follow: then the judge holds everything.
        led.extend(repositories.led(paths.chain(known), &worktrees).unwrap_or_default());
    }
    (worktrees, led)
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

    /// What entries of a git folder are compared with, and of its linked worktrees.
    fn runs<'r>(&'r self, folder: &Path, new: &[Worktree], led: &'r [Led]) -> Runs<'r> {
        let known = self
            .trees
            .iter()
            .filter(|tree| tree.git.strip_prefix(self.root).is_ok_and(|git| common(git) == folder));
        let new = new.iter().filter(|tree| common(&tree.own) == folder);
        let mut tops: Vec<PathBuf> = known.map(|tree| tree.top.clone()).collect();
        tops.extend(new.map(|tree| tree.folder.clone()));
        Runs { workspace: self.workspace, tops, led }
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
    #[error("it has a file that the host would run, and that is not the host's own")]
    Runs(Vec<u8>),
    #[error("the index cannot be read or replaced in the stage: {0}")]
    Io(#[from] io::Error),
    #[error("it would be removed, and tracks covered paths")]
    Removed,
}

/// Reveals one index and notes what lies in the stage now.
fn one_index(
    change: &mut Change,
    covered: &Covered,
    runs: &Runs<'_>,
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
    foreign_entry(&text, original.as_deref(), runs)?;
    let revealed = match &original {
        Some(original) => reveal(&text, original, &is_covered)?,
        None => reveal_new(&text, &is_covered)?,
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

/// Refuses an index with an entry that the host would run, and that is not its own.
fn foreign_entry(
    index: &[u8],
    original: Option<&[u8]>,
    runs: &Runs<'_>,
) -> Result<(), NotRevealed> {
    let mut foreign = None;
    new_entries(index, original, |path, mode, id| {
        if foreign.is_none() && runs.is_foreign(&Tracking { path, mode, id }) {
            foreign = Some(path.to_vec());
        }
    })?;
    foreign.map_or(Ok(()), |path| Err(NotRevealed::Runs(path)))
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
fn moved_refs(folder: &Path, staged: &Staged<'_>, new: &[Worktree], led: &[Led]) -> Option<Held> {
    let covered = staged.covered_of_all(folder, new);
    let runs = staged.runs(folder, new, led);
    let is_held = |entry: &Tracking<'_>| covered.has(entry.path) || runs.is_foreign(entry);
    match check(folder, staged, &is_held) {
        Ok(held) => held.first().map(|HeldRef { name, path }| match covered.has(path) {
            true => reasons::moved_ref(name, path),
            false => reasons::ref_runs(name, path),
        }),
        Err(why) => Some(reasons::unknown_refs(&why)),
    }
}

fn check(
    folder: &Path,
    staged: &Staged<'_>,
    is_held: &dyn Fn(&Tracking<'_>) -> bool,
) -> Result<Vec<HeldRef>, RefsError> {
    let host = open_folder(staged.host, folder).map_err(RefsError::Read)?;
    let upper = open_own(staged.upper, folder).map_err(RefsError::Read)?;
    refs::check(&Question {
        host: host.as_fd(),
        staged: upper.as_fd(),
        is_held,
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
