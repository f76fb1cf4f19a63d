//! Asking a running call to end: by a signal to this process, or by whoever holds the handle.

use std::io;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use super::outcome::CancelCause;
use crate::sys;

/// More requests than this say nothing new.
const QUEUE: usize = 4;

/// The end of a call that asks.
#[derive(Debug, Clone)]
pub struct Canceller(mpsc::Sender<CancelCause>);

impl Canceller {
    /// Asks. A second time ends the call at once.
    pub fn cancel(&self, cause: CancelCause) {
        // A full queue holds two requests already.
        let _ = self.0.try_send(cause);
    }
}

/// The end of a call that listens.
#[derive(Debug)]
pub struct Cancel(mpsc::Receiver<CancelCause>);

impl Cancel {
    /// A pair of ends.
    #[must_use]
    pub fn pair() -> (Canceller, Self) {
        let (sender, receiver) = mpsc::channel(QUEUE);
        (Canceller(sender), Self(receiver))
    }

    /// SIGINT and SIGTERM of this process, from here on.
    ///
    /// # Errors
    /// The signals cannot be caught.
    pub fn on_signals() -> io::Result<Self> {
        let (canceller, cancel) = Self::pair();
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

    /// The next request; never returns if nobody can ask.
    pub async fn asked(&mut self) -> CancelCause {
        match self.0.recv().await {
            Some(cause) => cause,
            None => std::future::pending().await,
        }
    }
}
