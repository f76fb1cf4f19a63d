//! The turn to change a folder of the host: judging and changing are one step.
//!
//! Two calls may each bring one half of what the host would run: `HEAD` and `config` of a repository
//! the one, `objects` and `refs` the other. Each is harmless by itself. So from the first look at the
//! host until the last change, only one of them works in a folder: the apply of a call, that of a
//! person, an undo, recovery, and each write of a tool through the broker.
//!
//! Duty: one lock for each folder, shared by all processes of a caller. Non-goals: programs of the host
//! (the apply finds conflicts with those), callers with another state folder.
//!
//! - The lock files lie in `turns` in the state folder, named by the folder's device and inode: two
//!   paths of one folder have one lock. Nothing in a sandbox can hold one.
//! - A folder's own lock is exclusive. Those of the folders above it are shared, so that a workspace
//!   and a folder in it, which may be a workspace too, exclude each other.
//! - All locks are taken in the order of their names, so that no two processes wait for each other.
//!   Who holds a turn waits for no lease of another kind.
//! - A lock ends with its process. If that died while it applied changes, the next turn begins after
//!   those were brought to their end: what it judges would change otherwise.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use super::apply::Sync;
use super::folder::{self, Root};
use super::journal::Journal;
use super::recover::finish_all;
use crate::ids::Identity;
use crate::sys::lease::{self, Attempt, Exclusive, Found, Lease, LockFile, Mode, Shared};

const TURNS: &str = "turns";

/// The first pause of who waits; most turns take less than a millisecond.
const FIRST_PAUSE: Duration = Duration::from_micros(100);

/// The longest pause: it delays the next turn by as much.
const LONGEST_PAUSE: Duration = Duration::from_millis(5);

/// Lock files that are older are removed when nobody holds them.
const KEPT: Duration = Duration::from_secs(24 * 60 * 60);

/// The turn to change some folders, until it is dropped.
#[derive(Debug)]
#[must_use = "the turn is over when this is dropped"]
pub struct Turn {
    _held: Vec<Held>,
}

#[derive(Debug)]
enum Held {
    Own { _lease: Lease<Exclusive> },
    Above { _lease: Lease<Shared> },
}

/// Why there is no turn.
#[derive(Debug, thiserror::Error)]
pub enum TurnError {
    /// Others have had it all the time.
    #[error("other calls have been changing {folder} for more than {seconds} s", folder = .0.display(), seconds = .1.as_secs())]
    Busy(PathBuf, Duration),
    /// A process died while it applied changes there, and that cannot be brought to an end now.
    #[error("an apply that was interrupted could not be ended; {path} names what is between", path = .0.display())]
    Interrupted(PathBuf),
    /// A lock file cannot be used.
    #[error("cannot {0} {path}: {2}", path = .1.display())]
    Io(&'static str, PathBuf, #[source] io::Error),
}

/// How a folder is locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Depth {
    /// It is above one that is changed.
    Above,
    /// It is changed itself.
    Own,
}

type Folders = BTreeMap<Identity, (Depth, PathBuf)>;

impl Turn {
    /// Waits for the turn to judge and change these folders, with all that is below them. It blocks.
    ///
    /// # Errors
    /// See [`TurnError`].
    pub fn take(state: &Path, folders: &[PathBuf], patience: Duration) -> Result<Self, TurnError> {
        let turn = Self::lock(state, folders, patience)?;
        if interrupted(state, folders)?.is_none() {
            return Ok(turn);
        }
        // Recovery takes the turns that it needs.
        drop(turn);
        let _ = finish_all(state, Sync::Never);
        let turn = Self::lock(state, folders, patience)?;
        match interrupted(state, folders)? {
            None => Ok(turn),
            Some(journal) => Err(TurnError::Interrupted(journal)),
        }
    }

