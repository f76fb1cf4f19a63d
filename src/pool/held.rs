//! Sandboxes owned by a process: being made, claimed, or being removed.
//!
//! A file names each, locked as long as that process lives; the kernel drops the lock at any death. What a dead process
//! owned is removed by the next process that finds the file: no sandbox waits uncounted.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::engine::Address;
use crate::ids::CallId;
use crate::sys::lease::{self, Exclusive, Found, Lease};
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
    /// The engine that makes it, or has made it.
    pub address: Address,
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
    lease: Lease<Exclusive>,
    /// Where the file goes if the sandbox cannot be ended; `None` for one that must never be claimed again.
    back: Option<PathBuf>,
}

impl Held {
    /// One whose file is locked already.
    pub(super) fn new(trace: Trace, lease: Lease<Exclusive>, back: Option<PathBuf>) -> Self {
        Self { trace, lease, back }
    }

    /// What it is.
    #[must_use]
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// It is gone, or watched by something else: the file has nothing more to tell.
    pub fn over(self) {
        let _ = self.lease.remove();
    }

    /// It could not be ended: it waits again, or the next process that finds the file tries again. What has ended itself by now is
    /// over.
    pub fn put_back(self) {
        if now() >= self.trace.expires {
            self.over();
        } else if let Some(back) = &self.back {
            let _ = self.lease.rename(back);
        }
    }
}

/// Whose hands a file is in.
pub(super) enum Hands {
    /// A living process's.
    Living(Trace),
    /// A dead one's, and now ours.
    Dead(Held),
}

/// Looks at the file of a sandbox that a process makes, has claimed or ends; `None` if the file is
/// gone, or says nothing. A file that its owner removed or renamed meanwhile is gone: that is not a
/// death, its sandbox runs a call or waits again.
pub(super) fn look(path: &Path) -> Option<Hands> {
    match lease::find(path).ok()? {
        Found::Gone => None,
        Found::Held(file) => serde_json::from_slice(&file.read().ok()?).ok().map(Hands::Living),
        Found::Free(lease) => match serde_json::from_slice(&lease.read().ok()?) {
            Ok(trace) => Some(Hands::Dead(Held::new(trace, lease, None))),
            Err(_) => {
                // Its writer died before it had made anything.
                let _ = lease.remove();
                None
            }
        },
    }
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
            address: "docker:e".parse().unwrap(),
            cost: 1,
            project: "/w".into(),
            expires: now() + Duration::from_secs(60),
        };
        let hold = |back: Option<PathBuf>| {
            let lease = Lease::with_content(&path, &serde_json::to_vec(&trace).unwrap()).unwrap();
            Held::new(trace.clone(), lease, back)
        };
        let living = hold(None);
        assert!(matches!(look(&path), Some(Hands::Living(_))));
        // The guest was given its order: the call goes on without the file.
        living.over();
        assert!(look(&path).is_none() && !path.exists());
        // It waits again.
        let back = folder.path().join("l.waiting");
        hold(Some(back.clone())).put_back();
        assert!(look(&path).is_none() && back.exists());
        // The control: its owner died, and the kernel released the lock.
        drop(hold(None));
        assert!(matches!(look(&path), Some(Hands::Dead(_))));
    }
}
