//! A line inside a command: `timeout 5 sh -c LINE` is `timeout 5 GUEST line PLAN`, and this executes the plan.
//!
//! Duty: what a shell would do as a child of another program, for a line that the host has read and judged. It is an
//! ordinary process without the key, in the group of its parent, with the parent's folder, environment, limits and
//! streams. It gives no rights: who can start it could start the commands of the line.

use crate::job::Job;
use crate::program::Teller;
use crate::stage::Env;
use crate::{script, sys};
use runner_wire::{Bytes, Ending, Line, Script};
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::ExitCode;

/// The first argument of a guest that executes a line; the second is the line as JSON.
pub const ARGUMENT: &str = "line";

/// The same for a line with variables, conditions or loops.
pub const SCRIPT: &str = "script";

/// Status of a line that cannot be begun.
const CANNOT: u8 = 126;

/// The words that have another program start the guest for a line.
pub fn words(line: &Line) -> io::Result<Vec<Bytes>> {
    let guest = std::env::current_exe()?.into_os_string();
    Ok(vec![guest.into(), Bytes::from(ARGUMENT), Bytes::from(serde_json::to_vec(line)?)])
}

/// The words that have another program start the guest for a line with variables, conditions or loops.
/// `folder` is where it starts, as it was entered.
pub fn script_words(script: &Script, folder: &[u8]) -> io::Result<Vec<Bytes>> {
    let guest = std::env::current_exe()?.into_os_string();
    let script = Bytes::from(serde_json::to_vec(script)?);
    Ok(vec![guest.into(), Bytes::from(SCRIPT), script, Bytes(folder.to_vec())])
}

/// The whole life of a guest that was started so. Nobody hears what it tells.
pub fn script_main(mut args: impl Iterator<Item = OsString>) -> ExitCode {
    let (Some(script), folder, None) = (args.next(), args.next(), args.next()) else {
        return ExitCode::from(CANNOT);
    };
    let Ok(script) = serde_json::from_slice(script.as_encoded_bytes()) else {
        return ExitCode::from(CANNOT);
    };
    let env = std::env::vars_os().map(|(name, value)| (name.into(), value.into()));
    let Ok(teller) = Teller::unheard() else { return ExitCode::from(CANNOT) };
    // As a shell takes PWD: only if it is where this process is. What started it may have gone elsewhere.
    let folder = folder.filter(|folder| is_here(Path::new(folder)));
    let folder = folder.map(OsString::into_encoded_bytes);
    ExitCode::from(script::run(script, env.collect(), folder, teller))
}

fn is_here(folder: &Path) -> bool {
    let found = folder.metadata().ok().zip(Path::new(".").metadata().ok());
    found.is_some_and(|(one, here)| (one.dev(), one.ino()) == (here.dev(), here.ino()))
}

/// The whole life of a guest that was started so.
pub fn main(mut args: impl Iterator<Item = OsString>) -> ExitCode {
    let (Some(line), None) = (args.next(), args.next()) else {
        return ExitCode::from(CANNOT);
    };
    match serde_json::from_slice(line.as_encoded_bytes()) {
        Ok(line) => {
            let env = std::env::vars_os().map(|(name, value)| (name.into(), value.into()));
            run(line, env.collect())
        }
        Err(_) => ExitCode::from(CANNOT),
    }
}

/// Executes a line with the standard streams of this process; its status.
pub fn run(line: Line, env: Env) -> ExitCode {
    let Ok(streams) = streams() else { return ExitCode::from(CANNOT) };
    let mut job = Job::within(line, env, streams);
    loop {
        if let Some(ending) = job.ended() {
            return ExitCode::from(status(ending));
        }
        match sys::wait() {
            Some(reaped) => job.reaped(&reaped),
            None => return ExitCode::from(CANNOT),
        }
    }
}

fn streams() -> io::Result<[OwnedFd; 3]> {
    let copy = |stream: &dyn AsFd| stream.as_fd().try_clone_to_owned();
    Ok([copy(&io::stdin())?, copy(&io::stdout())?, copy(&io::stderr())?])
}

/// As shells have it.
fn status(ending: &Ending) -> u8 {
    match ending {
        Ending::Exited { status } => u8::try_from(status & 0xff).unwrap_or(CANNOT),
        Ending::Signalled { signal } => u8::try_from(128 + signal).unwrap_or(CANNOT),
        _ => CANNOT,
    }
}
