//! The guest: the only program that we start in a sandbox. PID 1, one thread, one poll loop.
//!
//! Duty: prove what is mounted, run what it is told, stream, count, and end the sandbox. Non-goals:
//! deciding anything; the host has decided before `Start` comes. Trust boundary: the host's frames
//! are trusted once the key is known; the processes that the guest starts are not, and they may run as
//! the same user, so the guest is undumpable and every frame carries a code of authentication.
//!
//! Arguments: the milliseconds to wait for the host's first word, and, for a sandbox that is to wait with
//! its process started, the order to start it (a `Start` as JSON).
//!
//! The same executable has a second life as a *stage*: between fork and exec of a command it is a
//! fresh process without the key that applies limits and redirections (see [`stage`]), and a third in place of a shell
//! that a program starts, with a line that the host has judged (see [`within`]). Outside of a sandbox it is the launcher that makes one (see
//! [`launch`]).

mod call;
mod cgroup;
mod filter;
mod glob;
mod job;
mod launch;
mod link;
mod memory;
mod net;
mod oom;
mod program;
mod report;
mod script;
mod serve;
mod stage;
mod stdio;
mod sys;
mod test;
mod underway;
mod wait;
mod watch;
mod within;

use std::process::ExitCode;
use std::time::Duration;

/// How long a guest waits for the host's first frame, if it has no arguments.
const HELLO_WAIT: Duration = Duration::from_secs(60);

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    let first = args.next();
    if first.as_deref().is_some_and(|arg| arg == stage::ARGUMENT) {
        return stage::main(args);
    }
    if first.as_deref().is_some_and(|arg| arg == within::ARGUMENT) {
        return within::main(args);
    }
    if first.as_deref().is_some_and(|arg| arg == within::SCRIPT) {
        return within::script_main(args);
    }
    if first.as_deref().is_some_and(|arg| arg == runner_wire::LAUNCH) {
        return launch::main();
    }
    // As anything but the first process of its own namespace it would kill what is not its own.
    if std::process::id() != 1 {
        return ExitCode::from(125);
    }
    let wait =
        first.and_then(|arg| arg.to_str()?.parse().ok()).map_or(HELLO_WAIT, Duration::from_millis);
    // An order that cannot be read is no order to ignore.
    let beforehand = match args.next().map(|order| serde_json::from_slice(order.as_encoded_bytes()))
    {
        None => None,
        Some(Ok(order)) => Some(order),
        Some(Err(_)) => return ExitCode::from(125),
    };
    match serve::run(wait, beforehand) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::from(125),
    }
}
