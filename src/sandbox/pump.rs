//! One call's traffic: standard input in, output out, each within its credit, until the guest's end.
//!
//! One loop owns all state. What waits to be written, to the guest or to the caller, is bounded by the
//! credit windows, so memory is flat however fast the command writes and however slowly the caller
//! reads; and a blocked stream never stops another one, a signal, or the clock.

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::time::Duration;

use futures_util::StreamExt;
use runner_wire::{
    Channel, Decoder, Encoder, Exit, GuestMessage, HostMessage, Kind, Ready, Receiver, Sender,
    SignalName, WireError,
};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::Instant;

use super::cancel::Cancel;
use super::kept::Kept;
use super::outcome::{CancelCause, RunError};
use crate::engine::{Attached, Chunk};

/// Standard input of a call.
pub type Source = Option<Pin<Box<dyn AsyncRead + Send>>>;

/// Where an output stream goes while the call runs, beside what is kept of it.
pub type Sink = Option<Pin<Box<dyn AsyncWrite + Send>>>;

/// No input is read while this much waits to be sent.
const WAITING_MAX: usize = 128 << 10;

/// How much of a guest's standard error is kept to explain its end.
const NOISE_MAX: usize = 4 << 10;

/// How often the room of writable file systems is looked at.
const FLOOR_EVERY: Duration = Duration::from_millis(200);

/// How long a guest may take to end what it was asked to end.
const CANCEL_WAIT: Duration = Duration::from_secs(4);

/// The wire to one guest.
pub struct Wire {
    attached: Attached,
    decoder: Decoder,
    encoder: Encoder,
    waiting: Vec<u8>,
    noise: VecDeque<u8>,
}

impl Wire {
    /// The wire over an attached guest, without a key.
    pub fn new(attached: Attached, decoder: Decoder, encoder: Encoder) -> Self {
        Self { attached, decoder, encoder, waiting: Vec::new(), noise: VecDeque::new() }
    }

    /// Queues a message.
    pub fn queue(&mut self, message: &HostMessage) -> Result<(), WireError> {
        message.encode(&mut self.encoder, &mut self.waiting)
    }

    /// Expects the guest to use the key from now on.
    pub fn rekey(&mut self, key: &runner_wire::Key) {
        self.decoder.rekey(key);
    }

    /// Writes all that is queued.
    pub async fn flush(&mut self) -> Result<(), RunError> {
        let lost = |error: io::Error| {
            RunError::Engine(crate::engine::EngineError::Lost {
                operation: "write to a sandbox",
                why: error.to_string(),
            })
        };
        self.attached.input.write_all(&self.waiting).await.map_err(lost)?;
        self.attached.input.flush().await.map_err(lost)?;
        self.waiting.clear();
        Ok(())
    }

    /// The guest's report, which is its first message.
    pub async fn ready(&mut self) -> Result<Ready, RunError> {
        loop {
            if let Some(frame) = self.decoder.next_frame()? {
                return match GuestMessage::from_frame(frame)? {
                    GuestMessage::Ready(ready) => Ok(ready),
                    GuestMessage::Fatal(fatal) => Err(RunError::Guest(fatal)),
                    _ => Err(WireError::Unexpected(Kind::Ready).into()),
                };
            }
            let item = self.attached.output.next().await;
            self.take(item)?;
        }
    }

