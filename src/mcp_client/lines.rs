//! One JSON value a line, from a stream that nobody trusts.
//!
//! A line is bounded before it is kept, and so is all that a server may say in one talk: a sandbox lives for one call,
//! so the bounds are those of one call.

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt as _};

use super::error::McpError;
use crate::json;

/// Longest line: the largest JSON text that is read anywhere.
pub const MAX_LINE: usize = json::MAX_BYTES;
/// Most bytes of one talk.
pub const MAX_BYTES: usize = 64 << 20;
/// Most messages of one talk.
pub const MAX_MESSAGES: usize = 10_000;
/// Bytes that are read at once.
const PIECE: usize = 64 << 10;

const _: () = assert!(MAX_LINE < MAX_BYTES, "one line must fit");

/// The lines of a server.
pub(super) struct Lines<R> {
    reader: R,
    buffer: Vec<u8>,
    /// How much of the buffer has no line end, as far as was looked.
    looked: usize,
    messages: usize,
    bytes: usize,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// Of a stream.
    pub fn new(reader: R) -> Self {
        Self { reader, buffer: Vec::new(), looked: 0, messages: 0, bytes: 0 }
    }

    /// The next value; `None` at the end of the stream. Safe to drop and call again.
    pub async fn next(&mut self) -> Result<Option<Value>, McpError> {
        loop {
            if let Some(line) = self.line() {
                let line = line.trim_ascii();
                if line.is_empty() {
                    self.count(1)?;
                    continue;
                }
                let value = parse(line)?;
                self.count(1)?;
                return Ok(Some(value));
            }
            if self.buffer.len() > MAX_LINE {
                return Err(McpError::LongLine);
            }
            self.buffer.reserve(PIECE);
            let mut piece = (&mut self.reader).take(PIECE as u64);
            let count = piece.read_buf(&mut self.buffer).await.map_err(McpError::Stream)?;
            if count == 0 {
                // A last line without its end was cut off, and says nothing.
                return Ok(None);
            }
            self.bytes += count;
            if self.bytes > MAX_BYTES {
                return Err(McpError::TooMuch);
            }
        }
    }

    /// Reads and drops what still comes, until the end.
    pub async fn drain(&mut self) {
        loop {
            self.buffer.clear();
            self.buffer.reserve(PIECE);
            let mut piece = (&mut self.reader).take(PIECE as u64);
            if !matches!(piece.read_buf(&mut self.buffer).await, Ok(count) if count > 0) {
                return;
            }
        }
    }

    fn count(&mut self, messages: usize) -> Result<(), McpError> {
        self.messages += messages;
        if self.messages > MAX_MESSAGES { Err(McpError::TooMuch) } else { Ok(()) }
    }

    /// The first whole line of the buffer, which it leaves.
    fn line(&mut self) -> Option<Vec<u8>> {
        let Some(end) = self.buffer[self.looked..].iter().position(|byte| *byte == b'\n') else {
            self.looked = self.buffer.len();
            return None;
        };
        let rest = self.buffer.split_off(self.looked + end + 1);
        self.looked = 0;
        Some(std::mem::replace(&mut self.buffer, rest))
    }
}

fn parse(line: &[u8]) -> Result<Value, McpError> {
    if line.len() > MAX_LINE {
        return Err(McpError::LongLine);
    }
    let text = std::str::from_utf8(line)
        .map_err(|_| McpError::NotMessage("it is not UTF-8".to_owned()))?;
    json::read(text).map_err(McpError::NotJson)
}
