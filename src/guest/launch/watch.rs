//! The launcher's life while its sandbox runs: it ends every process of it when the host says so, or is gone.
//!
//! The guest ends a sandbox by itself in the usual case. It is a process of the sandbox, and competes for processors with
//! what it should end. The launcher is in none of the sandbox's namespaces of processes and groups: nothing in the sandbox
//! can see it, signal it or change how it is scheduled.

use super::kernel::{self, Signals};
use crate::sys::{self, Poll};
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

/// How long the guest may take to end its sandbox after the host has closed the wire.
const GRACE: Duration = Duration::from_millis(500);

/// Time between two rounds in which everything is killed: processes that were made meanwhile fall in the next.
const AGAIN: Duration = Duration::from_millis(20);

/// A wait without an end.
const LONG: Duration = Duration::from_secs(24 * 3600);

/// What a launcher needs to watch a sandbox: made before there is one, so that nothing can fail later.
pub struct Watch {
    signals: OwnedFd,
    /// The launcher's copy of the wire.
    wire: OwnedFd,
}

impl Watch {
    /// On the wire that is standard input, and for these signals.
    pub fn begin(signals: &Signals) -> io::Result<Self> {
        Ok(Self { signals: signals.descriptor()?, wire: sys::high_number(0)? })
    }

    /// Returns when the first process of the sandbox has ended, and with it every other.
    pub fn until_ended(self, first: u32) -> io::Result<()> {
        // Not known of one that has ended: the kernel has killed the others then.
        let space = space_of(first);
        let mut wire = Poll::hangup(self.wire.as_raw_fd());
        let mut end_at: Option<Instant> = None;
        loop {
            let now = Instant::now();
            if end_at.is_some_and(|at| at <= now) {
                kill_all(first, space);
                end_at = Some(now + AGAIN);
            }
            let left = end_at.map_or(LONG, |at| at.saturating_duration_since(Instant::now()));
            let mut polls = [Poll::read(self.signals.as_raw_fd()), wire];
            sys::poll(&mut polls, left)?;
            if polls[0].ready() {
                if kernel::next_signal(&self.signals) == Some(libc::SIGTERM) {
                    end_at = Some(Instant::now());
                }
                if kernel::is_reaped(first) {
                    return Ok(());
                }
            }
            if polls[1].ready() {
                wire = Poll::none();
                end_at = end_at.or(Some(Instant::now() + GRACE));
            }
        }
    }
}

/// Kills the first process, by which the kernel kills the rest, and each other one: the first may wait long for a
/// processor if the others use them all.
fn kill_all(first: u32, space: Option<(u64, u64)>) {
    kernel::kill(first);
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        // Opened first, then compared: a number that is given to another process meanwhile is not that process.
        let Ok(process) = kernel::open_process(pid) else { continue };
        if space.is_some() && space_of(pid) == space {
            kernel::kill_opened(&process);
        }
    }
}

/// The namespace that a process is in.
fn space_of(pid: u32) -> Option<(u64, u64)> {
    let found = fs::metadata(format!("/proc/{pid}/ns/pid")).ok()?;
    Some((found.dev(), found.ino()))
}
