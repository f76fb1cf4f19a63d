//! A child process that outlives us by a moment: whatever kills us, our sandbox goes too.
//!
//! The guest ends its sandbox when we die, but between create and start nobody is inside to do that.
//! So this child is started first. Its standard input is a pipe from us; when that closes, by any death
//! of ours, it removes every sandbox with the label of the call, also one that was never started and
//! one that the daemon was still making. After an orderly end it looks once whether the sandbox is
//! gone.
//!
//! It is also who makes the next waiting sandbox, behind the call's back: once the call has ended, or goes on for
//! longer than a moment; and who writes the log of the records back, last of all.
//!
//! ```text
//! host                                   watchdog
//!  | -- spawn(endpoint, call) ----------> |  waits on its standard input
//!  | -- asked: a sandbox is asked for --> |
//!  | -- made: the sandbox was made -----> |
//!  | -- took: one that waited is ours --> |
//!  | -- refill: one more like this -----> |
//!  | -- settle: where the records are --> |
//!  | -- ended: the guest told its end --> |
//!  | -- close (or death) ---------------> |  ended: refills, looks a little later
//!                                         |  asked alone: looks until it appears, for a while
//!                                         |  otherwise: removes what there is, once
//! ```

use std::ffi::OsString;
use std::io::{self, BufRead, PipeWriter, Write};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::claims;
use crate::engine::{CallId, Docker, Engine, EngineError, sweep};
use crate::pool::{Order, refill};
use crate::store::Store;

/// The first argument of a watchdog: not an option that a person would type.
pub const ARGUMENT: &str = "--internal-watchdog";

/// How long a sandbox whose guest told its end may take to be gone.
const ORDERLY: Duration = Duration::from_millis(1500);

/// How long a daemon may go on making a sandbox after the one who asked has died.
const LATE: Duration = Duration::from_secs(3);

/// Time between two looks.
const PAUSE: Duration = Duration::from_millis(200);

/// How long a refill waits for the call's end: making a sandbox costs more than most calls, and would slow them.
const REFILL_AFTER: Duration = Duration::from_millis(500);

/// Variables that a watchdog inherits: they lead to what is known about the engine.
const KEPT: [&str; 2] = ["HOME", "XDG_CACHE_HOME"];

/// What a host tells its watchdog; a line each.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Word {
    Asked,
    Made,
    Took(String),
    Refill(Box<Order>),
    Settle(PathBuf),
    Ended,
}

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
    Awake(PipeWriter),
    /// It is started when it is needed, and is told these words then.
    Asleep(Box<Command>, Vec<u8>),
    /// It could not be started.
    Missing,
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

    /// One that is started by [`awake`](Self::awake): before anything is made, or, for a sandbox that waited, once the
    /// command was sent. Until then such a sandbox ends itself if we die: its guest sees the end of its input, or its
    /// time to live. Starting a process costs a millisecond, which a call can spend while its command runs.
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
        match std::mem::replace(&mut self.state, State::Missing) {
            State::Awake(pipe) => self.state = State::Awake(pipe),
            State::Asleep(mut command, words) => {
                let (reader, mut pipe) = io::pipe()?;
                // Its end is not awaited: it outlives us.
                let _child = command.stdin(Stdio::from(reader)).spawn()?;
                pipe.write_all(&words)?;
                self.state = State::Awake(pipe);
            }
            State::Missing => return Err(io::ErrorKind::NotFound.into()),
        }
        Ok(())
    }

    /// Says that the daemon is about to be asked for the sandbox. It must be awake by then.
    pub fn asked(&mut self) {
        self.say(&Word::Asked);
    }

    /// Says that the daemon has made the sandbox: nothing more will appear.
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

    /// Says that the guest told its end and the sandbox is about to be gone.
    pub fn ended(mut self) {
        self.say(&Word::Ended);
    }

    fn say(&mut self, word: &Word) {
        let Ok(mut line) = serde_json::to_vec(word) else { return };
        line.push(b'\n');
        match &mut self.state {
            State::Awake(pipe) => {
                // If it is dead, the next sweep does its work.
                let _ = pipe.write_all(&line);
            }
            State::Asleep(_, words) => words.extend(line),
            State::Missing => {}
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

/// The whole life of a watchdog, if these are the words of one.
#[must_use]
pub fn main(words: &[OsString]) -> Option<ExitCode> {
    let ([_, argument, endpoint, call] | [_, argument, endpoint, call, _]) = words else {
        return None;
    };
    if argument != ARGUMENT {
        return None;
    }
    let ledger = words.get(4).map(Path::new);
    let watched = endpoint.to_str().zip(call.to_str().and_then(CallId::new));
    Some(match watched {
        Some((endpoint, call)) => match watch(endpoint, call, ledger) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        },
        None => ExitCode::FAILURE,
    })
}

/// What was heard so far.
struct Heard {
    /// The labels of the call's sandboxes: its own, and those of waiting ones that it took. One that did not wake may
    /// still be there beside the one that was made in its place.
    labels: Vec<CallId>,
    asked: bool,
    made: bool,
    ended: bool,
    order: Option<(Box<Order>, Instant)>,
    /// Where the records are.
    records: Option<PathBuf>,
}

impl Heard {
    fn take(&mut self, word: Word) {
        match word {
            Word::Asked => self.asked = true,
            Word::Made => self.made = true,
            Word::Took(label) => {
                self.labels.extend(CallId::new(&label));
            }
            Word::Refill(order) => self.order = Some((order, Instant::now())),
            Word::Settle(state) => self.records = Some(state),
            Word::Ended => self.ended = true,
        }
    }
}

fn watch(endpoint: &str, call: CallId, ledger: Option<&Path>) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let words = listen();
    let mut heard = Heard {
        labels: vec![call],
        asked: false,
        made: false,
        ended: false,
        order: None,
        records: None,
    };
    // Until the host is gone: every word, and a refill once it is time for it.
    loop {
        let left = heard.order.as_ref().map(|(_, since)| {
            if heard.ended { Duration::ZERO } else { REFILL_AFTER.saturating_sub(since.elapsed()) }
        });
        let word = match left {
            Some(left) => words.recv_timeout(left),
            None => words.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match word {
            Ok(word) => heard.take(word),
            Err(RecvTimeoutError::Timeout) => make(&runtime, endpoint, &mut heard),
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    if heard.ended {
        make(&runtime, endpoint, &mut heard);
    }
    bury(&runtime, endpoint, &heard, ledger)?;
    // What is not written back now is by the next one. A folder that is gone by now is not made anew.
    if let Ok(Some(store)) = Store::existing(heard.records.as_deref()) {
        let _ = store.settle();
    }
    ledger.map_or(Ok(()), claims::clean)
}

/// The host's words as they come; the channel closes when the host is gone.
fn listen() -> Receiver<Word> {
    let (sender, words) = channel();
    std::thread::spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            // Both ends are one program: what cannot be read was cut off by a death.
            let Ok(word) = serde_json::from_str(&line) else { break };
            if sender.send(word).is_err() {
                break;
            }
        }
    });
    words
}

