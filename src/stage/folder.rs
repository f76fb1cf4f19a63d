//! One stage on disk, and all stages of a caller.
//!
//! ```text
//! $XDG_STATE_HOME/runner/stages/
//!   spare/<chance>       work folders that only a mount by root can empty, for the next stage
//!   <label>/
//!     lease              held by the process that the stage belongs to
//!     stage.json         the call, the moment of the claim, the roots with their identity
//!     journal            while changes are applied; see `journal`
//!     held.json          what was held back
//!     covered.json       what was hidden from the call
//!     0/upper 0/work     the overlay's folders for root 0, the workspace; 1/… for further roots
//!     0/old              what an apply took away and has not handed to undo yet
//! ```
//!
//! Non-goals: mounting, and what the entries of `upper` mean. Trust boundary: the folder is the caller's
//! own; what lies in `upper` was written by the adversary.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{
    CWD, FallocateFlags, Mode, OFlags, RenameFlags, ResolveFlags, fallocate, fstat, openat2,
    renameat_with,
};
use serde::{Deserialize, Serialize};

use super::change::{Held, Moment, RootKind};
use super::handles;
use crate::ids::{CallId, Identity};
use crate::sys::lease::{self, Exclusive, Found, Lease};
use crate::undo::names::{decode, encode};

const STAGES: &str = "stages";
const SPARE: &str = "spare";
const LEASE: &str = "lease";
const ABOUT: &str = "stage.json";
/// The journal's name; `journal` reads and writes it.
pub(super) const JOURNAL: &str = "journal";
const HELD: &str = "held.json";
const COVERED: &str = "covered.json";
/// Room for the records of a call that fills the disk of its own stage.
const RESERVE: (&str, u64) = ("reserve", 4 << 20);

/// A stage whose lease this process holds.
#[derive(Debug)]
pub struct Stage {
    folder: PathBuf,
    label: CallId,
    about: About,
    lease: Lease<Exclusive>,
    applied_by: Option<CallId>,
}

/// What must be known of a stage after its process died.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct About {
    /// The call that claimed it.
    call: Option<String>,
    /// The file system's time at the claim.
    claim: Option<(i64, u32)>,
    roots: Vec<Root>,
}

/// A folder of the host that the stage has changes for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Root {
    /// Its path, encoded as `undo` encodes paths.
    path: String,
    /// Which folder it was when the stage was made.
    pub identity: Identity,
    /// What it is.
    pub kind: RootKind,
}

/// Why a stage cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StageError {
    /// Another process holds it.
    #[error("the stage {0} is in use")]
    Running(String),
    /// There is none of that name.
    #[error("there is no stage {0}")]
    Missing(String),
    /// Something on disk failed.
    #[error("cannot {0} {1}: {2}")]
    Io(&'static str, PathBuf, #[source] io::Error),
    /// The folder of the host is another one now.
    #[error("{0} is not the folder that the stage was made for")]
    OtherRoot(PathBuf),
}

/// What a stage is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StageState {
    /// A process holds it and no call has claimed it.
    Waiting,
    /// A process holds it for a call.
    Running,
    /// Its process died while changes were applied: [`recover`](super::recover) ends that.
    Applying,
    /// Changes were held back or wait for review.
    Kept,
    /// Its process died; nothing of it was applied.
    Dead,
}

/// A stage as it is listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its label.
    pub label: CallId,
    /// The call that claimed it.
    pub call: Option<String>,
    /// The workspace.
    pub workspace: PathBuf,
    /// What it is about.
    pub state: StageState,
    /// When its changes were held back, since 1970.
    pub kept_at: Option<Duration>,
}

/// A change that was held back, as it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct HeldRow {
    pub root: usize,
    pub path: String,
    pub why: super::change::Why,
    pub reason: String,
    pub rule: String,
    pub next: String,
}

impl HeldRow {
    pub(super) fn new(root: usize, path: &Path, held: &Held) -> Self {
        let Held { why, reason, rule, next } = held.clone();
        Self { root, path: encode(path), why, reason, rule, next }
    }

    pub(super) fn held(&self) -> Held {
        let Self { why, reason, rule, next, .. } = self.clone();
        Held { why, reason, rule, next }
    }
}

impl Root {
    /// A folder of the host as it is now.
    ///
    /// # Errors
    /// It cannot be opened, or a symlink stands on the way.
    pub fn of(path: &Path, kind: RootKind) -> io::Result<Self> {
        let identity = handles::identity(&fstat(open_host(path)?)?);
        Ok(Self { path: encode(path), identity, kind })
    }

