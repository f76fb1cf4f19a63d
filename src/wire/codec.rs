//! Frames from bytes and bytes from frames, with sequence number and authentication.
//!
//! Both directions are authenticated with keys that are derived from the one in `Hello`, because a
//! process of the same user may reach the pipes of PID 1. The key arrives before any code runs that
//! is not ours: what waits in a sandbox beforehand is our own runtime, without a tool. A frame that is
//! lost, repeated, moved, changed or made up is an error.

use crate::bytes::{from_hex, to_hex};
use crate::frame::{Channel, Frame, HEADER, Kind};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;

/// Which end wrote a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The host.
    Host,
    /// The guest.
    Guest,
}

impl Side {
    fn context(self) -> &'static str {
        match self {
            Self::Host => "runner wire 1: frames of the host",
            Self::Guest => "runner wire 1: frames of the guest",
        }
    }
}

/// The secret of one sandbox. It is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Key([u8; 32]);

impl Key {
    /// A key from random bytes.
    #[must_use]
    pub fn new(random: [u8; 32]) -> Self {
        Self(random)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(hidden)")
    }
}

impl Serialize for Key {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&to_hex(&self.0))
    }
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_hex(&String::deserialize(deserializer)?)
            .and_then(|bytes| bytes.try_into().ok())
            .map(Self)
            .ok_or_else(|| de::Error::custom("a key is 64 hexadecimal digits"))
    }
}

/// Why a stream of frames cannot be used any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WireError {
    /// A frame with a number that no kind has.
    UnknownKind(u8),
    /// A kind that this end must not send, or not now.
    Unexpected(Kind),
    /// A payload longer than its kind may be.
    TooLong {
        /// The kind.
        kind: Kind,
        /// Its stated length.
        length: u32,
    },
    /// A frame out of order.
    Sequence {
        /// The number that was due.
        expected: u64,
        /// The number that came.
        got: u64,
    },
    /// A frame that the other end did not write.
    Forged,
    /// A control payload that is not the message it should be.
    Payload {
        /// The kind.
        kind: Kind,
        /// What was wrong.
        reason: String,
    },
    /// A channel that this kind does not have.
    Channel {
        /// The kind.
        kind: Kind,
        /// The channel.
        channel: u32,
    },
    /// More data than there was credit for, or credit beyond all bounds.
    Credit(u32),
    /// The stream ended inside a frame.
    Torn,
    /// An order to take over what waits, where nothing does.
    NothingWaits,
    /// An order with work of its own, where a process waits for one.
    Occupied,
    /// An order to take over a process that was started with something else.
    Differs,
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownKind(number) => write!(f, "frame of unknown kind {number}"),
            Self::Unexpected(kind) => write!(f, "unexpected {kind:?} frame"),
            Self::TooLong { kind, length } => {
                write!(f, "{kind:?} frame of {length} bytes, of which {} are allowed", kind.cap())
            }
            Self::Sequence { expected, got } => {
                write!(f, "frame number {got} where {expected} was due")
            }
            Self::Forged => f.write_str("frame with a wrong code of authentication"),
            Self::Payload { kind, reason } => write!(f, "bad {kind:?} message: {reason}"),
            Self::Channel { kind, channel } => write!(f, "{kind:?} frame on channel {channel}"),
            Self::Credit(channel) => write!(f, "credit of channel {channel} not kept"),
            Self::Torn => f.write_str("the stream ended inside a frame"),
            Self::NothingWaits => f.write_str("no process waits for this order"),
            Self::Occupied => f.write_str("a process waits here, and this order is not for it"),
            Self::Differs => f.write_str("the process that waits was started with something else"),
        }
    }
}

impl std::error::Error for WireError {}

/// What both directions share: the key in force and the next number.
struct Seal {
    side: Side,
    key: [u8; 32],
    next: u64,
}

impl Seal {
    /// Before the key is known a frame is only protected against accidents.
    fn new(side: Side) -> Self {
        Self { side, key: [0; 32], next: 0 }
    }

    fn rekey(&mut self, key: &Key) {
        self.key = blake3::derive_key(self.side.context(), &key.0);
    }

