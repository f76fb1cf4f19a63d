//! Sandboxes in the hands of a process: being made, claimed, or on their way out.
//!
//! A file names each, locked as long as that process lives; the kernel drops the lock at any death. What a dead process
//! had in its hands is ended by whoever finds the file next: nothing waits that nobody counts.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::ids::CallId;
use crate::sys::now;

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
    look_at(path, open(path).ok()?)
}

fn look_at(path: &Path, mut file: File) -> Option<Hands> {
    let locked = match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => false,
        Err(Errno::WOULDBLOCK) => true,
        Err(_) => return None,
    };
    // Whoever had it may have removed or renamed it after we opened it, and let go of the lock only then. That says
    // nothing about a death: its sandbox runs a call, or waits again.
    if !locked && !stands(path, &file) {
        return None;
    }
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

/// Whether the file is the one that stands there.
fn stands(path: &Path, file: &File) -> bool {
    let identity = |found: std::fs::Metadata| (found.dev(), found.ino());
    let (held, there) = (file.metadata().map(identity), path.symlink_metadata().map(identity));
    matches!((held, there), (Ok(held), Ok(there)) if held == there)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_its_owner_removed_or_renamed_meanwhile_is_no_dead_ones() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("l.claimed");
        let trace = Trace {
            label: "l".to_owned(),
            endpoint: "e".to_owned(),
            cost: 1,
            project: "/w".into(),
            expires: now() + Duration::from_secs(60),
        };
        let hold = |back: Option<PathBuf>| {
            std::fs::write(&path, serde_json::to_vec(&trace).unwrap()).unwrap();
            let file = open(&path).unwrap();
            flock(&file, FlockOperation::NonBlockingLockExclusive).unwrap();
            Held::new(trace.clone(), path.clone(), back, file)
        };
        // The guest was given its order: the call goes on without the file.
        let (held, opened) = (hold(None), open(&path).unwrap());
        held.over();
        assert!(look_at(&path, opened).is_none());
        // It waits again.
        let back = folder.path().join("l.waiting");
        let (held, opened) = (hold(Some(back.clone())), open(&path).unwrap());
        held.put_back();
        assert!(look_at(&path, opened).is_none() && back.exists());
        // The control: nobody let go of it but the kernel.
        drop(hold(None));
        assert!(matches!(look(&path), Some(Hands::Dead(_))));
    }
}
