//! The entries of the pool: one file a waiting sandbox, named by key and label.

use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use runner_wire::Bytes;
use serde::{Deserialize, Serialize};

use super::guess::Guess;
use super::held::{CLAIMED, Held, MAKING, Trace};
use super::key::{Key, Lane};
use crate::config;
use crate::engine::Address;
use crate::engine::runtime_kind::RuntimeKind;
use crate::ids::CallId;
use crate::sys::lease::{self, Found};
use crate::sys::now;

/// Entries are files with this ending.
pub(super) const ENDING: &str = "waiting";

/// Files of entries that are being written have this ending.
pub(super) const NEW: &str = "new";

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

    /// What one that waits costs, in bytes, for the pool's bound: guest and shim, Node for a tool, and the kernel that a
    /// runtime brings. `runner bench` measures the first two; Kata's is what a small virtual machine takes.
    #[must_use]
    pub const fn cost(self, runtime: RuntimeKind) -> u64 {
        let command = matches!(self, Self::Read | Self::Write);
        let mebibytes = match runtime {
            RuntimeKind::SharedKernel | RuntimeKind::Direct => {
                if command {
                    5
                } else {
                    60
                }
            }
            RuntimeKind::Gvisor => {
                if command {
                    26
                } else {
                    81
                }
            }
            RuntimeKind::Kata => {
                if command {
                    160
                } else {
                    220
                }
            }
        };
        mebibytes << 20
    }
}

/// A sandbox that waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its id, as the engine knows it.
    pub sandbox: String,
    /// The id in its labels; no call has it.
    pub label: String,
    /// The engine that made it.
    pub address: Address,
    /// Who may claim it.
    pub key: Key,
    /// Who may take it before they know.
    pub guess: Guess,
    /// The paths of its mounts, which its guest is asked about.
    pub targets: Vec<Bytes>,
    /// Where it belongs.
    pub lane: Lane,
    /// What it is for.
    pub class: Class,
    /// The policy that it was planned under.
    pub policy: String,
    /// The names of what that policy stays within, a tool's permissions among them.
    pub within: Vec<String>,
    /// The digest of the policy and all that it extends.
    pub policy_digest: String,
    /// What it was made from besides its plan: the guest, and how the engine makes sandboxes.
    pub recipe: String,
    /// The project whose call made it.
    pub project: PathBuf,
    /// What it costs while it waits, in bytes.
    pub cost: u64,
    /// The workspace that it shows; none for a tool.
    pub workspace: PathBuf,
    /// The image's content digest.
    pub image_digest: String,
    /// When it was made, since 1970.
    pub made: Duration,
    /// When it ends itself if it is not claimed.
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
#[derive(Debug, thiserror::Error)]
#[error("cannot {what} {path}: {source}")]
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

    pub(super) fn read(&self, name: &str) -> Option<Entry> {
        let path = self.folder.join(name);
        let entry: Entry = serde_json::from_slice(&std::fs::read(&path).ok()?).ok()?;
        // What it says leads to no other file than itself.
        (self.file(&entry.key, &entry.label) == path && entry.id().is_some()).then_some(entry)
    }

    /// Whether a sandbox with this label waits.
    #[must_use]
    pub fn waits(&self, label: &str) -> bool {
        let ending = format!(".{label}.{ENDING}");
        self.names().iter().any(|name| name.ends_with(&ending))
    }

    /// Whether nothing waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.names().is_empty()
    }

    /// All entries.
    #[must_use]
    pub fn entries(&self) -> Vec<Entry> {
        let mut entries: Vec<Entry> =
            self.names().iter().filter_map(|name| self.read(name)).collect();
        entries.sort_by_key(|entry| entry.made);
        entries
    }

    /// Takes a sandbox of this key that may still run for `wall`; no other process can claim it.
    #[must_use]
    pub fn claim(&self, key: &Key, wall: Duration) -> Option<Claimed> {
        let prefix = format!("{}.", key.as_str());
        self.names().iter().filter(|name| name.starts_with(&prefix)).find_map(|name| {
            let entry = self.read(name)?;
            if entry.key == *key { self.claim_entry(entry, wall) } else { None }
        })
    }

    /// Takes the newest sandbox that was made for a call like this, and may still run for `wall`: what was planned last is
    /// what will most likely be planned.
    #[must_use]
    pub fn claim_guessed(&self, guess: &Guess, wall: Duration) -> Option<Claimed> {
        let entries = self.entries().into_iter().rev();
        entries.filter(|entry| entry.guess == *guess).find_map(|it| self.claim_entry(it, wall))
    }

    fn claim_entry(&self, entry: Entry, wall: Duration) -> Option<Claimed> {
        let now = now();
        if now + wall >= entry.deadline || now + config::Pool::MARGIN >= entry.expires {
            return None;
        }
        let held = self.hold(&entry, None)?;
        Some(Claimed { entry, held })
    }

    /// Takes an entry out, for its sandbox to be ended. Exactly one process gets it.
    pub(super) fn take(&self, entry: &Entry) -> Option<Held> {
        self.hold(entry, Some(self.file(&entry.key, &entry.label)))
    }

    /// Locks an entry's file and gives it another name, which one process alone can do. The lock comes first, so that a
    /// file of that name is locked as long as its process lives.
    fn hold(&self, entry: &Entry, back: Option<PathBuf>) -> Option<Held> {
        let from = self.file(&entry.key, &entry.label);
        let Found::Free(lease) = lease::find(&from).ok()? else { return None };
        // If its maker died when all was done but this file, no process may take the claimed sandbox for one that a killed process left.
        let _ = std::fs::remove_file(self.folder.join(format!("{}.{MAKING}", entry.label)));
        let path = self.folder.join(format!("{}.{CLAIMED}", entry.label));
        Some(Held::new(entry.trace(), lease.rename(&path).ok()?, back))
    }

    /// Adds an entry, whole or not at all.
    pub(super) fn put(&self, entry: &Entry) -> Result<(), PoolError> {
        let path = self.file(&entry.key, &entry.label);
        let temporary = path.with_extension(NEW);
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

/// A sandbox that a call has taken.
#[derive(Debug)]
pub struct Claimed {
    /// What it is.
    pub entry: Entry,
    /// Over, once its guest is given its order: it ends with its call then.
    pub held: Held,
}

impl Entry {
    /// What is needed to count it, and to end it.
    pub(super) fn trace(&self) -> Trace {
        Trace {
            label: self.label.clone(),
            address: self.address.clone(),
            cost: self.cost,
            project: self.project.clone(),
            expires: self.expires,
        }
    }

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
