//! The output of one running call, kept so that a client can read it in pieces.
//!
//! The beginning and the end are kept; of a flood of output the middle goes. Offsets count every byte that was
//! written, so a client sees where something is missing.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use tokio::io::AsyncWrite;
use tokio::sync::watch;

/// Bytes that are kept from the beginning.
const HEAD: usize = 512 << 10;
/// Bytes that are kept from the end.
const TAIL: usize = 512 << 10;
/// The longest line that is told as news.
const NEWS: usize = 200;

/// Output of a call, both streams in the order in which they came.
#[derive(Debug)]
pub struct Output {
    kept: Mutex<Kept>,
    news: watch::Sender<String>,
}

#[derive(Debug, Default)]
struct Kept {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
}

/// A part of the output.
#[derive(Debug, PartialEq, Eq)]
pub struct Piece {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Where it begins: later than asked for if bytes were not kept.
    pub start: u64,
    /// Where the next one begins.
    pub next: u64,
    /// How many bytes were written so far.
    pub total: u64,
}

impl Default for Output {
    fn default() -> Self {
        Self { kept: Mutex::default(), news: watch::Sender::new(String::new()) }
    }
}

impl Output {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds bytes.
    pub fn push(&self, bytes: &[u8]) {
        {
            let mut kept = self.kept();
            kept.total += bytes.len() as u64;
            let room = HEAD - kept.head.len();
            let (first, rest) = bytes.split_at(room.min(bytes.len()));
            kept.head.extend_from_slice(first);
            let rest = &rest[rest.len().saturating_sub(TAIL)..];
            let over = (kept.tail.len() + rest.len()).saturating_sub(TAIL);
            kept.tail.drain(..over);
            kept.tail.extend(rest);
        }
        let text = String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(4 * NEWS)..]);
        if let Some(line) = text.lines().rev().find(|line| !line.trim().is_empty()) {
            let line = line.trim();
            let start = line.ceil_char_boundary(line.len().saturating_sub(NEWS));
            self.tell(line[start..].to_owned());
        }
    }

    /// Says what the call does now.
    pub fn tell(&self, text: String) {
        self.news.send_replace(text);
    }

    /// What the call does, as it goes on.
    pub fn news(&self) -> watch::Receiver<String> {
        self.news.subscribe()
    }

    /// How many bytes were written so far.
    pub fn total(&self) -> u64 {
        self.kept().total
    }

    /// At most so many bytes from `offset` on.
    pub fn read(&self, offset: u64, most: usize) -> Piece {
        let kept = self.kept();
        let total = kept.total;
        let tail_start = total - kept.tail.len() as u64;
        let at = |place: u64| usize::try_from(place).unwrap_or(usize::MAX);
        let offset = offset.min(total);
        let (start, bytes): (u64, Vec<u8>) = if offset < kept.head.len() as u64 {
            let from = &kept.head[at(offset)..];
            (offset, from[..from.len().min(most)].to_vec())
        } else {
            let start = offset.max(tail_start);
            let skipped = at(start - tail_start);
            (start, kept.tail.iter().skip(skipped).take(most).copied().collect())
        };
        Piece { next: start + bytes.len() as u64, bytes, start, total }
    }

    /// The last bytes, at most so many.
    pub fn end(&self, most: usize) -> Piece {
        let total = self.total();
        self.read(total.saturating_sub(most as u64), most)
    }
}

/// The end of a stream that writes into an [`Output`].
pub struct Sink(pub Arc<Output>);

impl AsyncWrite for Sink {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.0.push(bytes);
        Poll::Ready(Ok(bytes.len()))
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
    fn pieces_follow_each_other() {
        let output = Output::default();
        output.push(b"hello ");
        output.push(b"world");
        let piece = output.read(0, 4);
        assert_eq!((piece.bytes.as_slice(), piece.next, piece.total), (&b"hell"[..], 4, 11));
        assert_eq!(output.read(piece.next, 100).bytes, b"o world");
        assert_eq!(output.read(99, 100).bytes, b"");
        assert_eq!(output.end(5).bytes, b"world");
    }

    #[test]
    fn the_middle_of_a_flood_goes_and_the_gap_shows() {
        let output = Output::default();
        for number in 0..300_000_u32 {
            output.push(format!("{number:07}\n").as_bytes());
        }
        assert_eq!(output.total(), 2_400_000);
        assert_eq!(output.read(0, 8).bytes, b"0000000\n");
        let beyond = output.read(HEAD as u64, 8);
        assert_eq!(beyond.start, 2_400_000 - TAIL as u64);
        assert_eq!(output.end(8).bytes, b"0299999\n");
        let kept = output.kept();
        assert!(kept.head.len() <= HEAD && kept.tail.len() <= TAIL);
    }
}