    /// The same for recovery, which ends what was interrupted.
    pub(super) fn lock(
        state: &Path,
        folders: &[PathBuf],
        patience: Duration,
    ) -> Result<Self, TurnError> {
        let place = state.join(TURNS);
        let deadline = Instant::now() + patience;
        let mut held = Vec::new();
        for (Identity { dev, ino }, (depth, folder)) in all(folders)? {
            let waiting = Waiting { place: &place, folder: &folder, deadline, patience };
            let name = place.join(format!("{dev:x}-{ino:x}"));
            held.push(match depth {
                Depth::Own => Held::Own { _lease: waiting.lease(&name)? },
                Depth::Above => Held::Above { _lease: waiting.lease(&name)? },
            });
        }
        Ok(Self { _held: held })
    }
}

/// Who waits for one lock.
struct Waiting<'a> {
    place: &'a Path,
    folder: &'a Path,
    deadline: Instant,
    patience: Duration,
}

impl Waiting<'_> {
    fn lease<M: Mode>(&self, name: &Path) -> Result<Lease<M>, TurnError> {
        let failed = |error| TurnError::Io("lock", name.to_owned(), error);
        let mut file = self.open(name).map_err(failed)?;
        let mut pause = FIRST_PAUSE;
        loop {
            file = match file.try_take().map_err(failed)? {
                Attempt::Taken(lease) => return Ok(lease),
                Attempt::Busy(file) => file,
            };
            let left = self.deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(TurnError::Busy(self.folder.to_owned(), self.patience));
            }
            std::thread::sleep(pause.min(left));
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    fn open(&self, name: &Path) -> io::Result<LockFile> {
        match LockFile::open(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                DirBuilder::new().mode(0o700).recursive(true).create(self.place)?;
                LockFile::open(name)
            }
            opened => opened,
        }
    }
}

/// These folders and those above them.
fn all(folders: &[PathBuf]) -> Result<Folders, TurnError> {
    let mut all = Folders::new();
    for folder in folders {
        for (at, path) in folder.ancestors().enumerate() {
            let found = fs::metadata(path)
                .map_err(|error| TurnError::Io("look at", path.to_owned(), error))?;
            let identity = Identity { dev: found.dev(), ino: found.ino() };
            let depth = if at == 0 { Depth::Own } else { Depth::Above };
            let known = all.entry(identity).or_insert_with(|| (depth, path.to_owned()));
            known.0 = known.0.max(depth);
        }
    }
    Ok(all)
}

/// The journal of an apply in these folders that is not over, although the turn is ours.
fn interrupted(state: &Path, folders: &[PathBuf]) -> Result<Option<PathBuf>, TurnError> {
    let found = folder::with_journal(state)
        .map_err(|error| TurnError::Io("look at the stages in", state.to_owned(), error))?;
    if found.is_empty() {
        return Ok(None);
    }
    let ours = all(folders)?;
    for (stage, roots) in found {
        let journal = stage.join(folder::JOURNAL);
        // What recovery cannot go on with changes nothing any more.
        let can_go_on = roots.iter().all(|root| root.open().is_ok())
            && matches!(Journal::read(journal.clone()), Ok(Some(_)));
        let theirs: Vec<PathBuf> = roots.iter().map(Root::path).collect();
        if can_go_on && all(&theirs).is_ok_and(|theirs| meet(&ours, &theirs)) {
            return Ok(Some(journal));
        }
    }
    Ok(None)
}

/// Whether a folder of the one is the same as, above or below one of the other.
fn meet(one: &Folders, other: &Folders) -> bool {
    one.iter().any(|(identity, (depth, _))| {
        other.get(identity).is_some_and(|(theirs, _)| (*depth).max(*theirs) == Depth::Own)
    })
}

/// Removes old lock files that no process holds.
pub fn sweep(state: &Path) {
    let Ok(entries) = fs::read_dir(state.join(TURNS)) else { return };
    let is_old = |entry: &fs::DirEntry| {
        let made = entry.metadata().and_then(|found| found.modified());
        made.is_ok_and(|at| SystemTime::now().duration_since(at).is_ok_and(|age| age > KEPT))
    };
    for entry in entries.flatten().filter(is_old) {
        if let Ok(Found::Free(lease)) = lease::find(&entry.path()) {
            let _ = lease.remove();
        }
    }
}

#[cfg(test)]
#[path = "turn_tests.rs"]
mod tests;
