//! The body of a request on its way to its handler, within its credit.
//!
//! The task that reads the stream never waits for a handler: what it may have to hold is bounded by the
//! credit that the handler has given, and who sends beyond that has broken the talk.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::mpsc;

use super::body::Source;
use super::frame::{HostKind, WINDOW, encode};
use super::meter::Meter;
use super::{Boxed, Code, ProtocolError, Refusal};

/// Credit is given in pieces of at least this size, so that it does not cost a frame a chunk.
const CREDIT_STEP: u64 = WINDOW as u64 / 4;

enum Piece {
    Bytes(Vec<u8>),
    End,
}

/// The end of a body that the reading task holds.
#[derive(Debug)]
pub(super) struct Inlet {
    id: u32,
    pieces: Option<mpsc::UnboundedSender<Piece>>,
    credit: Arc<AtomicU64>,
    came: u64,
}

/// The end of a body that its handler holds.
pub(super) struct Incoming {
    id: u32,
    pieces: mpsc::UnboundedReceiver<Piece>,
    credit: Arc<AtomicU64>,
    owed: u64,
    control: mpsc::UnboundedSender<Vec<u8>>,
    meter: Arc<Meter>,
}

/// A body of request `id`; credit is sent by `control`.
pub(super) fn body(
    id: u32,
    control: mpsc::UnboundedSender<Vec<u8>>,
    meter: Arc<Meter>,
) -> (Inlet, Incoming) {
    let (sender, pieces) = mpsc::unbounded_channel();
    let credit = Arc::new(AtomicU64::new(u64::from(WINDOW)));
    let inlet = Inlet { id, pieces: Some(sender), credit: Arc::clone(&credit), came: 0 };
    (inlet, Incoming { id, pieces, credit, owed: 0, control, meter })
}

impl Inlet {
    /// A chunk came.
    ///
    /// # Errors
    /// It is beyond the credit, or the body had ended.
    pub(super) fn chunk(&mut self, bytes: Vec<u8>) -> Result<(), ProtocolError> {
        let Some(pieces) = &self.pieces else {
            return Err(ProtocolError::BadId { kind: "chunk", id: self.id });
        };
        let length = bytes.len() as u64;
        // Only this task takes, so that nothing can be taken between the look and the taking.
        if self.credit.load(Ordering::Acquire) < length {
            return Err(ProtocolError::OverCredit(self.id));
        }
        self.credit.fetch_sub(length, Ordering::AcqRel);
        self.came += length;
        if !bytes.is_empty() {
            // A handler that is gone does not want it any more.
            let _ = pieces.send(Piece::Bytes(bytes));
        }
        Ok(())
    }

    /// The body is complete.
    ///
    /// # Errors
    /// It had ended.
    pub(super) fn end(&mut self) -> Result<(), ProtocolError> {
        match self.pieces.take() {
            Some(pieces) => {
                let _ = pieces.send(Piece::End);
                Ok(())
            }
            None => Err(ProtocolError::BadId { kind: "end", id: self.id }),
        }
    }

    /// Bytes that came.
    pub(super) fn came(&self) -> u64 {
        self.came
    }

    /// Whether more may come.
    pub(super) fn is_open(&self) -> bool {
        self.pieces.is_some()
    }
}

impl Source for Incoming {
    fn next(&mut self) -> Boxed<'_, Result<Option<Vec<u8>>, Refusal>> {
        Box::pin(async move {
            match self.pieces.recv().await {
                Some(Piece::Bytes(bytes)) => {
                    self.meter.check()?;
                    self.give_credit(bytes.len() as u64);
                    Ok(Some(bytes))
                }
                Some(Piece::End) => Ok(None),
                None => Err(Refusal::new(Code::Cancelled, "the call is ending")),
            }
        })
    }
}

impl Incoming {
    fn give_credit(&mut self, bytes: u64) {
        self.owed += bytes;
        if self.owed < CREDIT_STEP {
            return;
        }
        let Ok(step) = u32::try_from(self.owed) else { return };
        self.owed = 0;
        // Counted before it is told: what the runtime sends at once is within it.
        self.credit.fetch_add(u64::from(step), Ordering::AcqRel);
        let frame = encode(HostKind::Credit.number(), self.id, &step.to_le_bytes());
        let _ = self.control.send(frame);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_body_moves_within_its_credit_and_not_beyond() {
        let (control, mut told) = mpsc::unbounded_channel();
        let (mut inlet, mut incoming) = body(7, control, Arc::new(Meter::new(u64::MAX)));
        let piece = vec![1; WINDOW as usize / 4];
        for _ in 0..4 {
            inlet.chunk(piece.clone()).unwrap();
        }
        assert_eq!(inlet.chunk(vec![1]), Err(ProtocolError::OverCredit(7)));
        assert_eq!(incoming.next().await.unwrap().unwrap().len(), piece.len());
        let frame = told.try_recv().unwrap();
        assert_eq!(frame, encode(20, 7, &(piece.len() as u32).to_le_bytes()));
        inlet.chunk(piece.clone()).unwrap();
        inlet.end().unwrap();
        assert!(inlet.chunk(Vec::new()).is_err() && inlet.end().is_err());
        for _ in 0..4 {
            assert!(incoming.next().await.unwrap().is_some());
        }
        assert_eq!(incoming.next().await, Ok(None));
        assert_eq!(inlet.came(), 5 * piece.len() as u64);
    }

    #[tokio::test]
    async fn a_body_whose_reader_is_gone_is_cancelled() {
        let (control, _told) = mpsc::unbounded_channel();
        let (inlet, mut incoming) = body(1, control, Arc::new(Meter::new(u64::MAX)));
        drop(inlet);
        assert_eq!(incoming.next().await.unwrap_err().code, Code::Cancelled);
    }
}
