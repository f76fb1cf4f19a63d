//! Standard error while a tool runs, shared by its prints, its log and runner's questions.
//!
//! A tool's text must not appear between a question and its answer, and a blocked terminal must not stop the call. So all
//! text goes through one bounded queue to one writer thread. A question holds a lock, and until it is answered nothing
//! else is written.

use std::io::{self, Write as _};
use std::pin::Pin;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::AsyncWrite;
use tokio::sync::mpsc::{self, OwnedPermit, error::SendError, error::TrySendError};

use crate::audit::{Prints, Redactor};
use crate::cli::terminal::Terminal;

/// Pieces of text that may wait to be written.
const WAITING: usize = 256;

/// The longest piece of a tool's prints.
const PIECE: usize = 8 << 10;

/// How long the last pieces may take to be written.
const LAST: Duration = Duration::from_secs(5);

/// Standard error, shared.
pub(in crate::cli) struct SharedStderr {
    queue: Option<mpsc::Sender<Vec<u8>>>,
    gate: Arc<Mutex<()>>,
    written: Mutex<Receiver<()>>,
}

/// Holds everything else back.
pub(in crate::cli) struct Held<'d>(
    #[expect(dead_code, reason = "what counts is that it is held")] MutexGuard<'d, ()>,
);

impl SharedStderr {
    /// Starts the thread that writes.
    pub fn new() -> Self {
        let (queue, mut pieces) = mpsc::channel::<Vec<u8>>(WAITING);
        let gate = Arc::new(Mutex::new(()));
        let (done, written) = channel();
        let passing = Arc::clone(&gate);
        std::thread::spawn(move || {
            while let Some(piece) = pieces.blocking_recv() {
                let _turn = passing.lock().unwrap_or_else(PoisonError::into_inner);
                // A closed stderr is not an error.
                let _ = io::stderr().lock().write_all(&piece);
            }
            let _ = done.send(());
        });
        Self { queue: Some(queue), gate, written: Mutex::new(written) }
    }

    /// Writes a piece soon; whether there was room for it.
    pub fn write(&self, piece: Vec<u8>) -> bool {
        let sent = self.queue.as_ref().map(|queue| queue.try_send(piece));
        !matches!(sent, Some(Err(TrySendError::Full(_))))
    }

    /// Holds back whatever else would be written.
    pub fn hold(&self) -> Held<'_> {
        Held(self.gate.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A sink for what a tool prints, which hides secrets. On a terminal it is shown as text.
    pub fn sink(&self, shown: Shown, redactor: &Redactor) -> Option<Sink> {
        let filter = match shown {
            Shown::AsText => Some(Terminal::new(Vec::new())),
            Shown::AsItIs => None,
        };
        let prints = redactor.prints();
        self.queue.clone().map(|queue| Sink { queue, prints, filter, room: None })
    }
}

impl Drop for SharedStderr {
    /// Waits until the last pieces are written, unless the reader is blocked.
    fn drop(&mut self) {
        self.queue = None;
        let written = self.written.get_mut().unwrap_or_else(PoisonError::into_inner);
        let _ = written.recv_timeout(LAST);
    }
}

/// How foreign bytes are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum Shown {
    /// Control characters as escapes.
    AsText,
    /// Unchanged.
    AsItIs,
}

type Room = Pin<Box<dyn Future<Output = Result<OwnedPermit<Vec<u8>>, SendError<()>>> + Send>>;

/// Where a tool's prints go.
pub(in crate::cli) struct Sink {
    queue: mpsc::Sender<Vec<u8>>,
    prints: Prints,
    filter: Option<Terminal<Vec<u8>>>,
    room: Option<Room>,
}

impl Sink {
    fn shown(&mut self, text: Vec<u8>) -> io::Result<Vec<u8>> {
        match &mut self.filter {
            Some(filter) => {
                filter.write_all(&text)?;
                Ok(std::mem::take(filter.get_mut()))
            }
            None => Ok(text),
        }
    }
}

impl Drop for Sink {
    /// Writes the last line, which had no end.
    fn drop(&mut self) {
        let rest = self.prints.finish();
        let Ok(piece) = self.shown(rest) else { return };
        if piece.is_empty() {
            return;
        }
        if let Err(TrySendError::Full(piece)) = self.queue.try_send(piece) {
            let queue = self.queue.clone();
            // Not here: who drops this may be the one thread of an event loop.
            std::thread::spawn(move || queue.blocking_send(piece));
        }
    }
}

impl AsyncWrite for Sink {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let queue = self.queue.clone();
        let room = self.room.get_or_insert_with(|| Box::pin(queue.reserve_owned()));
        let permit = ready!(room.as_mut().poll(context));
        self.room = None;
        let taken = bytes.len().min(PIECE);
        let text = self.prints.push(&bytes[..taken]);
        let piece = self.shown(text)?;
        // A desk that is closed has no reader any more.
        let permit = permit.map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
        permit.send(piece);
        Poll::Ready(Ok(taken))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_holds_back_what_waits_and_a_full_queue_says_so() {
        let desk = SharedStderr::new();
        let held = desk.hold();
        // One piece may be in the writer's hands, waiting at the gate.
        let taken = (0..WAITING + 2).filter(|_| desk.write(Vec::new())).count();
        assert!((WAITING..WAITING + 2).contains(&taken), "{taken}");
        drop(held);
        drop(desk);
    }
}
