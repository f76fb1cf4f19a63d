//! The wire to one guest: messages out, messages in, over the streams that an engine attached.
//!
//! Duty: to move bytes without ever waiting for one direction alone. A guest that does not run yet reads nothing, and the
//! pipes on the way hold about 200 KiB: a longer message is written while the guest starts and while it answers, never
//! before. Non-goals: what messages mean, and how long anything may take; callers bound each wait.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;

use futures_util::{Stream, StreamExt};
use runner_wire::{Decoder, Encoder, GuestMessage, HostMessage, Key, Kind, Ready, Side, WireError};
use tokio::io::{AsyncWrite, AsyncWriteExt};

use super::outcome::RunError;
use crate::engine::{Attached, Chunk, EngineError};

/// What a socket takes while its peer reads nothing: a fraction of its buffer.
const SHORT: usize = 16 << 10;

/// How much of a guest's standard error is kept to explain its end.
const NOISE_MAX: usize = 4 << 10;

/// What an engine passes on from a guest.
type Chunks = Pin<Box<dyn Stream<Item = Result<Chunk, EngineError>> + Send>>;

/// The wire to one guest.
pub struct Wire {
    /// What the guest sends.
    pub(super) chunks: Chunks,
    /// What waits to be sent to the guest.
    pub(super) outbox: Outbox,
    pub(super) decoder: Decoder,
    encoder: Encoder,
    noise: VecDeque<u8>,
}

impl Wire {
    /// The wire over an attached guest, without a key.
    #[must_use]
    pub fn new(attached: Attached) -> Self {
        Self {
            chunks: attached.output,
            outbox: Outbox::new(attached.input),
            decoder: Decoder::new(Side::Guest),
            encoder: Encoder::new(Side::Host),
            noise: VecDeque::new(),
        }
    }

    /// Queues a message.
    ///
    /// # Errors
    /// The message is too long.
    pub fn queue(&mut self, message: &HostMessage) -> Result<(), RunError> {
        message.encode(&mut self.encoder, &mut self.outbox.waiting).map_err(|error| match error {
            WireError::TooLong { kind, length } => {
                RunError::TooLong { bytes: length, most: kind.cap() }
            }
            other => other.into(),
        })
    }

    /// Expects the guest to use the key from now on.
    pub fn rekey(&mut self, key: &Key) {
        self.decoder.rekey(key);
    }

    /// Writes what is queued if the engine's socket takes it at once. The rest, and what fails, is left to
    /// [`ready`](Self::ready) or to the call's traffic, which also hear the guest's last words.
    pub async fn flush_if_short(&mut self) {
        while self.outbox.busy() && self.outbox.len() <= SHORT {
            if self.outbox.write().await.is_err() {
                return;
            }
        }
    }

    /// The guest's report, which is its first message. What is still queued is written meanwhile.
    ///
    /// # Errors
    /// The guest ended, broke the protocol, or cannot go on.
    pub async fn ready(&mut self) -> Result<Ready, RunError> {
        loop {
            if let Some(frame) = self.decoder.next_frame()? {
                return match GuestMessage::from_frame(frame)? {
                    GuestMessage::Ready(ready) => Ok(ready),
                    GuestMessage::Fatal(fatal) => Err(RunError::Guest(fatal)),
                    _ => Err(WireError::Unexpected(Kind::Ready).into()),
                };
            }
            tokio::select! {
                item = self.chunks.next() => self.take(item)?,
                result = self.outbox.write(), if self.outbox.busy() => {
                    if result.is_err() {
                        self.outbox.discard();
                    }
                }
            }
        }
    }

    /// Takes what the guest sent: bytes of frames, or its standard error.
    pub(super) fn take(
        &mut self,
        item: Option<Result<Chunk, EngineError>>,
    ) -> Result<(), RunError> {
        match item {
            Some(Ok(Chunk::Wire(bytes))) => self.decoder.push(&bytes),
            Some(Ok(Chunk::Noise(bytes))) => {
                self.noise.extend(bytes);
                let over = self.noise.len().saturating_sub(NOISE_MAX);
                self.noise.drain(..over);
            }
            Some(Err(error)) => return Err(error.into()),
            None => {
                let noise: Vec<u8> = self.noise.iter().copied().collect();
                return Err(RunError::GuestLost {
                    noise: String::from_utf8_lossy(&noise).trim().to_owned(),
                });
            }
        }
        Ok(())
    }
}

/// Bytes on their way to a guest.
pub(super) struct Outbox {
    input: Pin<Box<dyn AsyncWrite + Send>>,
    waiting: Vec<u8>,
    /// How much of `waiting` was written.
    sent: usize,
    /// Whether written bytes may still be in a buffer of ours.
    unflushed: bool,
}

impl Outbox {
    fn new(input: Pin<Box<dyn AsyncWrite + Send>>) -> Self {
        Self { input, waiting: Vec::new(), sent: 0, unflushed: false }
    }

    /// Bytes that were not written yet.
    pub fn len(&self) -> usize {
        self.waiting.len() - self.sent
    }

    /// Whether there is something to write.
    pub fn busy(&self) -> bool {
        self.len() > 0 || self.unflushed
    }

    /// Writes once. Safe to drop and call again.
    pub async fn write(&mut self) -> io::Result<()> {
        if self.len() > 0 {
            let count = self.input.write(&self.waiting[self.sent..]).await?;
            if count == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            self.sent += count;
            self.unflushed = true;
        }
        if self.len() == 0 {
            self.waiting.clear();
            self.sent = 0;
            self.input.flush().await?;
            self.unflushed = false;
        }
        Ok(())
    }

    /// Drops what waits: a guest that is gone says so on its output, with its last words.
    pub fn discard(&mut self) {
        self.waiting.clear();
        self.sent = 0;
        self.unflushed = false;
    }
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
