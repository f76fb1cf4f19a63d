//! The life of a launcher: started, told its recipe, connected, ended.

use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as Pair;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream;
use runner_wire::{LAUNCH, LaunchFailure, Recipe};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;
use tokio::net::unix::OwnedReadHalf;
use tokio::process::Child;

use super::failure::LaunchError;
use super::guest_folder::Guest;
use super::probe;
use crate::engine::error::EngineError;
use crate::engine::traits::{Attached, Chunk};
use crate::json;

/// What one read of the wire takes at most.
const READ: usize = 64 << 10;

/// What is kept of a launcher's last words.
pub(super) const WORDS_MAX: usize = 4 << 10;

/// How long a sandbox that is killed may take to be gone.
pub(super) const END_WAIT: Duration = Duration::from_secs(5);

/// A launcher that waits for its recipe.
pub(super) struct Started {
    child: Child,
    pid: u32,
    handle: Handle,
    wire: Pair,
}

/// A launcher that has its recipe.
pub(super) struct Launched {
    /// `None` for one that was another process's child: it has said what it had to say, and nobody here waits for it.
    child: Option<Child>,
    handle: Handle,
    wire: Pair,
}

fn local(operation: &'static str) -> impl Fn(io::Error) -> EngineError {
    move |source| EngineError::Local { operation, source }
}

/// Starts a launcher. It makes nothing before it is told what, and ends if this value goes.
pub(super) fn start(guest: &Guest) -> Result<Started, EngineError> {
    let failed = local(START);
    let (command, wire) = command(guest)?;
    let mut command = tokio::process::Command::from(command);
    let child = command.spawn().map_err(&failed)?;
    // Its copies of the launcher's end of the wire go with it.
    drop(command);
    let pid = child.id().ok_or_else(|| failed(io::ErrorKind::NotFound.into()))?;
    let handle = Handle(Arc::new(handle_of(pid)?));
    Ok(Started { child, pid, handle, wire })
}

/// What is tried, in errors.
const START: &str = "start the launcher of a sandbox";

/// How a launcher is started, and our end of its wire. The command has copies of the other end, and must be dropped.
pub(super) fn command(guest: &Guest) -> Result<(Command, Pair), EngineError> {
    let failed = local(START);
    let (wire, theirs) = Pair::pair().map_err(&failed)?;
    let output = theirs.try_clone().map_err(&failed)?;
    let mut command = Command::new(guest.program());
    command
        .arg0(guest.name())
        .arg(LAUNCH)
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::from(OwnedFd::from(output)))
        .stderr(Stdio::piped())
        // An interrupt typed at the terminal is for runner, which ends the call in its own way.
        .process_group(0);
    Ok((command, wire))
}

/// A handle of a child that was not waited for yet.
pub(super) fn handle_of(child: u32) -> Result<OwnedFd, EngineError> {
    let failed = local(START);
    let pid = Pid::from_raw(child.cast_signed());
    let pid = pid.ok_or_else(|| failed(io::ErrorKind::NotFound.into()))?;
    pidfd_open(pid, PidfdFlags::empty()).map_err(|error| failed(error.into()))
}

impl Started {
    /// The number of its process. It is waited for by this value, so the number is no other process's.
    pub(super) fn id(&self) -> u32 {
        self.pid
    }

    /// Tells it what to make, and returns while it is being made.
    pub(super) fn tell(self, recipe: &Recipe) -> Result<Launched, EngineError> {
        tell(&self.wire, recipe)?;
        Ok(Launched { child: Some(self.child), handle: self.handle, wire: self.wire })
    }
}

/// Tells a launcher what to make.
pub(super) fn tell(wire: &Pair, recipe: &Recipe) -> Result<(), EngineError> {
    let failed = local("tell a launcher what to make");
    let text = serde_json::to_vec(recipe).map_err(|error| failed(error.into()))?;
    let length = u32::try_from(text.len()).ok().filter(|_| text.len() <= runner_wire::RECIPE_MAX);
    let length = length.ok_or_else(|| failed(io::ErrorKind::FileTooLarge.into()))?;
    let framed = [&length.to_le_bytes(), text.as_slice()].concat();
    match io::Write::write_all(&mut &*wire, &framed) {
        // A launcher that could not start says so at the end of its output.
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(failed(error)),
    }
}

impl Launched {
    /// A sandbox that another process made and held, with its wire and what stands for its launcher.
    pub(super) fn of_holder(wire: Pair, launcher: OwnedFd) -> Self {
        Self { child: None, handle: Handle(Arc::new(launcher)), wire }
    }

