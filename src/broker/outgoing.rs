//! What goes to the runtime: one task writes, in fair turns.
//!
//! Every handler sends its frames through one short queue, whose waiting senders are served in the order
//! in which they came, and gives way before each further chunk: streams take turns chunk by chunk, and a
//! short answer waits for no more than a few chunks. Credit and aborts have a queue of their own and go first.

use std::sync::Arc;

use serde::Serialize;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

use super::Refusal;
use super::frame::{CHUNK_MAX, HEADER, HostKind, encode, header};
use super::meter::Meter;

use crate::codes::Code;

/// Frames that wait for the writer. With chunks of 64 KiB: half a megabyte.
pub(super) const QUEUE: usize = 8;

/// Longest JSON of an answer: lists and globs are cut before it.
pub(super) const REPLY_MAX: usize = 8 * 1024 * 1024;

/// The way out for the handler of one request.
#[derive(Debug, Clone)]
pub(super) struct Outgoing {
    id: u32,
    data: mpsc::Sender<Vec<u8>>,
    meter: Arc<Meter>,
    sent: u64,
}

/// Whoever wrote is gone; nobody will read an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Gone;

impl Outgoing {
    pub(super) fn new(id: u32, data: mpsc::Sender<Vec<u8>>, meter: Arc<Meter>) -> Self {
        Self { id, data, meter, sent: 0 }
    }

    /// Bytes that were sent as chunks.
    pub(super) fn sent(&self) -> u64 {
        self.sent
    }

    /// An empty frame of a chunk, to be filled up to [`CHUNK_MAX`] bytes and given to [`Self::frame`].
    pub(super) fn blank() -> Vec<u8> {
        let mut frame = Vec::with_capacity(HEADER + CHUNK_MAX);
        frame.extend_from_slice(&[0; HEADER]);
        frame
    }

    /// Sends a frame that began as [`Self::blank`]. Empty ones are left out.
    pub(super) async fn frame(&mut self, mut frame: Vec<u8>) -> Result<(), Refusal> {
        let length = frame.len() - HEADER;
        if length == 0 {
            return Ok(());
        }
        self.meter.send(length)?;
        // The queue may have room for more than one: whoever has sent lets those go first who have not.
        if self.sent > 0 {
            tokio::task::yield_now().await;
        }
        self.sent += length as u64;
        frame[..HEADER].copy_from_slice(&header(HostKind::Chunk.number(), self.id, length));
        self.data.send(frame).await.map_err(|_| ending())
    }

    /// Sends bytes as chunks.
    pub(super) async fn bytes(&mut self, bytes: &[u8]) -> Result<(), Refusal> {
        for chunk in bytes.chunks(CHUNK_MAX) {
            let mut frame = Self::blank();
            frame.extend_from_slice(chunk);
            self.frame(frame).await?;
        }
        Ok(())
    }

    /// Sends the one reply.
    pub(super) async fn reply(&mut self, result: &Result<String, Refusal>) -> Result<(), Gone> {
        let payload = reply(result);
        // Counted for the record; an answer is sent even if it is the last that the limit lets through.
        let _ = self.meter.send(payload.len());
        let frame = encode(HostKind::Reply.number(), self.id, payload.as_bytes());
        self.data.send(frame).await.map_err(|_| Gone)
    }
}

fn ending() -> Refusal {
    Refusal::new(Code::Cancelled, "the call is ending")
}

/// The payload of a reply; `Ok` holds JSON.
pub(super) fn reply(result: &Result<String, Refusal>) -> String {
    match result {
        Ok(json) => format!(r#"{{"ok":{json}}}"#),
        Err(refusal) => match serde_json::to_string(refusal) {
            Ok(json) => format!(r#"{{"error":{json}}}"#),
            // Strings and a map: there is nothing in a refusal that JSON cannot hold.
            Err(_) => {
                r#"{"error":{"code":"io_error","message":"","recoverable":false}}"#.to_owned()
            }
        },
    }
}

/// A value as the JSON of a reply.
pub(super) fn ok(value: &impl Serialize) -> Result<String, Refusal> {
    let json = serde_json::to_string(value)
        .map_err(|error| Refusal::new(Code::IoError, error.to_string()))?;
    if json.len() > REPLY_MAX {
        return Err(Refusal::new(Code::TooLarge, "the answer is too large"));
    }
    Ok(json)
}

/// Writes until everyone who sends is gone, or the stream breaks. `opening` goes first.
pub(super) async fn write(
    mut stream: impl AsyncWrite + Unpin,
    opening: Vec<Vec<u8>>,
    mut control: mpsc::UnboundedReceiver<Vec<u8>>,
    mut data: mpsc::Receiver<Vec<u8>>,
) -> std::io::Result<()> {
    for frame in opening {
        stream.write_all(&frame).await?;
    }
    stream.flush().await?;
    loop {
        let frame = tokio::select! {
            biased;
            Some(frame) = control.recv() => frame,
            Some(frame) = data.recv() => frame,
            else => return Ok(()),
        };
        stream.write_all(&frame).await?;
        if control.is_empty() && data.is_empty() {
            stream.flush().await?;
        }
    }
}
