//! The guest: the only program that we start in a sandbox. PID 1, one thread, one poll loop.
//!
//! Duty: prove what is mounted, run what it is told, stream, count, and end the sandbox. Non-goals:
//! deciding anything; the host has decided before `Start` comes. Trust boundary: the host's frames
//! are trusted once the key is known; the processes that the guest starts are not, and they may run as
//! the same user, so the guest is undumpable and every frame carries a code of authentication.
//!
//! The same executable has a second life as a *stage*: between fork and exec of a command it is a
//! fresh process without the key that applies limits and redirections (see [`stage`]).

mod cgroup;
mod glob;
mod job;
mod link;
mod report;
mod serve;
mod stage;
mod stdio;
mod sys;
mod test;
mod watch;

use std::process::ExitCode;
use std::time::Duration;

/// How long a guest waits for the host's first frame, unless its first argument says otherwise.
const HELLO_WAIT: Duration = Duration::from_secs(60);

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    let first = args.next();
    if first.as_deref().is_some_and(|arg| arg == stage::ARGUMENT) {
        return stage::main(args);
    }
    // As anything but the first process of its own namespace it would kill what is not its own.
    if std::process::id() != 1 {
        return ExitCode::from(125);
    }
    let wait =
        first.and_then(|arg| arg.to_str()?.parse().ok()).map_or(HELLO_WAIT, Duration::from_millis);
    match serve::run(wait) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::from(125),
    }
}
