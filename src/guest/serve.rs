//! The guest's life: setup, what waits, handshake, the call, and the end of everything.

use crate::call::{Call, DRAIN_STOPPED};
use crate::cgroup::Counters;
use crate::link::{Link, LinkError};
use crate::wait::{Waiting, handshake};
use crate::{oom, report, sys};
use runner_wire::{Fatal, GuestMessage, Phase, Start};
use std::time::{Duration, Instant};

/// Runs the guest; returns when the sandbox is to end. What `beforehand` orders is started at once.
pub fn run(hello_wait: Duration, beforehand: Option<Start>) -> Result<(), LinkError> {
    sys::close_inherited();
    oom::wait();
    sys::set_undumpable()?;
    let child_signal = sys::child_signal()?;
    let mut link = Link::open()?;
    // Whatever can be found out before somebody waits.
    let (seen, counters) = (report::seen(), Counters::open());
    sys::ignored_signals();
    let hello_until = Instant::now() + hello_wait;
    let outcome = beforehand
        .map(Waiting::begin)
        .transpose()
        .map_err(|error| (Phase::Setup, error))
        .and_then(|waiting| handshake(&mut link, hello_until, seen, waiting, &child_signal))
        .and_then(|order| {
            let mut call = Call::begin(&mut link, child_signal, counters, order)
                .map_err(|error| (Phase::Spawn, error))?;
            call.run().map_err(|error| (Phase::Run, error))
        });
    sys::kill_all();
    match outcome {
        Ok(()) | Err((_, LinkError::Gone)) => Ok(()),
        Err((phase, error)) => {
            let message = error.to_string();
            link.send(&GuestMessage::Fatal(Fatal { phase, message }))?;
            link.flush(Instant::now() + DRAIN_STOPPED)?;
            Err(error)
        }
    }
}
