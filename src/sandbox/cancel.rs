//! Asking a running call to end. The front that makes a call holds one end, the call listens at the other.

use tokio::sync::mpsc;

use super::outcome::CancelCause;

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

    /// The next request; never returns if all senders are gone.
    pub async fn asked(&mut self) -> CancelCause {
        match self.0.recv().await {
            Some(cause) => cause,
            None => std::future::pending().await,
        }
    }
}
