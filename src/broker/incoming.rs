//! The body of a request on its way to its handler, within its credit.
//!
//! The task that reads the stream never waits for a handler: what it may have to hold is bounded by the
//! credit that the handler has given, and who sends beyond that has broken the talk. Credit counts bytes,
//! so what is held must cost about as many: small chunks are put together, or a body that comes byte by byte
//! would cost a list entry and an allocation for each.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, mpsc};

use super::body::Source;
use super::frame::{CHUNK_MAX, HostKind, WINDOW, encode};
use super::meter::Meter;
use super::{Boxed, ProtocolError, Refusal};

use crate::codes::Code;

/// Credit is given in pieces of at least this size, so that it does not cost a frame a chunk.
const CREDIT_STEP: u64 = WINDOW as u64 / 4;

/// Most memory that one body takes while nobody takes its pieces: an allocation that grows has at most
/// twice the size of what is in it. The list itself is short: two neighbours are together longer than a chunk.
pub(super) const HELD_MAX: usize = 2 * WINDOW as usize;

/// What both ends of a body share.
#[derive(Debug, Default)]
struct Pipe {
    held: Mutex<Held>,
    changed: Notify,
}

/// What has come and was not taken.
#[derive(Debug, Default)]
struct Held {
    pieces: VecDeque<Vec<u8>>,
    /// The body is complete.
    complete: bool,
    /// Nothing more will come, complete or not.
    closed: bool,
    /// Nobody will take anything any more.
    unwanted: bool,
}

impl Pipe {
    fn held(&self) -> MutexGuard<'_, Held> {
        // Nothing that holds it can leave it half changed.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    fn put(&mut self, bytes: Vec<u8>) {
        if bytes.is_empty() || self.unwanted {
            return;
        }
        match self.pieces.back_mut() {
            Some(last) if last.len() + bytes.len() <= CHUNK_MAX => last.extend_from_slice(&bytes),
            Some(_) | None => self.pieces.push_back(bytes),
        }
    }
}

/// The end of a body that the reading task holds.
#[derive(Debug)]
pub(super) struct Inlet {
    id: u32,
    pipe: Arc<Pipe>,
    open: bool,
    credit: Arc<AtomicU64>,
    came: u64,
}

/// The end of a body that its handler holds.
pub(super) struct Incoming {
    id: u32,
    pipe: Arc<Pipe>,
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
    let pipe = Arc::new(Pipe::default());
    let credit = Arc::new(AtomicU64::new(u64::from(WINDOW)));
    let inlet =
        Inlet { id, pipe: Arc::clone(&pipe), open: true, credit: Arc::clone(&credit), came: 0 };
    (inlet, Incoming { id, pipe, credit, owed: 0, control, meter })
}

impl Inlet {
    /// A chunk came.
    ///
    /// # Errors
    /// It is beyond the credit, or the body had ended.
    pub(super) fn chunk(&mut self, bytes: Vec<u8>) -> Result<(), ProtocolError> {
        if !self.open {
            return Err(ProtocolError::BadId { kind: "chunk", id: self.id });
        }
        let length = bytes.len() as u64;
        // Only this task takes, so that nothing can be taken between the look and the taking.
        if self.credit.load(Ordering::Acquire) < length {
            return Err(ProtocolError::OverCredit(self.id));
        }
        self.credit.fetch_sub(length, Ordering::AcqRel);
        self.came += length;
        self.pipe.held().put(bytes);
        self.pipe.changed.notify_one();
        Ok(())
    }

    /// The body is complete.
    ///
    /// # Errors
    /// It had ended.
    pub(super) fn end(&mut self) -> Result<(), ProtocolError> {
        if !self.open {
            return Err(ProtocolError::BadId { kind: "end", id: self.id });
        }
        self.open = false;
        self.pipe.held().complete = true;
        self.pipe.changed.notify_one();
        Ok(())
    }

    /// Bytes that came.
    pub(super) fn came(&self) -> u64 {
        self.came
    }

    /// Whether more may come.
    pub(super) fn is_open(&self) -> bool {
        self.open
    }
}

