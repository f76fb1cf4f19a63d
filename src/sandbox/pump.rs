//! One call's traffic: standard input in, output out, a tool's talk with the broker both ways, each within
//! its credit, until the guest's end.
//!
//! One loop owns all state. What waits to be written, to the guest or to the caller, is bounded by the
//! credit windows, so memory is flat however fast the command writes and however slowly the caller
//! reads; and a blocked stream never stops another one, a signal, or the clock.

use std::path::PathBuf;
use std::time::Duration;

use futures_util::StreamExt;
use runner_wire::{Channel, Exit, GuestMessage, HostMessage, Kind, SignalName, WireError};
use tokio::time::Instant;

use super::cancel::Cancel;
use super::kept::Kept;
use super::outcome::{CancelCause, RunError};
use super::streams::{Feed, Output, Sink, Source, Talk};
use super::tunnels::{Answer, Connections, Tunnels};
use super::wire::Wire;

/// No input is read while this much waits to be sent.
const WAITING_MAX: usize = 128 << 10;

/// How often the room of writable file systems is looked at.
const FLOOR_EVERY: Duration = Duration::from_millis(200);

/// How long a guest may take to end what it was asked to end.
const CANCEL_WAIT: Duration = Duration::from_secs(4);

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
    /// Why the call was cancelled, if it was.
    pub cancelled: Option<CancelCause>,
    /// Whether a writable file system ran out of room.
    pub no_room: bool,
    /// Standard output.
    pub stdout: Kept,
    /// Standard error.
    pub stderr: Kept,
    /// When the end was known.
    pub ended: Instant,
    /// The wire to the guest, which waits for its end; `None` if it did not tell its own.
    pub wire: Option<Wire>,
}

/// The streams of a call and how long it may take.
pub struct Traffic {
    /// Standard input.
    pub stdin: Source,
    /// Standard output.
    pub stdout: Sink,
    /// Standard error.
    pub stderr: Sink,
    /// A tool's talk with the broker.
    pub talk: Option<Talk>,
    /// Who carries on what commands connect to; `None` for a call without a network.
    pub network: Option<Box<dyn Connections>>,
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
    let (heard, said) = traffic.talk.map_or((None, None), |talk| (Some(talk.0), Some(talk.1)));
    let mut stdin = Feed::new(Channel::STDIN, traffic.stdin);
    let mut heard = Feed::new(Channel::TOOL, heard);
    let mut out = Output::new(Channel::STDOUT, traffic.stdout, traffic.keep);
    let mut err = Output::new(Channel::STDERR, traffic.stderr, traffic.keep);
    let mut said = Output::new(Channel::TOOL, said, 0);
    let mut tunnels = Tunnels::new(traffic.network);
    let mut deadline = traffic.deadline;
    let mut cancelled: Option<CancelCause> = None;
    let mut no_room = false;
    let mut look = tokio::time::interval(FLOOR_EVERY);
    let mut exit = None;
    while exit.is_none() {
        let room = wire.outbox.len() < WAITING_MAX;
        let mut asked = None;
        tokio::select! {
            item = wire.chunks.next() => {
                wire.take(item)?;
                while let Some(frame) = wire.decoder.next_frame()? {
                    let outputs = [&mut out, &mut err, &mut said];
                    match GuestMessage::from_frame(frame)? {
                        GuestMessage::Data(channel, bytes) if channel.is_tunnel() => {
                            tunnels.take(channel, bytes)?;
                        }
                        GuestMessage::Close(channel) if channel.is_tunnel() => {
                            tunnels.close(channel)?;
                        }
                        GuestMessage::Credit(channel, bytes) if channel.is_tunnel() => {
                            tunnels.grant(channel, bytes)?;
                        }
                        GuestMessage::Open(channel, open) => tunnels.open(channel, open)?,
                        GuestMessage::Reset(channel) => tunnels.reset(channel)?,
                        GuestMessage::Missed(missed) => tunnels.missed(missed.name)?,
                        GuestMessage::Data(channel, bytes) => {
                            if let Some(grant) = of(channel, outputs)?.take(&bytes)? {
                                wire.queue(&HostMessage::Credit(channel, grant))?;
                            }
                        }
                        GuestMessage::Close(channel) => of(channel, outputs)?.close()?,
                        GuestMessage::Credit(Channel::TOOL, bytes) => heard.grant(bytes)?,
                        GuestMessage::Credit(_, bytes) => stdin.grant(bytes)?,
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
            result = wire.outbox.write(), if wire.outbox.busy() => {
                if result.is_err() {
                    wire.outbox.discard();
                }
            }
            (channel, answer) = tunnels.next(room), if tunnels.are_open() => match answer {
                Answer::Message(message) => wire.queue(&message)?,
                Answer::Broken(error) => {
                    debug_assert!(false, "{channel:?}: {error}");
                    return Err(error.into());
                }
            },
            count = stdin.read(), if room && stdin.may_read() => {
                match stdin.message(count)? {
                    Some(data) => wire.queue(&data)?,
                    None => wire.queue(&HostMessage::Close(Channel::STDIN))?,
                }
            }
            count = heard.read(), if room && heard.may_read() => {
                match heard.message(count)? {
                    Some(data) => wire.queue(&data)?,
                    // A broker that stops listening has found something that ends the call.
                    None => asked = Some(CancelCause::BrokerEnded),
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
            result = said.write(), if said.busy() => {
                let (grant, failed) = said.wrote(result);
                if let Some(grant) = grant {
                    wire.queue(&HostMessage::Credit(said.channel, grant))?;
                }
                asked = failed.then_some(CancelCause::BrokerEnded);
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
                (Some(_), _) | (None, CancelCause::OutputClosed | CancelCause::BrokerEnded) => {
                    SignalName::Kill
                }
            };
            cancelled.get_or_insert(cause);
            deadline = deadline.min(Instant::now() + CANCEL_WAIT);
            wire.queue(&HostMessage::Signal(signal))?;
        }
    }
    let ended = Instant::now();
    // A guest that did not tell its end has it now.
    let wire = exit.is_some().then_some(wire);
    while out.busy() || err.busy() || said.busy() {
        tokio::select! {
            result = out.write(), if out.busy() => { out.wrote(result); }
            result = err.write(), if err.busy() => { err.wrote(result); }
            result = said.write(), if said.busy() => { said.wrote(result); }
            // What the broker still sends is discarded; but it must not wait for a reader.
            () = heard.drain() => {}
            _ = cancel.asked() => break,
        }
    }
    Ok(Pumped { exit, cancelled, no_room, stdout: out.kept, stderr: err.kept, ended, wire })
}

/// The output on a channel.
fn of(channel: Channel, outputs: [&mut Output; 3]) -> Result<&mut Output, WireError> {
    let found = outputs.into_iter().find(|output| output.channel == channel);
    found.ok_or(WireError::Channel { kind: Kind::Data, channel: channel.0 })
}
