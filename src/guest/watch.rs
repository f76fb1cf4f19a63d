//! Limits that only a look can find: the kernel refuses, and tells nobody but the one refused.
//!
//! The first refused process ends the call: what wants more processes than it may have does not get
//! further by trying on. Open files are looked at less often and not for every process: it costs. Where no control group
//! holds memory or the number of processes, the guest counts them.

use crate::cgroup::Counters;
use crate::memory::{self, Memory};
use crate::sys;
use runner_wire::{Cause, StartLimits};
use std::time::{Duration, Instant};

/// Time between two looks at the count of refused processes.
const PIDS_EVERY: Duration = Duration::from_millis(250);

/// Time between two looks at open files.
const FILES_EVERY: Duration = Duration::from_secs(1);

/// No more processes than this are looked at.
const PROCESSES_MAX: usize = 256;

/// When to look again.
pub struct Watch {
    open_files: usize,
    memory: Option<Memory>,
    pids: Option<u64>,
    pids_at: Instant,
    files_at: Instant,
}

impl Watch {
    /// Begins to watch a call.
    pub fn new(limits: &StartLimits, now: Instant) -> Self {
        Self {
            open_files: usize::try_from(limits.open_files).unwrap_or(usize::MAX),
            memory: limits.watched_memory.map(|limit| Memory::new(limit, now)),
            pids: limits.watched_pids,
            pids_at: now + PIDS_EVERY,
            files_at: now + FILES_EVERY,
        }
    }

    /// How long the loop may sleep, for this watch.
    pub fn pause(&self) -> Duration {
        if self.memory.is_some() { memory::EVERY } else { PIDS_EVERY }
    }

    /// The most memory that was seen, where the guest watches it.
    pub fn peak_memory(&self) -> Option<u64> {
        self.memory.as_ref().map(Memory::peak)
    }

    /// Looks, if it is time; why the call has to end.
    pub fn look(&mut self, now: Instant, counters: &Counters) -> Option<Cause> {
        if self.memory.as_mut().is_some_and(|memory| memory.is_over(now)) {
            return Some(Cause::Memory);
        }
        if now >= self.pids_at {
            self.pids_at = now + PIDS_EVERY;
            let refused = counters.pids_refused().is_some_and(|refused| refused > 0);
            if refused || self.pids.is_some_and(|most| tasks() >= most) {
                return Some(Cause::Pids);
            }
        }
        if now >= self.files_at {
            self.files_at = now + FILES_EVERY;
            if self.any_full() {
                return Some(Cause::OpenFiles);
            }
        }
        None
    }

    /// Whether a process has as many files open as it may have.
    fn any_full(&self) -> bool {
        let Ok(processes) = std::fs::read_dir("/proc") else {
            return false;
        };
        processes
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| {
                let name = path.file_name().and_then(|name| name.to_str());
                name.and_then(|name| name.parse::<u32>().ok()).is_some_and(|pid| pid != 1)
            })
            .take(PROCESSES_MAX)
            .filter(|path| self.may_be_full(path))
            .any(|path| {
                std::fs::read_dir(path.join("fd"))
                    .is_ok_and(|files| files.take(self.open_files).count() == self.open_files)
            })
    }

    /// The kernel tells the size of a process's table, which is never smaller than its use.
    fn may_be_full(&self, process: &std::path::Path) -> bool {
        let status = std::fs::read_to_string(process.join("status")).unwrap_or_default();
        let size = status.lines().find_map(|line| line.strip_prefix("FDSize:"));
        size.and_then(|size| size.trim().parse::<usize>().ok())
            .is_some_and(|size| size >= self.open_files)
    }
}

/// How many processes and threads there are in this sandbox, with the guest.
fn tasks() -> u64 {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let threads = |entry: std::fs::DirEntry| {
        entry.file_name().to_str()?.parse::<u32>().ok()?;
        let status = std::fs::read_to_string(entry.path().join("status")).ok()?;
        let count = status.lines().find_map(|line| line.strip_prefix("Threads:"))?;
        count.trim().parse::<u64>().ok()
    };
    entries.filter_map(threads).sum()
}

/// How many other processes of this sandbox run: neither the guest nor one that has ended.
pub fn others() -> u64 {
    // The usual case costs one system call.
    if !sys::has_children() {
        return 0;
    }
    let guest = std::process::id();
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let runs = |entry: &std::fs::DirEntry| {
        let pid = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok());
        let stat = std::fs::read(entry.path().join("stat")).unwrap_or_default();
        pid.is_some_and(|pid| pid != guest) && is_alive(&stat)
    };
    entries.filter(runs).count() as u64
}

/// Whether `/proc/PID/stat` is of a process that has not ended. The name before the state can hold anything.
fn is_alive(stat: &[u8]) -> bool {
    let name_ends = stat.iter().rposition(|byte| *byte == b')');
    let state = name_ends.and_then(|at| stat.get(at + 2));
    state.is_some_and(|state| !matches!(state, b'Z' | b'X' | b'x'))
}

#[cfg(test)]
mod tests {
    use super::is_alive;

    #[test]
    fn a_process_is_alive_unless_it_has_ended_whatever_its_name() {
        for (stat, alive) in [
            ("7 (sleep) S 1 7", true),
            ("7 (a) Z (b) R 1 7", true),
            ("7 (x) Z 1 7", false),
            ("7 (R) X 1 7", false),
            ("7 (cut", false),
            ("", false),
        ] {
            assert_eq!(is_alive(stat.as_bytes()), alive, "{stat}");
        }
    }
}