    /// Its path on the host.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        decode(&self.path)
    }

    /// Opens it, if it is still the same folder.
    ///
    /// # Errors
    /// It is gone, or another folder has its path.
    pub fn open(&self) -> Result<OwnedFd, StageError> {
        let path = self.path();
        let failed = |error: io::Error| StageError::Io("open", path.clone(), error);
        let handle = open_host(&path).map_err(failed)?;
        let found = fstat(&handle).map_err(|error| failed(error.into()))?;
        match handles::identity(&found) == self.identity {
            true => Ok(handle),
            false => Err(StageError::OtherRoot(path)),
        }
    }
}

fn open_host(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)?)
}

impl Stage {
    /// Makes a stage with its folders. A spare work folder is used if there is one.
    ///
    /// # Errors
    /// It is there already, or cannot be made.
    pub fn make(state: &Path, label: &CallId, roots: Vec<Root>) -> Result<Self, StageError> {
        let folder = state.join(STAGES).join(label.as_str());
        let failed = |what| {
            let folder = folder.clone();
            move |error| StageError::Io(what, folder, error)
        };
        private(&state.join(STAGES), true).map_err(failed("make"))?;
        private(&folder, false).map_err(failed("make"))?;
        let lease = Lease::try_take(&folder.join(LEASE))
            .map_err(failed("lock"))?
            .ok_or_else(|| StageError::Running(label.to_string()))?;
        for index in 0..roots.len() {
            let root = folder.join(index.to_string());
            let make = || {
                private(&root, false)?;
                private(&root.join("upper"), false)?;
                match take_spare(state, &root.join("work")) {
                    true => Ok(()),
                    false => private(&root.join("work"), false),
                }
            };
            make().map_err(failed("make folders of"))?;
        }
        reserve(&folder.join(RESERVE.0));
        let about = About { call: None, claim: None, roots };
        let stage = Self { folder, label: label.clone(), about, lease, applied_by: None };
        stage.write(ABOUT, &stage.about)?;
        Ok(stage)
    }

    /// Opens a stage that no other process holds.
    ///
    /// # Errors
    /// See [`StageError`].
    pub fn open(state: &Path, label: &CallId) -> Result<Self, StageError> {
        let folder = state.join(STAGES).join(label.as_str());
        let failed = |what| {
            let folder = folder.clone();
            move |error| StageError::Io(what, folder, error)
        };
        let lease = match lease::find(&folder.join(LEASE)).map_err(failed("lock"))? {
            Found::Free(lease) => lease,
            Found::Held(_) => return Err(StageError::Running(label.to_string())),
            Found::Gone => return Err(StageError::Missing(label.to_string())),
        };
        let about = read(&folder.join(ABOUT)).map_err(failed("read"))?;
        Ok(Self { folder, label: label.clone(), about, lease, applied_by: None })
    }

    /// Notes that a call uses the stage from now on. The moment is the file system's own, because it is
    /// compared with the times of files.
    ///
    /// # Errors
    /// It cannot be noted.
    pub fn claim(&mut self, call: &CallId) -> Result<Moment, StageError> {
        self.about.call = Some(call.to_string());
        // Twice: the first file tells the time that the second one holds.
        self.write(ABOUT, &self.about)?;
        let found = fs::metadata(self.folder.join(ABOUT))
            .map_err(|error| StageError::Io("read", self.folder.clone(), error))?;
        let nanoseconds = u32::try_from(found.mtime_nsec()).unwrap_or(0);
        self.about.claim = Some((found.mtime(), nanoseconds));
        self.write(ABOUT, &self.about)?;
        Ok(Moment { seconds: found.mtime(), nanoseconds })
    }

    /// When a call claimed it.
    #[must_use]
    pub fn claimed(&self) -> Option<Moment> {
        self.about.claim.map(|(seconds, nanoseconds)| Moment { seconds, nanoseconds })
    }

    /// The call that claimed it, or its label.
    #[must_use]
    pub fn call(&self) -> CallId {
        self.about.call.as_deref().and_then(CallId::new).unwrap_or_else(|| self.label.clone())
    }

    /// Whose work what is applied from now on is: a call of a person, under whose name it is undone.
    pub fn applied_by(&mut self, call: &CallId) {
        self.applied_by = Some(call.clone());
    }

    /// The call under whose name changes are undone.
    #[must_use]
    pub(super) fn undone_as(&self) -> CallId {
        self.applied_by.clone().unwrap_or_else(|| self.call())
    }

    /// Its label.
    #[must_use]
    pub fn label(&self) -> &CallId {
        &self.label
    }