    fn take(
        &mut self,
        item: Option<Result<Chunk, crate::engine::EngineError>>,
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

/// One output stream on its way to the caller.
struct Output {
    channel: Channel,
    sink: Sink,
    waiting: VecDeque<u8>,
    unflushed: bool,
    credit: Receiver,
    kept: Kept,
    closed: bool,
}

impl Output {
    fn new(channel: Channel, sink: Sink, keep: u64) -> Self {
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

    /// Takes bytes of the guest; credit to return at once if nobody waits for them.
    fn take(&mut self, bytes: &[u8]) -> Result<Option<u32>, WireError> {
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

    fn busy(&self) -> bool {
        self.sink.is_some() && (self.unflushed || !self.waiting.is_empty())
    }

    /// Writes a piece, or flushes when nothing waits; how many bytes left. Safe to drop and call again.
    async fn write(&mut self) -> io::Result<usize> {
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
    fn wrote(&mut self, result: io::Result<usize>) -> (Option<u32>, bool) {
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

/// File systems that must keep some room while a call can write to them.
#[derive(Debug, Clone)]
pub struct Floor {
    /// A folder of each.
    pub folders: Vec<PathBuf>,
    /// Bytes that must stay free.
    pub bytes: u64,
}

impl Floor {
    /// Whether one has less room than it must. One that cannot be asked counts as having room: the
    /// limit on the size of files still holds.
    fn broken(&self) -> bool {
        self.folders.iter().any(|folder| {
            rustix::fs::statvfs(folder)
                .is_ok_and(|stat| stat.f_bavail.saturating_mul(stat.f_frsize) < self.bytes)
        })
    }
}

/// What a call's traffic came to.
pub struct Pumped {
    /// The guest's last word; `None` if the host's clock or patience ran out first.
    pub exit: Option<Exit>,
    /// Who asked for the end, if anybody did.
    pub cancelled: Option<CancelCause>,
    /// Whether a writable file system ran out of room.
    pub no_room: bool,
    /// Standard output.
    pub stdout: Kept,
    /// Standard error.
    pub stderr: Kept,
    /// When the end was known.
    pub ended: Instant,
}

/// The streams of a call and how long it may take.
pub struct Traffic {
    /// Standard input.
    pub stdin: Source,
    /// Standard output.
    pub stdout: Sink,
    /// Standard error.
    pub stderr: Sink,
    /// Bytes to keep of each output stream.
    pub keep: u64,
    /// File systems to watch.
    pub floor: Floor,
    /// When the host stops waiting for the guest's own clock.
    pub deadline: Instant,
}

/// Moves everything until the guest tells its end, then writes what is left to the caller.
pub async fn pump(
    mut wire: Wire,
    traffic: Traffic,
    cancel: &mut Cancel,
) -> Result<Pumped, RunError> {
    let mut stdin = traffic.stdin;
    let mut input = Sender::new(Channel::STDIN);
    let mut out = Output::new(Channel::STDOUT, traffic.stdout, traffic.keep);
    let mut err = Output::new(Channel::STDERR, traffic.stderr, traffic.keep);
    let mut deadline = traffic.deadline;
    let mut cancelled: Option<CancelCause> = None;
    let mut no_room = false;
    let mut look = tokio::time::interval(FLOOR_EVERY);
    let mut buffer = vec![0; 32 << 10];
    let mut sent = 0;
    let mut exit = None;
    if stdin.is_none() {
        wire.queue(&HostMessage::Close(Channel::STDIN))?;
    }
    while exit.is_none() {
        let room = input.room().min(buffer.len());
        let may_read = stdin.is_some() && room > 0 && wire.waiting.len() - sent < WAITING_MAX;
        let mut asked = None;
        tokio::select! {
            item = wire.attached.output.next() => {
                wire.take(item)?;
                while let Some(frame) = wire.decoder.next_frame()? {
                    match GuestMessage::from_frame(frame)? {
                        GuestMessage::Data(channel, bytes) => {
                            let output = if channel == out.channel { &mut out } else { &mut err };
                            if let Some(grant) = output.take(&bytes)? {
                                wire.queue(&HostMessage::Credit(channel, grant))?;
                            }
                        }
                        GuestMessage::Close(channel) => {
                            let output = if channel == out.channel { &mut out } else { &mut err };
                            if std::mem::replace(&mut output.closed, true) {
                                return Err(WireError::Unexpected(Kind::Close).into());
                            }
                        }
                        GuestMessage::Credit(_, bytes) => input.grant(bytes)?,
                        GuestMessage::Started(_) => {}
                        GuestMessage::Exit(last) => {
                            exit = Some(last);
                            break;
                        }
                        GuestMessage::Fatal(fatal) => return Err(RunError::Guest(fatal)),
                        GuestMessage::Ready(_) => return Err(WireError::Unexpected(Kind::Ready).into()),
                    }
                }
            }
            result = wire.attached.input.write(&wire.waiting[sent..]), if sent < wire.waiting.len() => {
                // A guest that has gone tells so on its output, with its last words.
                sent += result.unwrap_or(wire.waiting.len() - sent);
                if sent == wire.waiting.len() {
                    wire.waiting.clear();
                    sent = 0;
                    let _ = wire.attached.input.flush().await;
                }
            }
            count = read(&mut stdin, &mut buffer[..room]), if may_read => {
                match count {
                    0 => {
                        stdin = None;
                        wire.queue(&HostMessage::Close(Channel::STDIN))?;
                    }
                    count => {
                        input.spend(count)?;
                        wire.queue(&HostMessage::Data(Channel::STDIN, buffer[..count].to_vec()))?;
                    }
                }
            }
            result = out.write(), if out.busy() => {
                let (grant, failed) = out.wrote(result);
                if let Some(grant) = grant {
                    wire.queue(&HostMessage::Credit(out.channel, grant))?;
                }
                asked = failed.then_some(CancelCause::OutputClosed);
            }
            result = err.write(), if err.busy() => {
                let (grant, failed) = err.wrote(result);
                if let Some(grant) = grant {
                    wire.queue(&HostMessage::Credit(err.channel, grant))?;
                }
                asked = failed.then_some(CancelCause::OutputClosed);
            }
            cause = cancel.asked() => asked = Some(cause),
            _ = look.tick(), if !no_room && !traffic.floor.folders.is_empty() => {
                no_room = traffic.floor.broken();
                if no_room {
                    deadline = deadline.min(Instant::now() + CANCEL_WAIT);
                    wire.queue(&HostMessage::Signal(SignalName::Kill))?;
                }
            }
            () = tokio::time::sleep_until(deadline) => break,
        }
        if let Some(cause) = asked {
            let signal = match (cancelled, cause) {
                (None, CancelCause::Interrupt) => SignalName::Interrupt,
                (None, CancelCause::Terminate) => SignalName::Terminate,
                (Some(_), _) | (None, CancelCause::OutputClosed) => SignalName::Kill,
            };
            cancelled.get_or_insert(cause);
            deadline = deadline.min(Instant::now() + CANCEL_WAIT);
            wire.queue(&HostMessage::Signal(signal))?;
        }
    }
    let ended = Instant::now();
    // The guest and its sandbox end when this closes.
    drop(wire);
    while out.busy() || err.busy() {
        tokio::select! {
            result = out.write(), if out.busy() => { out.wrote(result); }
            result = err.write(), if err.busy() => { err.wrote(result); }
            _ = cancel.asked() => break,
        }
    }
    Ok(Pumped { exit, cancelled, no_room, stdout: out.kept, stderr: err.kept, ended })
}

/// Reads once; an error is an end.
async fn read(source: &mut Source, buffer: &mut [u8]) -> usize {
    match source {
        Some(source) => source.read(buffer).await.unwrap_or(0),
        None => std::future::pending().await,
    }
}