    /// What ends it.
    pub(super) fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Connects to the guest.
    pub(super) fn attach(self) -> Result<Attached, EngineError> {
        let failed = local("connect to a sandbox");
        self.wire.set_nonblocking(true).map_err(&failed)?;
        let (wire, input) = UnixStream::from_std(self.wire).map_err(&failed)?.into_split();
        let output =
            Output { state: Reading::Wire(wire), child: self.child, buffer: vec![0; READ] };
        let output = stream::unfold(output, Output::next);
        Ok(Attached { output: Box::pin(output), input: Box::pin(input) })
    }

    /// Waits until the sandbox is gone, without a word to its guest; why there was none.
    pub(super) async fn end(self) -> Result<(), EngineError> {
        drop(self.wire);
        let Some(mut child) = self.child else { return Ok(()) };
        let words = last_words(&mut child).await;
        let status = child.wait().await.map_err(local("wait for a sandbox"))?;
        match words {
            Some(error) => Err(error),
            None if status.success() => Ok(()),
            None => Err(LaunchError::Unknown(status.to_string()).into()),
        }
    }
}

/// What the guest writes, and how its launcher ended.
struct Output {
    state: Reading,
    child: Option<Child>,
    buffer: Vec<u8>,
}

enum Reading {
    /// The guest may write.
    Wire(OwnedReadHalf),
    /// It has ended.
    Ended,
}

impl Output {
    async fn next(mut self) -> Option<(Result<Chunk, EngineError>, Self)> {
        let Reading::Wire(wire) = &mut self.state else { return None };
        match wire.read(&mut self.buffer).await {
            Ok(0) => {}
            Ok(count) => {
                let bytes = self.buffer[..count].to_vec();
                return Some((Ok(Chunk::Wire(bytes)), self));
            }
            // The launcher ended before it had read its recipe.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {}
            Err(source) => {
                let error = EngineError::Local { operation: "read from a sandbox", source };
                self.state = Reading::Ended;
                return Some((Err(error), self));
            }
        }
        self.state = Reading::Ended;
        let error = last_words(self.child.as_mut()?).await?;
        Some((Err(error), self))
    }
}

/// What a launcher said before it ended; nothing if it made a sandbox.
async fn last_words(child: &mut Child) -> Option<EngineError> {
    let mut said = Vec::new();
    let words = child.stderr.take()?;
    words.take(WORDS_MAX as u64).read_to_end(&mut said).await.ok()?;
    (!said.is_empty()).then(|| explain(&said))
}

/// What a launcher's last words mean.
pub(super) fn explain(said: &[u8]) -> EngineError {
    let error = match json::read_as::<LaunchFailure>(said, json::Limits::USUAL) {
        Ok(failure) => probe::explain(failure),
        Err(_) => LaunchError::Unknown(String::from_utf8_lossy(said).trim().to_owned()),
    };
    error.into()
}

/// Waits so long for the end of a launcher; whether it came.
pub(super) fn ends_within(launcher: &OwnedFd, wait: Duration) -> io::Result<bool> {
    let wait = Timespec::try_from(wait).map_err(io::Error::other)?;
    let mut polls = [PollFd::new(launcher, PollFlags::IN)];
    Ok(poll(&mut polls, Some(&wait))? > 0)
}

/// Ends a sandbox, from any task.
#[derive(Clone)]
pub(super) struct Handle(Arc<OwnedFd>);

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Handle")
    }
}

impl Handle {
    /// Whether every process of the sandbox is gone: its launcher ends after them.
    pub(super) fn has_ended(&self) -> bool {
        // What cannot be known is not taken for an end.
        ends_within(&self.0, Duration::ZERO).unwrap_or(false)
    }

    /// Has the launcher kill every process of the sandbox, and waits until they are gone.
    pub(super) async fn end(self) -> io::Result<()> {
        if pidfd_send_signal(&*self.0, Signal::TERM).is_err() {
            // It has ended, and was waited for.
            return Ok(());
        }
        let waiting = Arc::clone(&self.0);
        let gone = tokio::task::spawn_blocking(move || ends_within(&waiting, END_WAIT)).await;
        if gone.map_err(io::Error::other)?? {
            return Ok(());
        }
        let _ = pidfd_send_signal(&*self.0, Signal::KILL);
        Err(io::ErrorKind::TimedOut.into())
    }
}
