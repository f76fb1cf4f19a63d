//! The queue of one tool: slots for those that run, places for those that wait, a line between them.

use std::collections::VecDeque;
use std::fmt;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tokio::io::AsyncWriteExt as _;

use super::error::QueueError;
use super::held_slot::HeldSlot;
use crate::config;
use crate::ids::ToolName;
use crate::sandbox::cancel::Cancel;
use crate::sandbox::streams::Sink;
use crate::sys::lease::{Attempt, Exclusive, Lease, LockFile, Mode, Shared};

/// How often the one who is next looks for a free slot. It is one process a queue, and a look costs microseconds.
const LOOK: Duration = Duration::from_millis(2);

/// A longer wait is reported on standard error.
const QUIET: Duration = Duration::from_secs(1);

/// Held by the one who is next but one; all others who wait block on it, in turn.
const LINE: &str = "line";

/// Held by the one who is next.
const HEAD: &str = "head";

/// How many at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Figures {
    /// Calls that may run.
    pub running: u16,
    /// Calls that may wait for one of them to end.
    pub waiting: u16,
}

impl Figures {
    /// As the configuration has them.
    #[must_use]
    pub fn of(limits: &config::Limits) -> Self {
        let figure = |it: usize| u16::try_from(it).unwrap_or(u16::MAX);
        Self { running: figure(limits.concurrency), waiting: figure(limits.queue) }
    }
}

impl Default for Figures {
    fn default() -> Self {
        Self { running: 10, waiting: 100 }
    }
}

/// Whose queue it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject<'a> {
    /// All commands: `exec` counts as one tool.
    Command,
    /// One tool, by name.
    Tool(&'a ToolName),
}

impl Subject<'_> {
    /// Its folder. A tool may be called `exec` too, and a name is safe in a path.
    fn folder(self) -> String {
        match self {
            Self::Command => "exec".to_owned(),
            Self::Tool(name) => format!("tool.{name}"),
        }
    }
}

impl fmt::Display for Subject<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command => f.write_str("`exec`"),
            Self::Tool(name) => write!(f, "the tool {name}"),
        }
    }
}

/// The queue of one subject and one user.
#[derive(Debug, Clone)]
pub struct Queue {
    folder: PathBuf,
    subject: String,
    figures: Figures,
}

impl Queue {
    /// The queue in the folder of our state. Nothing is touched yet.
    ///
    /// # Errors
    /// There is no such folder.
    pub fn of(
        state: Option<&Path>,
        subject: Subject<'_>,
        figures: Figures,
    ) -> Result<Self, QueueError> {
        let state = state.ok_or(QueueError::NoFolder)?;
        let folder = state.join("queue").join(subject.folder());
        Ok(Self { folder, subject: subject.to_string(), figures })
    }

    /// Takes a place, waiting for it in turn if it must, but not longer than `most`. A wait that lasts is said
    /// once to `told`.
    ///
    /// # Errors
    /// Too many wait, the wait was too long, or the call was cancelled.
    pub async fn enter(
        &self,
        most: Duration,
        cancel: &mut Cancel,
        told: &mut Sink,
    ) -> Result<HeldSlot, QueueError> {
        let begun = Instant::now();
        if let Some(slot) = self.at_once()? {
            return Ok(HeldSlot::new(slot, begun.elapsed()));
        }
        let Some(waiting) = self.any("waiting", self.figures.waiting)? else {
            return Err(QueueError::Busy {
                subject: self.subject.clone(),
                running: self.figures.running,
                waiting: self.figures.waiting,
            });
        };
        let mut turn = std::pin::pin!(self.turn());
        let mut quiet = std::pin::pin!(tokio::time::sleep(QUIET));
        let mut patience = std::pin::pin!(tokio::time::sleep(most));
        let mut said = false;
        let slot = loop {
            tokio::select! {
                slot = &mut turn => break slot?,
                cause = cancel.asked() => return Err(QueueError::Cancelled(cause)),
                () = &mut patience => {
                    return Err(QueueError::Timeout { subject: self.subject.clone(), waited: most });
                }
                () = &mut quiet, if !said => {
                    said = true;
                    self.say(told).await;
                }
            }
        };
        // Only now: between the two it counts as waiting.
        drop(waiting);
        Ok(HeldSlot::new(slot, begun.elapsed()))
    }