    /// The roots, in order.
    #[must_use]
    pub fn roots(&self) -> &[Root] {
        &self.about.roots
    }

    /// Its own folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The upper folder of a root.
    #[must_use]
    pub fn upper(&self, root: usize) -> PathBuf {
        self.folder.join(root.to_string()).join("upper")
    }

    /// The work folder of a root.
    #[must_use]
    pub fn work(&self, root: usize) -> PathBuf {
        self.folder.join(root.to_string()).join("work")
    }

    /// Gives the reserved room back: the command has ended, and its records are written next.
    pub fn free_reserve(&self) {
        let _ = fs::remove_file(self.folder.join(RESERVE.0));
    }

    /// Keeps the stage for review, with what was held back.
    pub(super) fn keep(&self, held: &[HeldRow]) -> Result<(), StageError> {
        self.write(HELD, &held)
    }

    /// What was held back, by root and path.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn held(&self) -> Result<Vec<(usize, PathBuf, Held)>, StageError> {
        match read::<Vec<HeldRow>>(&self.folder.join(HELD)) {
            Ok(rows) => {
                Ok(rows.iter().map(|row| (row.root, decode(&row.path), row.held())).collect())
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(StageError::Io("read", self.folder.clone(), error)),
        }
    }

    /// Notes what was hidden from the call, below the workspace: changes that are kept are judged by
    /// it again.
    ///
    /// # Errors
    /// It cannot be noted.
    pub fn note_covered(&self, covered: &BTreeSet<PathBuf>) -> Result<(), StageError> {
        let paths: Vec<String> = covered.iter().map(|path| encode(path)).collect();
        self.write(COVERED, &paths)
    }

    /// What was hidden from the call.
    ///
    /// # Errors
    /// It was not noted, or cannot be read.
    pub fn covered(&self) -> Result<BTreeSet<PathBuf>, StageError> {
        let place = self.folder.join(COVERED);
        match read::<Vec<String>>(&place) {
            Ok(paths) => Ok(paths.iter().map(|path| decode(path)).collect()),
            Err(error) => Err(StageError::Io("read", place, error)),
        }
    }

    /// Writes a file of the stage whole: a death leaves the old one.
    fn write(&self, name: &str, value: &impl Serialize) -> Result<(), StageError> {
        let write = || {
            let next = self.folder.join(format!("{name}.new"));
            fs::write(&next, serde_json::to_vec(value)?)?;
            fs::rename(&next, self.folder.join(name))
        };
        write().map_err(|error| StageError::Io("write in", self.folder.clone(), error))
    }

    /// Removes the stage with all that was not applied. A work folder that only root can empty becomes a
    /// spare one. The sandbox must be gone.
    ///
    /// # Errors
    /// Something stays; the stage is listed as dead and can be discarded again.
    pub fn discard(self) -> Result<(), StageError> {
        let Self { folder, lease, .. } = self;
        discard_folder(&folder).map_err(|error| StageError::Io("remove", folder.clone(), error))?;
        // The lease goes last: until then no other process touches the folder.
        let removed = lease.remove().and_then(|()| fs::remove_dir(&folder));
        removed.map_err(|error| StageError::Io("remove", folder, error))
    }
}

fn discard_folder(folder: &Path) -> io::Result<()> {
    let handle = open_host(folder)?;
    let spare = folder.parent().map(|stages| stages.join(SPARE));
    // What names the state goes first: half a stage is dead, and nothing else.
    for name in [JOURNAL, HELD] {
        handles::remove_all(&handle, OsStr::new(name))?;
    }
    for name in handles::names(&handle)? {
        if name == LEASE || name == ABOUT {
            continue;
        }
        let root = folder.join(&name);
        let work = root.join("work");
        if fs::symlink_metadata(&work).is_ok_and(|found| found.is_dir())
            && fs::remove_dir(&work).is_err()
        {
            let inner = open_host(&root)?;
            if handles::remove_all(&inner, OsStr::new("work")).is_err() {
                let Some(spare) = &spare else { continue };
                private(spare, true)?;
                let chance = crate::workspace::temp::temp_name()?;
                fs::rename(&work, spare.join(chance))?;
            }
        }
        handles::remove_all(&handle, &name)?;
    }
    handles::remove_all(&handle, OsStr::new(ABOUT))?;
    Ok(())
}

