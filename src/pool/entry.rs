//! The entries of the pool: one file a waiting sandbox, named by key and label.

use std::fmt;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::key::{Key, Lane};
use crate::engine::{CallId, now};

/// Entries are files with this ending.
const ENDING: &str = "waiting";

/// An entry this close to its end is not handed out: its guest may end before it is asked.
const MARGIN: Duration = Duration::from_secs(2);

/// What a waiting sandbox is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// Commands that only read.
    Read,
    /// Commands that may write in the workspace.
    Write,
    /// Tools: Node has started, and nothing of the workspace is there.
    Tool,
}

impl Class {
    /// Its word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Tool => "tool",
        }
    }

    /// What one that waits costs, in bytes, for the pool's bound: guest and shim, and Node for a tool.
    #[must_use]
    pub const fn cost(self) -> u64 {
        match self {
            Self::Read | Self::Write => 5 << 20,
            Self::Tool => 60 << 20,
        }
    }
}

/// A sandbox that waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its id, as the engine knows it.
    pub sandbox: String,
    /// The id in its labels; no call has it.
    pub label: String,
    /// Where the engine is reached.
    pub endpoint: String,
    /// Who may claim it.
    pub key: Key,
    /// Where it belongs.
    pub lane: Lane,
    /// What it is for.
    pub class: Class,
    /// The policy that it was planned under.
    pub policy: String,
    /// The workspace that it shows; none for a tool.
    pub workspace: PathBuf,
    /// The image's content digest.
    pub image_digest: String,
    /// When it was made, since 1970.
    pub made: Duration,
    /// When it ends itself if nobody claims it.
    pub expires: Duration,
    /// When a sweep takes it, claimed or not: a call must be over by then.
    pub deadline: Duration,
}

/// The pool of one caller.
#[derive(Debug, Clone)]
pub struct Pool {
    folder: PathBuf,
}

/// Why the pool's files cannot be used. A call never fails for it: it makes its own sandbox.
#[derive(Debug)]
pub struct PoolError {
    what: &'static str,
    path: PathBuf,
    source: io::Error,
}

impl PoolError {
    pub(super) fn at(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self { what, path, source }
    }
}

impl fmt::Display for PoolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {} {}: {}", self.what, self.path.display(), self.source)
    }
}

impl std::error::Error for PoolError {}

impl Pool {
    /// The pool in the caller's own folder for state.
    #[must_use]
    pub fn new(state: &Path) -> Self {
        Self { folder: state.join("pool") }
    }

    /// Its folder, made if it is missing.
    pub(super) fn folder(&self) -> Result<&Path, PoolError> {
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.folder)
            .map_err(PoolError::at("make the pool's folder", &self.folder))?;
        Ok(&self.folder)
    }

    fn file(&self, key: &Key, label: &str) -> PathBuf {
        self.folder.join(format!("{}.{label}.{ENDING}", key.as_str()))
    }

    /// The names of all entries, oldest first within a key.
    fn names(&self) -> Vec<String> {
        let Ok(folder) = std::fs::read_dir(&self.folder) else { return Vec::new() };
        let mut names: Vec<String> = folder
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter(|name| name.ends_with(ENDING))
            .collect();
        names.sort();
        names
    }

    fn read(&self, name: &str) -> Option<Entry> {
        serde_json::from_slice(&std::fs::read(self.folder.join(name)).ok()?).ok()
    }

    /// All entries.
    #[must_use]
    pub fn entries(&self) -> Vec<Entry> {
        let mut entries: Vec<Entry> =
            self.names().iter().filter_map(|name| self.read(name)).collect();
        entries.sort_by_key(|entry| entry.made);
        entries
    }

    /// Takes a sandbox of this key that may still run for `wall`; nobody else can get it.
    #[must_use]
    pub fn claim(&self, key: &Key, wall: Duration) -> Option<Entry> {
        let prefix = format!("{}.", key.as_str());
        self.names().iter().filter(|name| name.starts_with(&prefix)).find_map(|name| {
            let entry = self.read(name)?;
            let now = now();
            let fits = entry.key == *key && now + wall < entry.deadline;
            (fits && now + MARGIN < entry.expires && self.take(&entry)).then_some(entry)
        })
    }

    /// Removes an entry; whether it was there. Exactly one process gets a `true`.
    pub(super) fn take(&self, entry: &Entry) -> bool {
        std::fs::remove_file(self.file(&entry.key, &entry.label)).is_ok()
    }

    /// Adds an entry, whole or not at all.
    pub(super) fn put(&self, entry: &Entry) -> Result<(), PoolError> {
        let path = self.file(&entry.key, &entry.label);
        let temporary = path.with_extension("new");
        let write = || {
            let mut file = std::fs::OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&temporary)?;
            file.write_all(&serde_json::to_vec(entry)?)?;
            std::fs::rename(&temporary, &path)
        };
        write().map_err(PoolError::at("write", &path))
    }
}

impl Entry {
    /// Its label as an id.
    #[must_use]
    pub fn id(&self) -> Option<CallId> {
        CallId::new(&self.label)
    }

    /// Whether it has ended itself by now.
    #[must_use]
    pub fn is_over(&self) -> bool {
        now() >= self.expires
    }
}
