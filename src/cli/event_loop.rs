//! The event loop and the signal watch of this process.
//!
//! Duty: the parts below are async and take their cancellation as a value; this file is where a command starts them. Each
//! subcommand makes one loop at most. Where no watch is made, and before and after it, SIGINT, SIGTERM and SIGHUP end the
//! process at once. Non-goal: the watchdog, a program of its own with its own loop.

use std::io;

use tokio::signal::unix::{SignalKind, signal};

use super::Error;
use crate::call::CallError;
use crate::sandbox::cancel::Cancel;
use crate::sandbox::outcome::CancelCause;
use crate::sys;

/// Runs a future to its end. A signal ends the process.
pub(super) fn in_event_loop<T>(work: impl Future<Output = T>) -> Result<T, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| CallError::Local("start the event loop", error))?;
    let result = runtime.block_on(work);
    // A thread may still wait for standard input or for a person; the process does not wait for it.
    runtime.shutdown_background();
    Ok(result)
}

/// Runs a future that a signal cancels.
pub(super) fn cancellable<T>(
    work: impl AsyncFnOnce(&mut Cancel) -> Result<T, Error>,
) -> Result<T, Error> {
    let result = in_event_loop(async {
        let mut cancel =
            watch_signals().map_err(|error| CallError::Local("catch signals", error))?;
        work(&mut cancel).await
    });
    sys::default_signals();
    result?
}

/// SIGINT, SIGTERM and SIGHUP of this process, from here on.
fn watch_signals() -> io::Result<Cancel> {
    let (canceller, cancel) = Cancel::pair();
    for (kind, cause) in [
        (SignalKind::interrupt(), CancelCause::Interrupt),
        (SignalKind::terminate(), CancelCause::Terminate),
        (SignalKind::hangup(), CancelCause::Terminate),
    ] {
        let mut signals = signal(kind)?;
        let canceller = canceller.clone();
        tokio::spawn(async move {
            while signals.recv().await.is_some() {
                canceller.cancel(cause);
            }
        });
    }
    sys::catch_signals();
    Ok(cancel)
}
