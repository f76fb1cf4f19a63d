//! The streams of a call, each on its channel and within its credit.
//!
//! A stream never waits for another: what it may hold is bounded by its window, and a sink that fails or a
//! source that ends does not affect the other streams.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;

use runner_wire::{Channel, DATA_MAX, HostMessage, Kind, Receiver, Sender, WINDOW, WireError};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream};

use super::kept::Kept;

/// Bytes that go into a call: standard input, or what the broker says.
pub type Source = Option<Pin<Box<dyn AsyncRead + Send>>>;

/// Where an output stream goes while the call runs, beside what is kept of it.
pub type Sink = Option<Pin<Box<dyn AsyncWrite + Send>>>;

/// The sandbox's end of a tool's talk with the broker: what goes in, and where goes what comes out.
pub struct Talk(
    pub(super) Pin<Box<dyn AsyncRead + Send>>,
    pub(super) Pin<Box<dyn AsyncWrite + Send>>,
);

impl Talk {
    /// The sandbox's end and the broker's.
    #[must_use]
    pub fn pair() -> (Self, DuplexStream) {
        let (ours, theirs) = tokio::io::duplex(WINDOW as usize);
        let (reader, writer) = tokio::io::split(ours);
        (Self(Box::pin(reader), Box::pin(writer)), theirs)
    }
}

/// One stream on its way into the sandbox.
pub(super) struct Feed {
    channel: Channel,
    source: Source,
    credit: Sender,
    buffer: Vec<u8>,
}

impl Feed {
    /// A stream from `source`.
    pub fn new(channel: Channel, source: Source) -> Self {
        let buffer = if source.is_some() { vec![0; DATA_MAX] } else { Vec::new() };
        Self { channel, source, credit: Sender::new(channel), buffer }
    }

    /// Whether nothing more comes.
    pub fn ended(&self) -> bool {
        self.source.is_none()
    }

    /// Whether there is a source, and room for what it gives.
    pub fn may_read(&self) -> bool {
        !self.ended() && self.credit.room() > 0
    }

    /// Reads once; an error is an end. Safe to drop and call again.
    pub async fn read(&mut self) -> usize {
        let room = self.credit.room().min(self.buffer.len());
        match &mut self.source {
            Some(source) => source.read(&mut self.buffer[..room]).await.unwrap_or(0),
            None => std::future::pending().await,
        }
    }

    /// What was read, as a message; `None` at the end.
    pub fn message(&mut self, count: usize) -> Result<Option<HostMessage>, WireError> {
        if count == 0 {
            self.source = None;
            return Ok(None);
        }
        self.credit.spend(count)?;
        Ok(Some(HostMessage::Data(self.channel, self.buffer[..count].to_vec())))
    }

    /// Reads and drops everything; never returns.
    pub async fn drain(&mut self) {
        while let Some(source) = &mut self.source {
            if !matches!(source.read(&mut self.buffer).await, Ok(count) if count > 0) {
                self.source = None;
            }
        }
        std::future::pending().await
    }

    /// Takes credit of the guest.
    pub fn grant(&mut self, bytes: u32) -> Result<(), WireError> {
        self.credit.grant(bytes)
    }
}

/// One output stream on its way to the caller.
pub(super) struct Output {
    pub channel: Channel,
    sink: Sink,
    waiting: VecDeque<u8>,
    unflushed: bool,
    credit: Receiver,
    pub kept: Kept,
    closed: bool,
}

impl Output {
    /// A stream to `sink`, of which `keep` bytes are kept.
    pub fn new(channel: Channel, sink: Sink, keep: u64) -> Self {
        Self {
            channel,
            sink,
            waiting: VecDeque::new(),
            unflushed: false,
            credit: Receiver::new(channel),
            kept: Kept::new(keep),
            closed: false,
        }
    }

    /// Takes bytes of the guest; credit to return at once if no writer takes them.
    pub fn take(&mut self, bytes: &[u8]) -> Result<Option<u32>, WireError> {
        if self.closed {
            return Err(WireError::Channel { kind: Kind::Data, channel: self.channel.0 });
        }
        self.credit.receive(bytes.len())?;
        self.kept.push(bytes);
        if self.sink.is_none() {
            return Ok(self.credit.release(bytes.len()));
        }
        self.waiting.extend(bytes);
        Ok(None)
    }

    /// Takes the end of the stream, which comes once.
    pub fn close(&mut self) -> Result<(), WireError> {
        if std::mem::replace(&mut self.closed, true) {
            return Err(WireError::Unexpected(Kind::Close));
        }
        Ok(())
    }

    /// Whether something waits to be written.
    pub fn busy(&self) -> bool {
        self.sink.is_some() && (self.unflushed || !self.waiting.is_empty())
    }

    /// Writes a piece, or flushes when nothing waits; how many bytes left. Safe to drop and call again.
    pub async fn write(&mut self) -> io::Result<usize> {
        let Some(sink) = &mut self.sink else {
            return std::future::pending().await;
        };
        let (front, _) = self.waiting.as_slices();
        if front.is_empty() {
            sink.flush().await?;
            self.unflushed = false;
            return Ok(0);
        }
        match sink.write(front).await? {
            0 => Err(io::ErrorKind::WriteZero.into()),
            count => Ok(count),
        }
    }

    /// Settles a write; credit to return. A sink that failed takes nothing more.
    pub fn wrote(&mut self, result: io::Result<usize>) -> (Option<u32>, bool) {
        match result {
            Ok(count) => {
                self.waiting.drain(..count);
                self.unflushed |= count > 0;
                (self.credit.release(count), false)
            }
            Err(_) => {
                self.sink = None;
                let left = self.waiting.len();
                self.waiting.clear();
                (self.credit.release(left), true)
            }
        }
    }
}
