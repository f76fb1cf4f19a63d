//! A child process that outlives us by a moment: whatever kills us, our sandbox goes too.
//!
//! The guest ends its sandbox when we die, but between create and start nobody is inside to do that.
//! So this child is started first. Its standard input is a pipe from us; when that closes, by any death
//! of ours, it removes every sandbox with the label of the call, also one that was never started and
//! one that the daemon was still making. After an orderly end it looks once whether the sandbox is
//! gone.
//!
//! ```text
//! host                                   watchdog
//!  | -- spawn(endpoint, call) ----------> |  waits on its standard input
//!  | -- "a": a sandbox is asked for ----> |
//!  | -- "c": the sandbox was made ------> |
//!  | -- "e": the guest told its end ----> |
//!  | -- close (or death) ---------------> |  "e": looks a little later
//!                                         |  "a" alone: looks until it appears, for a while
//!                                         |  otherwise: removes what there is, once
//! ```

use std::ffi::OsString;
use std::io::{self, PipeWriter, Read, Write};
use std::path::Path;
use std::process::{ExitCode, Stdio};
use std::time::{Duration, Instant};

use tokio::process::Command;

use super::claims;
use crate::engine::{CallId, Docker, Engine, sweep};

/// The first argument of a watchdog: not an option that a person would type.
pub const ARGUMENT: &str = "--internal-watchdog";

/// How long a sandbox whose guest told its end may take to be gone.
const ORDERLY: Duration = Duration::from_millis(1500);

/// How long a daemon may go on making a sandbox after the one who asked has died.
const LATE: Duration = Duration::from_secs(3);

/// Time between two looks.
const PAUSE: Duration = Duration::from_millis(200);

/// Our end of a watchdog.
#[derive(Debug)]
pub struct Watchdog {
    pipe: PipeWriter,
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
        let (reader, pipe) = io::pipe()?;
        // Its end is not awaited; the runtime reaps it if we are still there.
        let _child = Command::new(program)
            .arg(ARGUMENT)
            .arg(endpoint)
            .arg(call.as_str())
            .args(ledger)
            .env_clear()
            // Away from the terminal's signals, the caller's pipes and the caller's folder.
            .process_group(0)
            .current_dir("/")
            .stdin(Stdio::from(reader))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Self { pipe })
    }

    /// Says that the daemon is about to be asked for the sandbox.
    pub fn asked(&mut self) {
        // If it is dead, the next sweep does its work.
        let _ = self.pipe.write_all(b"a");
    }

    /// Says that the daemon has made the sandbox: nothing more will appear.
    pub fn created(&mut self) {
        // If it is dead, the next sweep does its work.
        let _ = self.pipe.write_all(b"c");
    }

    /// Says that the guest told its end and the sandbox is about to be gone.
    pub fn ended(mut self) {
        let _ = self.pipe.write_all(b"e");
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
        Some((endpoint, call)) => match watch(endpoint, &call, ledger) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        },
        None => ExitCode::FAILURE,
    })
}

fn watch(endpoint: &str, call: &CallId, ledger: Option<&Path>) -> io::Result<()> {
    let mut words = Vec::new();
    io::stdin().read_to_end(&mut words)?;
    let heard = |word: u8| words.contains(&word);
    let orderly = heard(b'e');
    let (first, until) = if orderly {
        (ORDERLY, ORDERLY)
    } else if heard(b'a') && !heard(b'c') {
        (Duration::ZERO, LATE)
    } else {
        (Duration::ZERO, Duration::ZERO)
    };
    let died = Instant::now();
    std::thread::sleep(first);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    loop {
        // A daemon that restarts is waited for; what it forgot is found by the next sweep.
        let cleared = runtime.block_on(clear(endpoint, call, orderly));
        let waited = died.elapsed();
        let enough = match cleared {
            // There is one sandbox to a call.
            Ok(removed) => removed > 0 || waited >= until,
            Err(_) => false,
        };
        // The call's claim ended with its process; what it made and nobody wrote into goes now.
        if enough || waited >= LATE {
            return ledger.map_or(Ok(()), claims::clean);
        }
        if cleared.is_ok() {
            let _ = ledger.map_or(Ok(()), claims::clean);
        }
        std::thread::sleep(PAUSE);
    }
}

/// Removes what there is of a call; how many. After a death also what else that process has left.
async fn clear(
    endpoint: &str,
    call: &CallId,
    orderly: bool,
) -> Result<usize, crate::engine::EngineError> {
    let engine = Docker::connect_to(endpoint).await?;
    let found = engine.list(Some(call)).await?;
    for sandbox in &found {
        engine.remove(&sandbox.id).await?;
    }
    if !orderly {
        sweep(&engine).await?;
    }
    Ok(found.len())
}
