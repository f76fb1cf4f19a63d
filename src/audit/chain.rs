//! The chain: each record carries a digest of its own bytes and of all before it.
//!
//! Pure. A link covers exactly what is stored, each part with its length, so that no bytes can move from one
//! column to the next unnoticed. Signatures cover a link and the range of records that one writer vouches
//! for: a process that can write in the database but has no key can add nothing that verifies.

use std::fmt;

use super::event::Kind;

/// The digest of a record and of all records before it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Link([u8; 32]);

/// What the digests are made for; nothing else is digested in the same way.
const CONTEXT: &str = "runner audit ledger 2026-01 link";

/// The stored columns of a record.
#[derive(Debug, Clone, Copy)]
pub(super) struct Columns<'a> {
    /// Its number.
    pub seq: i64,
    /// Milliseconds since 1970.
    pub at: i64,
    /// The call.
    pub call: &'a str,
    /// The word of its kind.
    pub kind: &'a str,
    /// JSON, byte for byte.
    pub body: &'a str,
}

impl Link {
    /// Before the first record.
    pub const FIRST: Self = Self([0; 32]);

    /// The link of a record that follows this one.
    #[must_use]
    pub(super) fn then(self, row: Columns<'_>) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key(CONTEXT);
        hasher.update(&self.0);
        hasher.update(&row.seq.to_le_bytes());
        hasher.update(&row.at.to_le_bytes());
        for text in [row.call, row.kind, row.body] {
            hasher.update(&(text.len() as u64).to_le_bytes());
            hasher.update(text.as_bytes());
        }
        Self(*hasher.finalize().as_bytes())
    }

    /// From stored bytes; `None` if they are no link.
    #[must_use]
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// From 64 hexadecimal digits.
    #[must_use]
    pub fn from_hex(text: &str) -> Option<Self> {
        unhex(text).map(Self)
    }

    /// For storing.
    #[must_use]
    pub(super) fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl serde::Serialize for Link {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// What a signature is made for. The two are told apart, so that no signature in the database passes as a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Stands beside the last of the records that it vouches for.
    Records,
    /// Stands in the head's own file.
    Head,
}

/// A stretch of the chain, as it is signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stretch {
    /// Its first record.
    pub first: i64,
    /// Its last.
    pub last: i64,
    /// The link of the last.
    pub link: Link,
}

impl Stretch {
    /// The bytes that are signed.
    pub(super) fn message(&self, purpose: Purpose) -> Vec<u8> {
        let word: &[u8] = match purpose {
            Purpose::Records => b"runner audit ledger records\0",
            Purpose::Head => b"runner audit ledger head\0",
        };
        [word, &self.first.to_le_bytes(), &self.last.to_le_bytes(), &self.link.0].concat()
    }
}

/// A record that is about to be appended.
#[derive(Debug, Clone)]
pub(super) struct Line {
    /// The call; empty for what belongs to none.
    pub call: String,
    /// The kind.
    pub kind: Kind,
    /// JSON.
    pub body: String,
}

/// Bytes as hexadecimal digits.
#[must_use]
pub(super) fn hex(bytes: &[u8]) -> String {
    use fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The opposite, for exactly as many bytes as wanted.
#[must_use]
pub(super) fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    if text.len() != 2 * N || !text.is_ascii() {
        return None;
    }
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROW: Columns<'_> = Columns { seq: 1, at: 2, call: "c", kind: "start", body: "{}" };

    #[test]
    fn every_byte_and_every_place_counts() {
        let link = Link::FIRST.then(ROW);
        let others = [
            Link::FIRST.then(Columns { seq: 2, ..ROW }),
            Link::FIRST.then(Columns { at: 3, ..ROW }),
            Link::FIRST.then(Columns { call: "d", ..ROW }),
            Link::FIRST.then(Columns { kind: "end", ..ROW }),
            Link::FIRST.then(Columns { body: "{ }", ..ROW }),
            // The same letters, cut elsewhere.
            Link::FIRST.then(Columns { call: "cs", kind: "tart", ..ROW }),
            link.then(ROW),
        ];
        assert!(others.iter().all(|other| *other != link));
        assert_eq!(Link::FIRST.then(ROW), link);
        assert_eq!(Link::from_hex(&link.to_string()), Some(link));
        assert!(Link::from_hex("+1").is_none() && unhex::<1>("é").is_none());
    }

    #[test]
    fn a_signature_of_records_is_none_of_a_head() {
        let stretch = Stretch { first: 1, last: 2, link: Link::FIRST };
        assert_ne!(stretch.message(Purpose::Records), stretch.message(Purpose::Head));
    }
}