    /// A slot without waiting, if one is free and no other call waits for it.
    fn at_once(&self) -> Result<Option<Lease<Exclusive>>, QueueError> {
        for name in [LINE, HEAD] {
            // Shared: newcomers do not exclude each other, only one that waits excludes them.
            match self.try_take::<Shared>(self.open(name)?)? {
                Attempt::Taken(lease) => drop(lease),
                Attempt::Busy(_) => return Ok(None),
            }
        }
        self.any("running", self.figures.running)
    }

    /// Waits in line until it is at the head, then for a slot.
    async fn turn(&self) -> Result<Lease<Exclusive>, QueueError> {
        let line = self.blocking(LINE).await?;
        let _head = self.blocking(HEAD).await?;
        // Only now: one of the two is held at any moment, so that no newcomer slips in between two that wait.
        drop(line);
        let numbers = 0..self.figures.running;
        let mut slots = numbers
            .map(|number| self.open(&format!("running.{number}")))
            .collect::<Result<VecDeque<_>, _>>()?;
        loop {
            for _ in 0..slots.len() {
                let Some(slot) = slots.pop_front() else { break };
                match self.try_take(slot)? {
                    Attempt::Taken(lease) => return Ok(lease),
                    Attempt::Busy(slot) => slots.push_back(slot),
                }
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Waits for a file that one holds at a time.
    async fn blocking(&self, name: &str) -> Result<Lease<Exclusive>, QueueError> {
        let file = self.open(name)?;
        // A thread of its own: the kernel serves those that block in the order in which they came. If the
        // call was cancelled meanwhile, the lease is dropped as soon as it is granted.
        let blocked = tokio::task::spawn_blocking(move || file.wait()).await;
        blocked
            .unwrap_or_else(|broken| Err(io::Error::other(broken)))
            .map_err(|error| self.failed(name, error))
    }

    /// Any free one of several files. The first that is tried is a random one, so that a crowd spreads.
    fn any(&self, kind: &str, count: u16) -> Result<Option<Lease<Exclusive>>, QueueError> {
        let random = crate::sys::random::<2>().map_err(|error| self.failed(kind, error))?;
        let first = u16::from_ne_bytes(random) % count.max(1);
        for number in (first..count).chain(0..first.min(count)) {
            let file = self.open(&format!("{kind}.{number}"))?;
            if let Attempt::Taken(lease) = self.try_take(file)? {
                return Ok(Some(lease));
            }
        }
        Ok(None)
    }

    fn try_take<M: Mode>(&self, file: LockFile) -> Result<Attempt<M>, QueueError> {
        file.try_take().map_err(|error| QueueError::File(self.folder.clone(), error))
    }

    /// Opens a file of the queue; the first call of all makes the folder.
    fn open(&self, name: &str) -> Result<LockFile, QueueError> {
        let path = self.folder.join(name);
        let opened = match LockFile::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let made = DirBuilder::new().recursive(true).mode(0o700).create(&self.folder);
                made.and_then(|()| LockFile::open(&path))
            }
            opened => opened,
        };
        opened.map_err(|error| QueueError::File(path, error))
    }

    fn failed(&self, name: &str, error: io::Error) -> QueueError {
        QueueError::File(self.folder.join(name), error)
    }

    /// Writes to standard error that the call waits.
    async fn say(&self, told: &mut Sink) {
        if let Some(sink) = told {
            let text = format!(
                "runner: the call waits in the queue: {} calls of {} may run at once\n",
                self.figures.running, self.subject
            );
            // A closed stderr is no reason to end the call.
            let _ = sink.write_all(text.as_bytes()).await;
            let _ = sink.flush().await;
        }
    }
}

#[cfg(test)]
#[path = "slots_tests.rs"]
mod tests;
