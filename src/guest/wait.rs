//! Before a call: what was started beforehand waits, and the host has yet to speak.
//!
//! ```text
//! created with an order        Hello, Ready            Start(Waiting)
//!   | start it, then sleep  ...  |  is it alive?  ...    |  is it alive? it is the call's now
//!   +-- time to live over, host gone, or it ended: everything is killed, the sandbox is over
//! ```
//!
//! Duty: sleep without a tick until the host speaks, and never hand out what is dead or was ordered
//! otherwise. Whatever the process prints meanwhile stays in its pipes and belongs to the call.

use crate::link::{Link, LinkError};
use crate::sys::{self, Poll};
use crate::underway::Underway;
use crate::{oom, report};
use runner_wire::{
    GuestMessage, HostMessage, Kind, Network, Phase, Seen, Start, StartLimits, VERSION, WireError,
};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

/// What the host ordered for the call.
pub enum Order {
    /// To start it.
    Begin(Start),
    /// To take over what waits, within these limits.
    TakeOver(Box<Underway>, StartLimits),
}

impl Order {
    /// Which connections of the call are accepted. What waited has none.
    pub fn network(&mut self) -> Option<Network> {
        match self {
            Self::Begin(start) => start.network.take(),
            Self::TakeOver(..) => None,
        }
    }

    /// The limits of the call.
    pub fn limits(&self) -> &StartLimits {
        match self {
            Self::Begin(start) => &start.limits,
            Self::TakeOver(_, limits) => limits,
        }
    }
}

/// A process that was started before anybody asked for it.
pub struct Waiting {
    order: Start,
    work: Underway,
}

impl Waiting {
    /// Starts it.
    pub fn begin(order: Start) -> Result<Self, LinkError> {
        let work = Underway::begin(order.clone())?;
        Ok(Self { order, work })
    }

    /// Fails if it has ended, or could not be started.
    fn check(&mut self) -> Result<(), LinkError> {
        while let Some(reaped) = sys::reap() {
            self.work.job.reaped(&reaped);
        }
        match self.work.job.ended() {
            None => Ok(()),
            Some(_) => Err(LinkError::Ended),
        }
    }

    /// Wakes when its end of the talk closes. Bytes do not wake: they are the call's.
    fn hangup(&self) -> Poll {
        self.work.outputs[2].fd().map_or(Poll::none(), Poll::hangup)
    }
}

/// Waits for the key, reports what is mounted, waits for the order.
pub fn handshake(
    link: &mut Link,
    hello_until: Instant,
    seen: Seen,
    mut waiting: Option<Waiting>,
    child_signal: &OwnedFd,
) -> Result<Order, (Phase, LinkError)> {
    // Without the key there is nobody to tell: the sandbox ends, and the host finds it gone.
    let hello = match message(link, hello_until, &mut waiting, child_signal) {
        Ok(HostMessage::Hello(hello)) if hello.version == VERSION => hello,
        Ok(_) => return Err(handshake_error(WireError::Unexpected(Kind::Hello).into())),
        Err(LinkError::Ended) => return Err((Phase::Wait, LinkError::Gone)),
        Err(error) => return Err(handshake_error(error)),
    };
    link.rekey(&hello.key);
    oom::wake(waiting.as_ref().and_then(|waiting| waiting.work.job.process()));
    let lease = Instant::now() + Duration::from_millis(hello.lease_ms);
    link.send(&GuestMessage::Ready(report::ready(seen, &hello.targets)))
        .and_then(|()| link.flush(lease))
        .and_then(|()| message(link, lease, &mut waiting, child_signal))
        .and_then(|message| match message {
            HostMessage::Start(start) => order(start, waiting),
            _ => Err(WireError::Unexpected(Kind::Start).into()),
        })
        .map_err(handshake_error)
}

fn handshake_error(error: LinkError) -> (Phase, LinkError) {
    match error {
        LinkError::Ended => (Phase::Wait, error),
        LinkError::Gone | LinkError::Wire(_) | LinkError::Io(_) => (Phase::Handshake, error),
    }
}

/// What waits is taken over, and nothing else is done in its place. Where nothing waits, starting says so.
fn order(start: Start, waiting: Option<Waiting>) -> Result<Order, LinkError> {
    match waiting {
        None => Ok(Order::Begin(start)),
        Some(mut waiting) => {
            start.takes_over(&waiting.order)?;
            waiting.check()?;
            Ok(Order::TakeOver(Box::new(waiting.work), start.limits))
        }
    }
}

/// The next message; past the deadline the host counts as gone.
fn message(
    link: &mut Link,
    deadline: Instant,
    waiting: &mut Option<Waiting>,
    child_signal: &OwnedFd,
) -> Result<HostMessage, LinkError> {
    loop {
        if let Some(waiting) = waiting {
            waiting.check()?;
        }
        if let Some(frame) = link.next_frame()? {
            return Ok(HostMessage::from_frame(frame)?);
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(LinkError::Gone);
        }
        // The end of a child comes as a signal, and by the talk that it closes: not every runtime's
        // signalfd can be trusted to wake.
        let mut polls = [
            Poll::read(link.input()),
            Poll::read(child_signal.as_raw_fd()),
            waiting.as_ref().map_or(Poll::none(), Waiting::hangup),
        ];
        sys::poll(&mut polls, left)?;
        if polls[0].ready() {
            link.read()?;
        }
        if polls[2].ready() {
            return Err(LinkError::Ended);
        }
        sys::drain(child_signal);
    }
}
