//! Sandboxes in the hands of a process: being made, claimed, or on their way out.
//!
//! A file names each, locked as long as that process lives; the kernel drops the lock at any death. What a dead process
//! had in its hands is ended by whoever finds the file next: nothing waits that nobody counts.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::engine::{CallId, now};

/// Files of sandboxes that are being made have this ending.
pub(super) const MAKING: &str = "making";

/// Files of sandboxes that were waiting, and do no more, have this ending.
pub(super) const CLAIMED: &str = "claimed";

/// What is needed to count a sandbox, and to end it. An entry says all of it too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trace {
    /// The id in its labels.
    pub label: String,
    /// Where its engine is reached.
    pub endpoint: String,
    /// What it costs while it waits, in bytes.
    pub cost: u64,
    /// The project whose call made it.
    pub project: PathBuf,
    /// When it ends itself.
    pub expires: Duration,
}

impl Trace {
    /// Its label as an id.
    #[must_use]
    pub fn id(&self) -> Option<CallId> {
        CallId::new(&self.label)
    }
}

/// A sandbox in this process's hands.
#[derive(Debug)]
pub struct Held {
    trace: Trace,
    path: PathBuf,
    /// Where the file goes if the sandbox cannot be ended; `None` for one that must never be claimed again.
    back: Option<PathBuf>,
    /// Locked.
    _file: File,
}

impl Held {
    /// One whose file is locked already.
    pub(super) fn new(trace: Trace, path: PathBuf, back: Option<PathBuf>, file: File) -> Self {
        Self { trace, path, back, _file: file }
    }

    /// What it is.
    #[must_use]
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// It is gone, or watched by something else: the file has nothing more to tell.
    pub fn over(self) {
        let _ = std::fs::remove_file(&self.path);
    }

    /// It could not be ended: it waits again, or whoever finds the file tries again. What has ended itself by now is
    /// over.
    pub fn put_back(self) {
        if now() >= self.trace.expires {
            self.over();
        } else if let Some(back) = &self.back {
            let _ = std::fs::rename(&self.path, back);
        }
    }
}

/// Opens a file to lock it. For writing too: some file systems lock nothing else.
pub(super) fn open(path: &Path) -> io::Result<File> {
    File::options().read(true).write(true).open(path)
}

/// Whose hands a file is in.
pub(super) enum Hands {
    /// A living process's.
    Living(Trace),
    /// A dead one's, and now ours.
    Dead(Held),
}

/// Looks at the file of a sandbox in somebody's hands; `None` if it is gone, or tells nothing.
pub(super) fn look(path: &Path) -> Option<Hands> {
    let mut file = open(path).ok()?;
    let locked = match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => false,
        Err(Errno::WOULDBLOCK) => true,
        Err(_) => return None,
    };
    let mut text = Vec::new();
    file.read_to_end(&mut text).ok()?;
    match (serde_json::from_slice::<Trace>(&text), locked) {
        (Ok(trace), true) => Some(Hands::Living(trace)),
        (Ok(trace), false) => Some(Hands::Dead(Held::new(trace, path.to_owned(), None, file))),
        (Err(_), true) => None,
        (Err(_), false) => {
            // Its writer died before it had made anything.
            let _ = std::fs::remove_file(path);
            None
        }
    }
}
