//! What is kept of an output stream: its head and its tail, and how much there was.

use std::collections::VecDeque;

/// Head and tail of a stream. Memory stays below the limit however long the stream is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Kept {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
    half: usize,
}

impl Kept {
    /// Keeps at most `limit` bytes: half of it from the beginning, half from the end.
    #[must_use]
    pub fn new(limit: u64) -> Self {
        Self { half: usize::try_from(limit / 2).unwrap_or(usize::MAX / 2), ..Self::default() }
    }

    /// Takes the next bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let room = self.half.saturating_sub(self.head.len()).min(bytes.len());
        let (head, rest) = bytes.split_at(room);
        self.head.extend_from_slice(head);
        let rest = &rest[rest.len().saturating_sub(self.half)..];
        let over = (self.tail.len() + rest.len()).saturating_sub(self.half);
        self.tail.drain(..over.min(self.tail.len()));
        self.tail.extend(rest);
    }

    /// How many bytes there were.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total
    }

    /// How many bytes between head and tail were dropped.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.total - (self.head.len() + self.tail.len()) as u64
    }

    /// The beginning.
    #[must_use]
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// The end, without what is in the head.
    #[must_use]
    pub fn tail(&self) -> Vec<u8> {
        self.tail.iter().copied().collect()
    }

    /// All of it, if nothing was dropped.
    #[must_use]
    pub fn whole(&self) -> Option<Vec<u8>> {
        (self.dropped() == 0).then(|| [self.head.as_slice(), &self.tail()].concat())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_stream_is_whole() {
        let mut kept = Kept::new(10);
        kept.push(b"abc");
        kept.push(b"defghij");
        assert_eq!(kept.whole().unwrap(), b"abcdefghij");
    }

    #[test]
    fn a_long_stream_keeps_head_and_tail() {
        for piece in [1, 3, 7, 100] {
            let text: Vec<u8> = (0..100).collect();
            let mut kept = Kept::new(10);
            for bytes in text.chunks(piece) {
                kept.push(bytes);
            }
            assert_eq!((kept.head(), kept.tail()), (&text[..5], text[95..].to_vec()), "{piece}");
            assert_eq!((kept.total(), kept.dropped(), kept.whole()), (100, 90, None));
        }
    }

    #[test]
    fn nothing_is_kept_where_nothing_may_be() {
        let mut kept = Kept::new(0);
        kept.push(b"abc");
        assert_eq!((kept.total(), kept.dropped()), (3, 3));
    }
}
