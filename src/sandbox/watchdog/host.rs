//! Our end of a watchdog.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use super::watch::ARGUMENT;
use super::words::{Word, send};
use crate::engine::{CallId, Line};
use crate::pool::Order;

/// Variables that a watchdog inherits: they lead to what is known about the engine.
const KEPT: [&str; 2] = ["HOME", "XDG_CACHE_HOME"];

/// Our end of a watchdog.
#[derive(Debug)]
pub struct Watchdog {
    state: State,
    /// Whether there is something that must be ended if we die.
    needed: bool,
}

#[derive(Debug)]
enum State {
    /// It hears us.
    Awake(UnixStream),
    /// It is started when it is needed, and is told these words then.
    Asleep(Box<Command>, Vec<u8>),
    /// It could not be started, for this reason.
    Missing(io::ErrorKind),
}

impl Watchdog {
    /// Starts one for a call, as another run of `program` (this program). The ledger of the call's claims
    /// is cleaned when the call is over.
    ///
    /// # Errors
    /// It cannot be started; then nothing else may be.
    pub fn start(
        program: &Path,
        endpoint: &str,
        call: &CallId,
        ledger: Option<&Path>,
    ) -> io::Result<Self> {
        let mut watchdog = Self::later(program, endpoint, call, ledger);
        watchdog.awake()?;
        Ok(watchdog)
    }

    /// One that is started by [`awake`](Self::awake): before anything is made, or, for a sandbox that waited, while the
    /// engine and the guest are asked for it. Until then such a sandbox ends itself if we die: its guest sees the end of
    /// its input, or its time to live. Starting a process costs a millisecond, which a call can spend while it waits.
    #[must_use]
    pub fn later(program: &Path, endpoint: &str, call: &CallId, ledger: Option<&Path>) -> Self {
        let mut command = Command::new(program);
        command
            .arg(ARGUMENT)
            .arg(endpoint)
            .arg(call.as_str())
            .args(ledger)
            .env_clear()
            // What is known about the engine is kept there.
            .envs(KEPT.iter().filter_map(|name| Some((name, std::env::var_os(name)?))))
            // Away from the terminal's signals, the caller's pipes and the caller's folder.
            .process_group(0)
            .current_dir("/")
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Self { state: State::Asleep(Box::new(command), Vec::new()), needed: false }
    }

    /// Starts it, if it is not awake.
    ///
    /// # Errors
    /// It cannot be started; then what it should watch must end.
    pub fn awake(&mut self) -> io::Result<()> {
        let (command, words) = match &mut self.state {
            State::Awake(_) => return Ok(()),
            State::Missing(why) => return Err((*why).into()),
            State::Asleep(command, words) => (command, words),
        };
        let started = UnixStream::pair().and_then(|(socket, theirs)| {
            // Its end is not awaited: it outlives us.
            let _child = command.stdin(Stdio::from(OwnedFd::from(theirs))).spawn()?;
            send(&socket, words, None)?;
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

    /// Says that the engine is about to be asked for the sandbox on this line. It must be awake by then.
    pub fn asked(&mut self, line: &Line) {
        self.say_with(&Word::Asked, Some(line));
    }

    /// Says that the engine has made the sandbox: nothing more will appear.
    pub fn created(&mut self) {
        self.say(&Word::Made);
    }

    /// Says that a sandbox that waited, with this label, is the call's now.
    pub fn took(&mut self, label: &str) {
        self.needed = true;
        self.say(&Word::Took(label.to_owned()));
    }

    /// Says that one more sandbox shall wait.
    pub fn refill(&mut self, order: &Order) {
        self.say(&Word::Refill(Box::new(order.clone())));
    }

    /// Says where the call's records are: their log is written back when nobody waits for it.
    pub fn settle(&mut self, state: &Path) {
        self.say(&Word::Settle(state.to_owned()));
    }

    /// Says that the guest told its end. The sandbox ends, and the next is made, when this end of the watchdog is closed.
    pub fn ended(&mut self) {
        self.say(&Word::Ended);
    }

    fn say(&mut self, word: &Word) {
        self.say_with(word, None);
    }

    fn say_with(&mut self, word: &Word, line: Option<&Line>) {
        let Ok(mut text) = serde_json::to_vec(word) else { return };
        text.push(b'\n');
        match &mut self.state {
            State::Awake(socket) => {
                // If it is dead, the next sweep does its work.
                let _ = send(socket, &text, line.map(Line::as_fd));
            }
            State::Asleep(_, words) => words.extend(text),
            State::Missing(_) => {}
        }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        // A call that was given up with a sandbox in its hands: somebody must see to its end.
        if self.needed {
            let _ = self.awake();
        }
    }
}
