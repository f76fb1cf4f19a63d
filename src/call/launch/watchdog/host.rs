//! The host's end of a watchdog.

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{MemfdFlags, memfd_create};

use super::message::{Message, send};
use super::watch::{ARGUMENT, PATIENT, REFILL_AFTER};
use crate::engine::{Address, Lifeline};
use crate::environment::Environment;
use crate::ids::CallId;
use crate::pool::Order;
use crate::sys;

/// The caller's variables that a watchdog is given: they lead to what is known about the engine.
const KEPT: [&str; 2] = ["HOME", "XDG_CACHE_HOME"];

/// The host's end of a watchdog.
#[derive(Debug)]
pub struct Watchdog {
    state: State,
    /// Whether there is something that must be ended if we die.
    needed: bool,
}

#[derive(Debug)]
enum State {
    /// It hears us, or will.
    Awake(UnixStream),
    /// It is started when it is needed, and is told these words then, each with its descriptor.
    Asleep(Box<Start>, Vec<(Vec<u8>, Option<OwnedFd>)>),
    /// It could not be started, for this reason.
    Missing(io::ErrorKind),
    /// The sandbox is a child of this process, and ends with it.
    NotNeeded,
}

/// What a watchdog is started with.
#[derive(Debug)]
struct Start {
    program: CString,
    address: CString,
    call: CString,
    variables: Vec<CString>,
}

/// When a watchdog begins to work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activation {
    /// At once, as a program of its own: there may be a sandbox without a guest to end it.
    Now,
    /// When we are gone, or after a moment. Until then it is a process that costs next to nothing, and dies with us if
    /// the kernel has to end processes for want of memory; for a sandbox whose guest ends with us too.
    Patient,
}

impl Watchdog {
    /// Starts one for a call, as another run of `program` (this program).
    ///
    /// # Errors
    /// It cannot be started; then nothing else may be.
    pub fn start(
        program: &Path,
        address: &Address,
        call: &CallId,
        environment: &Environment,
    ) -> io::Result<Self> {
        let mut watchdog = Self::later(program, address, call, environment)?;
        watchdog.activate(Activation::Now)?;
        Ok(watchdog)
    }

    /// None, for an engine whose sandboxes end with this process.
    #[must_use]
    pub fn none() -> Self {
        Self { state: State::NotNeeded, needed: false }
    }

    /// It is not needed after all, unless it has begun: the sandbox ends with this process, and nothing shall wait.
    pub fn spare(&mut self) {
        if matches!(self.state, State::Asleep(..)) {
            self.state = State::NotNeeded;
        }
    }

    /// One that is started by [`awake`](Self::awake): before anything is made, or when a sandbox that waited is taken.
    ///
    /// # Errors
    /// It cannot be told what it has to know.
    pub fn later(
        program: &Path,
        address: &Address,
        call: &CallId,
        environment: &Environment,
    ) -> io::Result<Self> {
        let variables = KEPT.iter().filter_map(|name| {
            let value = environment.get(name)?;
            CString::new([name.as_bytes(), b"=", value.as_bytes()].concat()).ok()
        });
        let start = Start {
            program: text(program)?,
            address: text(address.to_string())?,
            call: text(call.as_str())?,
            variables: variables.collect(),
        };
        Ok(Self { state: State::Asleep(Box::new(start), Vec::new()), needed: false })
    }

    /// Starts it, if it is not awake.
    ///
    /// # Errors
    /// It cannot be started; then what it should watch must end.
    pub fn activate(&mut self, activation: Activation) -> io::Result<()> {
        let (start, words) = match &self.state {
            State::Awake(_) | State::NotNeeded => return Ok(()),
            State::Missing(why) => return Err((*why).into()),
            State::Asleep(start, words) => (start, words),
        };
        let started = UnixStream::pair().and_then(|(socket, theirs)| {
            for (word, with) in words {
                send(&socket, word, with.as_ref().map(AsFd::as_fd))?;
            }
            // Its end is not awaited: it outlives us.
            sys::sentinel(
                &OwnedFd::from(theirs),
                start.program(activation)?,
                activation.patience(),
            )?;
            Ok(socket)
        });
        match started {
            Ok(socket) => self.state = State::Awake(socket),
            Err(error) => {
                self.state = State::Missing(error.kind());
                return Err(error);
            }
        }
        Ok(())
    }

    /// Says that a sandbox that waited, with this label, is the call's now.
    pub fn took(&mut self, label: &str) {
        self.needed = true;
        self.say(&Message::Took(label.to_owned()));
    }

    /// Says that one more sandbox shall wait.
    pub fn refill(&mut self, order: &Order) {
        // Beside the words: an order can be larger than what a patient watchdog's socket holds until it is read.
        let _ = written(order).map(|order| self.say_with(&Message::Refill, Some(order)));
    }

    /// Says where the call's records are: their log is written back in the background.
    pub fn settle(&mut self, state: &Path) {
        self.say(&Message::Settle(state.to_owned()));
    }

    /// Says that the guest told its end. The sandbox ends, and the next is made, when this end of the watchdog is closed.
    pub fn ended(&mut self) {
        self.say(&Message::Ended);
    }

    fn say(&mut self, word: &Message) {
        self.say_with(word, None);
    }

    fn say_with(&mut self, word: &Message, with: Option<OwnedFd>) {
        let Ok(mut text) = serde_json::to_vec(word) else { return };
        text.push(b'\n');
        match &mut self.state {
            State::Awake(socket) => {
                // If it is dead, the next sweep does its work.
                let _ = send(socket, &text, with.as_ref().map(AsFd::as_fd));
            }
            State::Asleep(_, words) => words.push((text, with)),
            State::Missing(_) | State::NotNeeded => {}
        }
    }
}

/// It must be awake before an engine is asked for anything.
impl Lifeline for Watchdog {
    fn pending(&mut self, until_closed: BorrowedFd<'_>) {
        self.say_with(&Message::Pending, until_closed.try_clone_to_owned().ok());
    }

    fn settled(&mut self) {
        self.say(&Message::Settled);
    }
}

/// An order as a file in memory.
fn written(order: &Order) -> io::Result<OwnedFd> {
    let mut file = File::from(memfd_create("order", MemfdFlags::CLOEXEC)?);
    file.write_all(&serde_json::to_vec(order)?)?;
    file.rewind()?;
    Ok(file.into())
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        // A call was dropped with a sandbox: the watchdog must remove it.
        if self.needed {
            let _ = self.activate(Activation::Now);
        }
    }
}

impl Activation {
    const fn patience(self) -> Duration {
        match self {
            Self::Now => Duration::ZERO,
            Self::Patient => REFILL_AFTER,
        }
    }

    const fn argument(self) -> &'static str {
        match self {
            Self::Now => ARGUMENT,
            Self::Patient => PATIENT,
        }
    }
}

impl Start {
    fn program(&self, activation: Activation) -> io::Result<sys::Program> {
        let words = vec![
            self.program.clone(),
            text(activation.argument())?,
            self.address.clone(),
            self.call.clone(),
        ];
        let variables = self.variables.clone();
        Ok(sys::Program { path: self.program.clone(), words, variables })
    }
}

fn text(text: impl AsRef<OsStr>) -> io::Result<CString> {
    Ok(CString::new(text.as_ref().as_bytes())?)
}