/// Removes all stages of a state folder that is given up, whose processes are gone. Work folders that only root can empty
/// become spare ones of another state folder.
pub fn give_up(state: &Path, heir: &Path) {
    let below = |folder: &Path| {
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
    };
    let stages = state.join(STAGES);
    for stage in below(&stages).filter(|path| !path.ends_with(SPARE)) {
        // What stays is removed as far as possible with the state folder.
        let _ = discard_folder(&stage);
    }
    for work in below(&stages.join(SPARE)) {
        let (spare, chance) = (heir.join(STAGES).join(SPARE), crate::workspace::temp::temp_name());
        if let (Ok(()), Ok(chance)) = (private(&spare, true), chance) {
            let _ = fs::rename(&work, spare.join(chance));
        }
    }
}

/// Moves a spare work folder to `work`; whether there was one.
fn take_spare(state: &Path, work: &Path) -> bool {
    let Ok(entries) = fs::read_dir(state.join(STAGES).join(SPARE)) else { return false };
    entries
        .flatten()
        .any(|entry| renameat_with(CWD, entry.path(), CWD, work, RenameFlags::NOREPLACE).is_ok())
}

/// Takes the room that records need. A file system that cannot set it aside has none to lose.
fn reserve(path: &Path) {
    let options = &mut fs::OpenOptions::new();
    if let Ok(file) = options.write(true).create_new(true).mode(0o600).open(path) {
        let _ = fallocate(&file, FallocateFlags::empty(), 0, RESERVE.1);
    }
}

/// Makes a folder for the caller alone.
fn private(path: &Path, recursive: bool) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).recursive(recursive).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && recursive => Ok(()),
        made => made,
    }
}

fn read<T: serde::de::DeserializeOwned>(path: &Path) -> io::Result<T> {
    Ok(serde_json::from_slice(&fs::read(path)?)?)
}

/// All stages of a caller, oldest first. What cannot be read counts as dead.
///
/// # Errors
/// The folder of stages cannot be read.
pub fn list(state: &Path) -> io::Result<Vec<Listed>> {
    let entries = match fs::read_dir(state.join(STAGES)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut listed = Vec::new();
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(label) = name.to_str().filter(|name| *name != SPARE).and_then(CallId::new) else {
            continue;
        };
        let folder = entry.path();
        let about = read::<About>(&folder.join(ABOUT)).ok();
        let claimed = about.as_ref().is_some_and(|about| about.claim.is_some());
        let state = match lease::find(&folder.join(LEASE)) {
            Ok(Found::Held(_)) if claimed => StageState::Running,
            Ok(Found::Held(_)) => StageState::Waiting,
            _ if folder.join(JOURNAL).exists() => StageState::Applying,
            _ if folder.join(HELD).exists() => StageState::Kept,
            _ => StageState::Dead,
        };
        let workspace = about.as_ref().and_then(|about| about.roots.first()).map(Root::path);
        listed.push(Listed {
            label,
            call: about.and_then(|about| about.call),
            workspace: workspace.unwrap_or_default(),
            state,
            kept_at: kept_at(&folder),
        });
    }
    listed.sort_by(|one, other| one.label.cmp(&other.label));
    Ok(listed)
}

/// Applies that are not over: the folder of each stage, and its roots.
///
/// # Errors
/// The folder of stages cannot be read.
pub(super) fn with_journal(state: &Path) -> io::Result<Vec<(PathBuf, Vec<Root>)>> {
    let entries = match fs::read_dir(state.join(STAGES)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let folders = entries.flatten().map(|entry| entry.path());
    let mut found = Vec::new();
    for folder in folders.filter(|folder| folder.join(JOURNAL).symlink_metadata().is_ok()) {
        // Without this file no recovery can go on with it.
        if let Ok(about) = read::<About>(&folder.join(ABOUT)) {
            found.push((folder, about.roots));
        }
    }
    Ok(found)
}

fn kept_at(folder: &Path) -> Option<Duration> {
    let changed = fs::metadata(folder.join(HELD)).and_then(|found| found.modified()).ok()?;
    changed.duration_since(std::time::UNIX_EPOCH).ok()
}

/// Removes a stage of which not even the lease is left, as a death during `make` or `discard` leaves it.
pub(super) fn remove_remains(state: &Path, label: &CallId) -> Result<(), StageError> {
    let folder = state.join(STAGES).join(label.as_str());
    let failed = |error| StageError::Io("remove", folder.clone(), error);
    let lease = Lease::try_take(&folder.join(LEASE)).map_err(failed)?;
    let lease = lease.ok_or_else(|| StageError::Running(label.to_string()))?;
    discard_folder(&folder).map_err(failed)?;
    lease.remove().and_then(|()| fs::remove_dir(&folder)).map_err(failed)
}
