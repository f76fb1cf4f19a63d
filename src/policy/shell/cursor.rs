//! Where the parser stands: bytes of the line, line continuations, positions for people.
//!
//! All characters with a meaning to a shell are ASCII, so bytes are enough; text is cut at such
//! bytes only and stays UTF-8.

use serde::{Deserialize, Serialize};

/// A place in a line for people: both count from 1, columns in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// The line; more than 1 only in a text of several lines.
    pub line: usize,
    /// The character in that line.
    pub column: usize,
}

/// A stretch of the line, in bytes from its beginning.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// The first byte.
    pub start: u32,
    /// The byte behind the last.
    pub end: u32,
}

impl Span {
    #[expect(clippy::cast_possible_truncation, reason = "a line has at most MAX_BYTES bytes")]
    pub(super) fn new(start: usize, end: usize) -> Self {
        Self { start: start as u32, end: end as u32 }
    }

    /// Where the stretch begins in the text that was parsed.
    #[must_use]
    pub fn position(self, text: &str) -> Position {
        Position::of(text, self.start as usize)
    }

    /// The stretch itself, out of the text that was parsed.
    #[must_use]
    pub fn of(self, text: &str) -> &str {
        text.get(self.start as usize..self.end as usize).unwrap_or_default()
    }
}

impl Position {
    /// The position of a byte. A byte inside a character counts as that character.
    #[must_use]
    pub fn of(text: &str, byte: usize) -> Self {
        let before = text.as_bytes().get(..byte).unwrap_or(text.as_bytes());
        let line_start = before.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
        let is_start = |b: &&u8| (**b & 0xC0) != 0x80;
        Self {
            line: before.iter().filter(|b| **b == b'\n').count() + 1,
            column: before[line_start..].iter().filter(is_start).count() + 1,
        }
    }
}

impl std::fmt::Display for Position {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// The text and the next byte to read.
#[derive(Debug, Clone)]
pub(super) struct Cursor<'a> {
    pub text: &'a str,
    pub at: usize,
}

impl<'a> Cursor<'a> {
    pub fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// The byte at `at + ahead`, as it stands.
    pub fn raw(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + ahead).copied()
    }

    /// The next byte that counts, outside single quotes: continuations before it are passed over.
    pub fn peek(&mut self) -> Option<u8> {
        while self.rest().starts_with(b"\\\n") {
            self.at += 2;
        }
        self.raw(0)
    }

    /// The bytes from here on.
    pub fn rest(&self) -> &'a [u8] {
        self.text.as_bytes().get(self.at..).unwrap_or_default()
    }

    /// Takes the next byte that counts if it is this one.
    pub fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    /// Passes over spaces, tabs and continuations.
    pub fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t')) {
            self.at += 1;
        }
    }

    /// The text between two bytes.
    pub fn slice(&self, start: usize, end: usize) -> &'a str {
        self.text.get(start..end).unwrap_or_default()
    }

    /// Takes the rest of this line and its newline; tells whether there was a newline.
    pub fn take_line(&mut self) -> (&'a str, bool) {
        let start = self.at;
        let length = self.rest().iter().position(|b| *b == b'\n');
        let end = length.map_or(self.text.len(), |length| start + length);
        self.at = end + usize::from(length.is_some());
        (self.slice(start, end), length.is_some())
    }
}

/// Whether this byte ends an unquoted word.
pub(super) fn is_meta(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'|' | b'&' | b';' | b'(' | b')' | b'<' | b'>')
}
