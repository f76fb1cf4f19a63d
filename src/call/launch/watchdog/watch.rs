//! The life of a watchdog: it hears the host out, and sees to the end of what is left.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufReader};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use super::message::{Inbox, Message, Next};
use super::remove::remove_sandboxes;
use crate::call::launch::run::this_program;
use crate::call::stage;
use crate::engine::{self, Address};
use crate::ids::CallId;
use crate::pool::{Order, refill};
use crate::store::Store;
use crate::sys;

/// The first argument of a watchdog: not an option that a person would type.
pub(super) const ARGUMENT: &str = "--internal-watchdog";

/// The same of one that has waited for [`REFILL_AFTER`], or for the host's end.
pub(super) const PATIENT: &str = "--internal-watchdog-patient";

/// How long a refill waits for the host's end: making a sandbox costs more than most calls, and would slow them.
pub(super) const REFILL_AFTER: Duration = Duration::from_millis(500);

/// The whole life of a watchdog, if these are the words of one.
#[must_use]
pub fn main(words: &[OsString]) -> Option<ExitCode> {
    let [_, argument, address, call] = words else {
        return None;
    };
    let pause = match argument.to_str()? {
        ARGUMENT => REFILL_AFTER,
        PATIENT => Duration::ZERO,
        _ => return None,
    };
    let address = address.to_str().and_then(|address| address.parse().ok());
    let watched = address.zip(call.to_str().and_then(CallId::new));
    let watched = watched.ok_or(io::ErrorKind::InvalidInput.into()).and_then(|(address, call)| {
        sys::unblock_signals()?;
        watch(&address, call, pause)
    });
    Some(if watched.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What was heard so far.
pub(super) struct Heard {
    /// The labels of the call's sandboxes: its own, and those of waiting ones that it took. One that did not wake may
    /// still be there beside the one that was made in its place.
    pub labels: Vec<CallId>,
    /// While the engine may still make a sandbox: the socket that it closes when it is done.
    pub pending: Option<OwnedFd>,
    /// Whether the guest told its end.
    pub ended: bool,
    /// What shall wait for the next call, as a file, and since when.
    order: Option<(OwnedFd, Instant)>,
    /// Where the records are.
    records: Option<PathBuf>,
}

impl Heard {
    fn of(call: CallId) -> Self {
        Self { labels: vec![call], pending: None, ended: false, order: None, records: None }
    }

    fn take(&mut self, word: Message, with: Option<OwnedFd>) {
        match word {
            Message::Pending => self.pending = with,
            Message::Settled => self.pending = None,
            Message::Took(label) => {
                self.labels.extend(CallId::new(&label));
            }
            Message::Refill => self.order = with.map(|order| (order, Instant::now())),
            Message::Settle(state) => self.records = Some(state),
            Message::Ended => self.ended = true,
        }
    }
}

/// It may start beside a call that is about to run, so it does next to nothing until the host is gone, or `pause` is over.
fn watch(address: &Address, call: CallId, pause: Duration) -> io::Result<()> {
    let mut words = Inbox::of(io::stdin());
    let mut heard = Heard::of(call);
    loop {
        let left = heard.order.as_ref().map(|(_, since)| pause.saturating_sub(since.elapsed()));
        match words.next(left) {
            Next::Message(word, with) => heard.take(word, with),
            Next::Nothing => make(&event_loop()?, &mut heard),
            Next::Over => break,
        }
    }
    let runtime = event_loop()?;
    let records = heard.records.take();
    std::thread::scope(|scope| {
        // Now, and not when all is over: while a sandbox is made, the next call like this one finds none that waits, so it
        // is not one of the fast ones that meets us at the records.
        scope.spawn(|| settle(records.as_deref()));
        if heard.ended {
            make(&runtime, &mut heard);
        }
        // It does not wait for a process that locks the records.
        remove_sandboxes(&runtime, address, &heard);
    });
    if let Some(state) = &records {
        stage::clear(state, &heard.labels);
    }
    Ok(())
}

/// Writes the log of the records back. What is not written now is by the next one; a folder that is gone by now is not made
/// anew.
fn settle(records: Option<&Path>) {
    if let Ok(Some(store)) = Store::existing(records) {
        let _ = store.settle();
    }
}

fn event_loop() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

/// Makes the sandbox that was ordered. Without one that waits, the next call makes its own.
fn make(runtime: &tokio::runtime::Runtime, heard: &mut Heard) {
    let Some((order, _)) = heard.order.take() else { return };
    let Ok(order) = serde_json::from_reader::<_, Order>(BufReader::new(File::from(order))) else {
        return;
    };
    let _ = runtime.block_on(async {
        let cache = engine::cache_folder(&|name| std::env::var_os(name));
        let engine = engine::at(&order.address, cache).await?;
        refill(engine.as_ref(), &order, &this_program()).await
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sandbox_that_was_taken_is_watched_beside_the_calls_own() {
        let (call, taken) = (CallId::fresh().unwrap(), CallId::fresh().unwrap());
        let mut heard = Heard::of(call.clone());
        heard.take(Message::Took(taken.to_string()), None);
        // It did not wake: one is made for the call, with the call's own label.
        let (socket, _daemon) = std::os::unix::net::UnixStream::pair().unwrap();
        heard.take(Message::Pending, Some(socket.into()));
        heard.take(Message::Took("no label".to_owned()), None);
        assert_eq!(heard.labels, [call, taken]);
        assert!(heard.pending.is_some());
        heard.take(Message::Settled, None);
        assert!(heard.pending.is_none(), "nothing more will appear");
    }
}