/// Makes the sandbox that was ordered. Without one that waits, the next call makes its own.
fn make(runtime: &tokio::runtime::Runtime, endpoint: &str, heard: &mut Heard) {
    let Some((order, _)) = heard.order.take() else { return };
    let _ = runtime.block_on(async {
        let engine = Docker::connect_to(endpoint).await?;
        refill(&engine, &order).await
    });
}

/// Makes sure that the call's sandbox goes.
fn bury(
    runtime: &tokio::runtime::Runtime,
    endpoint: &str,
    heard: &Heard,
    ledger: Option<&Path>,
) -> io::Result<()> {
    let (first, until) = if heard.ended {
        (ORDERLY, ORDERLY)
    } else if heard.asked && !heard.made {
        (Duration::ZERO, LATE)
    } else {
        (Duration::ZERO, Duration::ZERO)
    };
    let died = Instant::now();
    std::thread::sleep(first);
    loop {
        // A daemon that restarts is waited for; what it forgot is found by the next sweep.
        let cleared = runtime.block_on(clear(endpoint, &heard.labels, heard.ended));
        let waited = died.elapsed();
        let enough = match cleared {
            // One sandbox is made for a call.
            Ok(removed) => removed > 0 || waited >= until,
            Err(_) => false,
        };
        if enough || waited >= LATE {
            return Ok(());
        }
        // The call's claim ended with its process; what it made and nobody wrote into goes now.
        if cleared.is_ok() {
            let _ = ledger.map_or(Ok(()), claims::clean);
        }
        std::thread::sleep(PAUSE);
    }
}

/// Removes what there is of a call; how many have its own label, which is the first. After a death also what else that
/// process has left.
async fn clear(endpoint: &str, labels: &[CallId], orderly: bool) -> Result<usize, EngineError> {
    let engine = Docker::connect_to(endpoint).await?;
    let mut own = None;
    for label in labels {
        let found = engine.list(Some(label)).await?;
        for sandbox in &found {
            engine.remove(&sandbox.id).await?;
        }
        own.get_or_insert(found.len());
    }
    if !orderly {
        sweep(&engine).await?;
    }
    Ok(own.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sandbox_that_was_taken_is_watched_beside_the_calls_own() {
        let (call, taken) = (CallId::fresh().unwrap(), CallId::fresh().unwrap());
        let mut heard = Heard {
            labels: vec![call.clone()],
            asked: false,
            made: false,
            ended: false,
            order: None,
            records: None,
        };
        heard.take(Word::Took(taken.to_string()));
        // It did not wake: one is made for the call, with the call's own label.
        heard.take(Word::Asked);
        heard.take(Word::Took("no label".to_owned()));
        assert_eq!(heard.labels, [call, taken]);
        assert!(heard.asked && !heard.made);
    }
}