    fn code(&self, head: &[u8], payload: &[u8]) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(head);
        hasher.update(payload);
        hasher.finalize()
    }
}

impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Seal({:?}, {})", self.side, self.next)
    }
}

/// Writes frames of one side.
#[derive(Debug)]
pub struct Encoder {
    seal: Seal,
}

impl Encoder {
    /// An encoder for frames that `side` writes, without a key.
    #[must_use]
    pub fn new(side: Side) -> Self {
        Self { seal: Seal::new(side) }
    }

    /// Uses the key of the sandbox from the next frame on.
    pub fn rekey(&mut self, key: &Key) {
        self.seal.rekey(key);
    }

    /// Appends one frame to `out`.
    ///
    /// # Errors
    /// The payload is longer than its kind may be.
    pub fn frame(
        &mut self,
        kind: Kind,
        channel: Channel,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), WireError> {
        let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
        if payload.len() > kind.cap() {
            return Err(WireError::TooLong { kind, length });
        }
        let mut head = [0_u8; 17];
        head[..4].copy_from_slice(&length.to_le_bytes());
        head[4] = kind as u8;
        head[5..9].copy_from_slice(&channel.0.to_le_bytes());
        head[9..].copy_from_slice(&self.seal.next.to_le_bytes());
        let code = self.seal.code(&head, payload);
        self.seal.next += 1;
        out.reserve(HEADER + payload.len());
        out.extend_from_slice(&head);
        out.extend_from_slice(code.as_bytes());
        out.extend_from_slice(payload);
        Ok(())
    }
}

/// Reads frames of one side.
///
/// Its memory is one frame and what the caller pushed at once: take every frame out before
/// pushing more.
#[derive(Debug)]
pub struct Decoder {
    seal: Seal,
    buffer: Vec<u8>,
    taken: usize,
}

impl Decoder {
    /// A decoder for frames that `side` wrote, without a key.
    #[must_use]
    pub fn new(side: Side) -> Self {
        Self { seal: Seal::new(side), buffer: Vec::new(), taken: 0 }
    }

    /// Expects the key of the sandbox from the next frame on.
    pub fn rekey(&mut self, key: &Key) {
        self.seal.rekey(key);
    }

    /// Adds bytes that were read.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.taken > 0 {
            self.buffer.drain(..self.taken);
            self.taken = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole frame, if there is one.
    ///
    /// # Errors
    /// The bytes are not the next frame of this side; nothing after them can be trusted.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, WireError> {
        let pending = &self.buffer[self.taken..];
        let Some((header, rest)) = pending.split_at_checked(HEADER) else {
            return Ok(None);
        };
        let (head, code) = header.split_at(17);
        let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]);
        let kind = Kind::from_number(head[4]).ok_or(WireError::UnknownKind(head[4]))?;
        if length as usize > kind.cap() {
            return Err(WireError::TooLong { kind, length });
        }
        let channel = Channel(u32::from_le_bytes([head[5], head[6], head[7], head[8]]));
        let mut number = [0_u8; 8];
        number.copy_from_slice(&head[9..]);
        let got = u64::from_le_bytes(number);
        if got != self.seal.next {
            return Err(WireError::Sequence { expected: self.seal.next, got });
        }
        let Some(payload) = rest.get(..length as usize) else {
            return Ok(None);
        };
        let mut sent = [0_u8; 32];
        sent.copy_from_slice(code);
        // `blake3::Hash` compares in constant time.
        if self.seal.code(head, payload) != blake3::Hash::from_bytes(sent) {
            return Err(WireError::Forged);
        }
        let payload = payload.to_vec();
        self.seal.next += 1;
        self.taken += HEADER + payload.len();
        Ok(Some(Frame { kind, channel, payload }))
    }

    /// Says whether the stream may end here.
    ///
    /// # Errors
    /// Part of a frame is left.
    pub fn finish(&self) -> Result<(), WireError> {
        if self.buffer.len() == self.taken { Ok(()) } else { Err(WireError::Torn) }
    }
}