impl Drop for Inlet {
    fn drop(&mut self) {
        self.pipe.held().closed = true;
        self.pipe.changed.notify_one();
    }
}

impl Source for Incoming {
    fn next(&mut self) -> Boxed<'_, Result<Option<Vec<u8>>, Refusal>> {
        Box::pin(async move {
            let bytes = loop {
                {
                    let mut held = self.pipe.held();
                    if let Some(bytes) = held.pieces.pop_front() {
                        break bytes;
                    }
                    if held.complete {
                        return Ok(None);
                    }
                    if held.closed {
                        return Err(Refusal::new(Code::Cancelled, "the call is ending"));
                    }
                }
                // A change since the look has left its mark: this returns at once.
                self.pipe.changed.notified().await;
            };
            self.meter.check()?;
            self.give_credit(bytes.len() as u64);
            Ok(Some(bytes))
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

impl Drop for Incoming {
    fn drop(&mut self) {
        let mut held = self.pipe.held();
        held.unwanted = true;
        held.pieces = VecDeque::new();
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

    /// Bytes of memory that a body takes, and in how many pieces.
    fn cost(inlet: &Inlet) -> (usize, usize) {
        let held = inlet.pipe.held();
        let bytes: usize = held.pieces.iter().map(Vec::capacity).sum();
        (bytes + held.pieces.capacity() * size_of::<Vec<u8>>(), held.pieces.len())
    }

    #[tokio::test]
    async fn a_body_that_comes_in_crumbs_costs_no_more_than_one_in_chunks() {
        let whole: Vec<u8> = (0..WINDOW).map(|n| (n % 251) as u8).collect();
        // The last spreads its bytes as badly as can be: each chunk is just too long for the one before.
        for sizes in [&[CHUNK_MAX][..], &[1], &[3, 1000], &[1, CHUNK_MAX]] {
            let (control, _told) = mpsc::unbounded_channel();
            let (mut inlet, mut incoming) = body(1, control, Arc::new(Meter::new(u64::MAX)));
            let mut rest = &whole[..];
            for size in sizes.iter().cycle() {
                let (chunk, after) = rest.split_at((*size).min(rest.len()));
                inlet.chunk(chunk.to_vec()).unwrap();
                inlet.chunk(Vec::new()).unwrap();
                rest = after;
                if rest.is_empty() {
                    break;
                }
            }
            let (bytes, pieces) = cost(&inlet);
            assert!(bytes <= HELD_MAX + 1024 && pieces <= 9, "{sizes:?}: {bytes} in {pieces}");
            inlet.end().unwrap();
            let mut got = Vec::new();
            while let Some(piece) = incoming.next().await.unwrap() {
                assert!(!piece.is_empty() && piece.len() <= CHUNK_MAX);
                got.extend(piece);
            }
            assert!(got == whole, "{sizes:?}");
        }
    }

    #[tokio::test]
    async fn what_nobody_wants_is_not_held() {
        let (control, _told) = mpsc::unbounded_channel();
        let (mut inlet, incoming) = body(1, control, Arc::new(Meter::new(u64::MAX)));
        inlet.chunk(vec![1; 1000]).unwrap();
        assert_eq!(cost(&inlet).1, 1);
        drop(incoming);
        assert_eq!(cost(&inlet), (0, 0));
        inlet.chunk(vec![1; 1000]).unwrap();
        assert_eq!(cost(&inlet), (0, 0));
    }

    #[tokio::test]
    async fn a_handler_that_waits_is_woken_by_each_change() {
        let (control, _told) = mpsc::unbounded_channel();
        let (mut inlet, mut incoming) = body(1, control, Arc::new(Meter::new(u64::MAX)));
        let taking = tokio::spawn(async move {
            let mut got = 0;
            while let Some(piece) = incoming.next().await.unwrap() {
                got += piece.len();
            }
            got
        });
        for _ in 0..1000 {
            inlet.chunk(vec![1]).unwrap();
            tokio::task::yield_now().await;
        }
        inlet.end().unwrap();
        assert_eq!(taking.await.unwrap(), 1000);
    }
}
