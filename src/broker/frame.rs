//! Frames of the talk: `u32 LE payload length | u8 kind | u32 LE id | payload`.
//!
//! Duty: bytes to frames and back, without I/O. A length is checked against the cap of its kind as soon
//! as the header is there: before memory is taken, before a byte of the payload has come.

use super::ProtocolError;

/// Bytes before a payload.
pub const HEADER: usize = 9;
/// Most bytes in one chunk of a body: small enough that streams take turns often.
pub const CHUNK_MAX: usize = 64 * 1024;
/// Longest request: paths, arguments and headers, never content.
pub const REQUEST_MAX: usize = 1024 * 1024;
/// Longest log line or progress.
pub const NOTE_MAX: usize = 64 * 1024;
/// Longest result.
pub const RESULT_MAX: usize = 4 * 1024 * 1024;
/// Longest job without its code: arguments may be large.
pub const START_MAX: usize = 16 * 1024 * 1024;
/// Bytes of a body that may be under way before the first credit.
pub const WINDOW: u32 = 256 * 1024;

/// Frames from the runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A request.
    Request,
    /// A piece of a request's body.
    Chunk,
    /// The end of a request's body.
    End,
    /// A request is not wanted any more.
    Cancel,
    /// A log line or progress.
    Note,
    /// The tool's result.
    Result,
}

impl Kind {
    /// The kind with this number.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        Some(match number {
            1 => Self::Request,
            2 => Self::Chunk,
            3 => Self::End,
            4 => Self::Cancel,
            5 => Self::Note,
            6 => Self::Result,
            _ => return None,
        })
    }

    /// Its number.
    #[must_use]
    pub fn number(self) -> u8 {
        match self {
            Self::Request => 1,
            Self::Chunk => 2,
            Self::End => 3,
            Self::Cancel => 4,
            Self::Note => 5,
            Self::Result => 6,
        }
    }

    /// Its name in errors.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Chunk => "chunk",
            Self::End => "end",
            Self::Cancel => "cancel",
            Self::Note => "note",
            Self::Result => "result",
        }
    }

    /// Longest payload.
    #[must_use]
    pub fn cap(self) -> usize {
        match self {
            Self::Request => REQUEST_MAX,
            Self::Chunk => CHUNK_MAX,
            Self::End | Self::Cancel => 0,
            Self::Note => NOTE_MAX,
            Self::Result => RESULT_MAX,
        }
    }

    /// Whether it may carry this id: notes and results belong to no request.
    fn takes(self, id: u32) -> bool {
        match self {
            Self::Request | Self::Chunk | Self::End | Self::Cancel => id != 0,
            Self::Note | Self::Result => id == 0,
        }
    }
}

/// Frames to the runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostKind {
    /// The job.
    Start,
    /// A piece of the code (id 0) or of an answer.
    Chunk,
    /// The code is complete.
    End,
    /// The answer to a request.
    Reply,
    /// More bytes of a body may come.
    Credit,
    /// The host wants the tool to end.
    Abort,
}

impl HostKind {
    /// The kind with this number.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        let all = [Self::Start, Self::Chunk, Self::End, Self::Reply, Self::Credit, Self::Abort];
        all.into_iter().find(|kind| kind.number() == number)
    }

    /// Its number.
    #[must_use]
    pub fn number(self) -> u8 {
        match self {
            Self::Start => 16,
            Self::Chunk => 17,
            Self::End => 18,
            Self::Reply => 19,
            Self::Credit => 20,
            Self::Abort => 21,
        }
    }
}

/// One frame from the runtime.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// What it is.
    pub kind: Kind,
    /// The request that it belongs to; 0 for none.
    pub id: u32,
    /// What it carries.
    pub payload: Vec<u8>,
}

/// A frame as bytes.
#[must_use]
pub fn encode(number: u8, id: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER + payload.len());
    bytes.extend_from_slice(&header(number, id, payload.len()));
    bytes.extend_from_slice(payload);
    bytes
}

/// The header of a frame. Whoever sends knows the caps: a length never exceeds 32 bits.
#[must_use]
pub fn header(number: u8, id: u32, length: usize) -> [u8; HEADER] {
    let length = u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes();
    let id = id.to_le_bytes();
    [length[0], length[1], length[2], length[3], number, id[0], id[1], id[2], id[3]]
}

/// Bytes from the runtime on their way to frames.
#[derive(Debug, Default)]
pub struct Decoder {
    buffer: Vec<u8>,
    taken: usize,
}

impl Decoder {
    /// Where further bytes are to be appended, with room for at least one read.
    pub fn room(&mut self) -> &mut Vec<u8> {
        if self.taken > 0 {
            self.buffer.drain(..self.taken);
            self.taken = 0;
        }
        // A large result leaves a large buffer behind; it is not kept.
        if self.buffer.is_empty() && self.buffer.capacity() > 4 * CHUNK_MAX {
            self.buffer = Vec::new();
        }
        self.buffer.reserve(CHUNK_MAX);
        &mut self.buffer
    }

    /// Whether no byte is waiting.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.buffer.len() == self.taken
    }

    /// The next whole frame.
    ///
    /// # Errors
    /// The header is that of no frame. After that the stream means nothing.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, ProtocolError> {
        let waiting = self.buffer.get(self.taken..).unwrap_or_default();
        let Some((head, rest)) = waiting.split_first_chunk::<HEADER>() else { return Ok(None) };
        let [l0, l1, l2, l3, number, i0, i1, i2, i3] = *head;
        let kind = Kind::from_number(number).ok_or(ProtocolError::UnknownKind(number))?;
        let (length, id) =
            (u32::from_le_bytes([l0, l1, l2, l3]), u32::from_le_bytes([i0, i1, i2, i3]));
        let cap = u32::try_from(kind.cap()).unwrap_or(0);
        if length > cap {
            return Err(match cap {
                0 => ProtocolError::NotEmpty(kind.name()),
                cap => ProtocolError::TooLong { kind: kind.name(), length, cap },
            });
        }
        if !kind.takes(id) {
            return Err(ProtocolError::BadId { kind: kind.name(), id });
        }
        let length = length as usize;
        let Some(payload) = rest.get(..length) else { return Ok(None) };
        let payload = payload.to_vec();
        self.taken += HEADER + length;
        Ok(Some(Frame { kind, id, payload }))
    }
}

#[cfg(test)]
#[path = "frame_tests.rs"]
mod tests;
