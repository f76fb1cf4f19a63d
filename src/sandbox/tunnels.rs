//! The connections of a call: one channel each, within its own credit.
//!
//! The pump owns the table; the broker has the [`End`] of each connection. Between the two lie queues that the
//! credit of each channel bounds, so a connection that stands still holds up nothing but itself.
//!
//! Trust boundary: channels, names and bytes are the guest's. A channel that is not the next one, bytes beyond the
//! credit, or bytes after the end of a stream end the call.

use std::collections::HashMap;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use runner_wire::{
    Channel, HostMessage, Kind, Open, Receiver, Sender, TUNNEL_DATA_MAX, TUNNEL_WINDOW, WireError,
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// Most connections at once. A guest has fewer: beyond its bound it lets others wait.
const AT_ONCE_MAX: usize = 2_048;

/// Most names of which a guest says that they lead nowhere.
const MISSED_MAX: usize = 256;

/// Who carries on what commands connect to.
pub trait Connections: Send {
    /// A program connects to this name. Dropping the end resets the connection.
    fn open(&mut self, end: End, name: String, port: u16);

    /// A program asked for a name that the order does not have.
    fn missed(&mut self, name: String);
}

/// What a connection's end asks of the pump.
enum Asked {
    /// To send these bytes.
    Data(Vec<u8>),
    /// To end the stream into the sandbox.
    Close,
    /// To give so much credit back.
    Release(usize),
    /// To reset the connection.
    Reset,
}

/// What the guest sent on a channel.
enum Sent {
    Bytes(Vec<u8>),
    End,
    Reset,
}

/// How much an end may send.
#[derive(Default)]
struct Room {
    left: usize,
    over: bool,
    waker: Option<Waker>,
}

type Shared = Arc<Mutex<Room>>;

fn room(shared: &Shared) -> MutexGuard<'_, Room> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One connection, as the pump knows it.
struct Entry {
    sent: UnboundedSender<Sent>,
    incoming: Receiver,
    outgoing: Sender,
    room: Shared,
    /// Whether the guest has ended its stream.
    ended: bool,
    /// Whether we have ended ours.
    closed: bool,
}

impl Drop for Entry {
    fn drop(&mut self) {
        let mut room = room(&self.room);
        room.over = true;
        if let Some(waker) = room.waker.take() {
            waker.wake();
        }
    }
}

/// Both ends of a queue of what goes to the guest.
type Queue = (UnboundedSender<(Channel, Asked)>, UnboundedReceiver<(Channel, Asked)>);

/// The connections of a call; none for a call without a network.
pub(super) struct Tunnels {
    connections: Option<Box<dyn Connections>>,
    table: HashMap<u32, Entry>,
    next: u32,
    missed: usize,
    /// What must not wait for data.
    urgent: Queue,
    /// Data and the ends of streams, in order.
    ordered: Queue,
}

impl Tunnels {
    /// An empty table.
    pub fn new(connections: Option<Box<dyn Connections>>) -> Self {
        Self {
            connections,
            table: HashMap::new(),
            next: Channel::FIRST_TUNNEL.0,
            missed: 0,
            urgent: unbounded_channel(),
            ordered: unbounded_channel(),
        }
    }

    /// Whether there may be any.
    pub fn are_open(&self) -> bool {
        self.connections.is_some()
    }

    /// A program connects.
    pub fn open(&mut self, channel: Channel, open: Open) -> Result<(), WireError> {
        let Some(connections) = &mut self.connections else {
            return Err(WireError::Unexpected(Kind::Open));
        };
        let next = self.next.checked_add(1).filter(|_| channel.0 == self.next);
        let kept = self.table.len() < AT_ONCE_MAX;
        let wrong = WireError::Channel { kind: Kind::Open, channel: channel.0 };
        self.next = next.filter(|_| kept).ok_or(wrong)?;
        let (sent, incoming) = unbounded_channel();
        let room = Arc::new(Mutex::new(Room { left: TUNNEL_WINDOW as usize, ..Room::default() }));
        let end = End {
            channel,
            incoming,
            piece: Vec::new(),
            taken: 0,
            ended: false,
            closed: false,
            room: Arc::clone(&room),
            urgent: self.urgent.0.clone(),
            ordered: self.ordered.0.clone(),
        };
        let (incoming, outgoing) = (Receiver::new(channel), Sender::new(channel));
        let entry = Entry { sent, incoming, outgoing, room, ended: false, closed: false };
        self.table.insert(channel.0, entry);
        connections.open(end, open.name, open.port);
        Ok(())
    }

    /// A name that leads nowhere.
    pub fn missed(&mut self, name: String) -> Result<(), WireError> {
        self.missed += 1;
        match &mut self.connections {
            Some(connections) if self.missed <= MISSED_MAX => connections.missed(name),
            Some(_) | None => return Err(WireError::Unexpected(Kind::Missed)),
        }
        Ok(())
    }

    /// The connection of a channel; none for one that is over, of which something may still be on its way.
    fn known(&mut self, kind: Kind, channel: Channel) -> Result<Option<&mut Entry>, WireError> {
        if channel.0 >= self.next {
            return Err(WireError::Channel { kind, channel: channel.0 });
        }
        Ok(self.table.get_mut(&channel.0))
    }

    /// Takes bytes of the guest.
    pub fn take(&mut self, channel: Channel, bytes: Vec<u8>) -> Result<(), WireError> {
        let Some(entry) = self.known(Kind::Data, channel)? else { return Ok(()) };
        if entry.ended {
            return Err(WireError::Channel { kind: Kind::Data, channel: channel.0 });
        }
        entry.incoming.receive(bytes.len())?;
        // An end that is gone has asked for a reset.
        let _ = entry.sent.send(Sent::Bytes(bytes));
        Ok(())
    }

    /// The guest has ended a stream.
    pub fn close(&mut self, channel: Channel) -> Result<(), WireError> {
        let Some(entry) = self.known(Kind::Close, channel)? else { return Ok(()) };
        if std::mem::replace(&mut entry.ended, true) {
            return Err(WireError::Unexpected(Kind::Close));
        }
        let _ = entry.sent.send(Sent::End);
        if entry.closed {
            self.table.remove(&channel.0);
        }
        Ok(())
    }

    /// A connection of the guest has failed.
    pub fn reset(&mut self, channel: Channel) -> Result<(), WireError> {
        if let Some(entry) = self.known(Kind::Reset, channel)? {
            let _ = entry.sent.send(Sent::Reset);
        }
        self.table.remove(&channel.0);
        Ok(())
    }

    /// Takes credit of the guest.
    pub fn grant(&mut self, channel: Channel, bytes: u32) -> Result<(), WireError> {
        let Some(entry) = self.known(Kind::Credit, channel)? else { return Ok(()) };
        entry.outgoing.grant(bytes)?;
        let mut room = room(&entry.room);
        room.left += bytes as usize;
        if let Some(waker) = room.waker.take() {
            waker.wake();
        }
        Ok(())
    }

    /// What is to be sent next; data only while the wire has room. Safe to drop and call again.
    pub async fn next(&mut self, has_room: bool) -> (Channel, Answer) {
        loop {
            let (channel, asked) = tokio::select! {
                biased;
                Some(asked) = self.urgent.1.recv() => asked,
                Some(asked) = self.ordered.1.recv(), if has_room => asked,
                else => std::future::pending().await,
            };
            if let Some(answer) = self.answer(channel, asked) {
                return (channel, answer);
            }
        }
    }

    fn answer(&mut self, channel: Channel, asked: Asked) -> Option<Answer> {
        let entry = self.table.get_mut(&channel.0)?;
        match asked {
            Asked::Data(bytes) => {
                let spent = entry.outgoing.spend(bytes.len());
                Some(spent.map_err(Answer::Broken).map_or_else(
                    |broken| broken,
                    |()| Answer::Message(HostMessage::Data(channel, bytes)),
                ))
            }
            Asked::Release(count) => {
                let grant = entry.incoming.release(count)?;
                Some(Answer::Message(HostMessage::Credit(channel, grant)))
            }
            Asked::Close => {
                entry.closed = true;
                if entry.ended {
                    self.table.remove(&channel.0);
                }
                Some(Answer::Message(HostMessage::Close(channel)))
            }
            Asked::Reset => {
                self.table.remove(&channel.0);
                Some(Answer::Message(HostMessage::Reset(channel)))
            }
        }
    }
}

/// What an end's wish comes to.
pub(super) enum Answer {
    /// A message for the guest.
    Message(HostMessage),
    /// More was sent than there is credit for: a mistake of ours.
    Broken(WireError),
}

/// The host's end of a connection. Dropping it resets the connection, unless both streams have ended.
pub struct End {
    channel: Channel,
    incoming: UnboundedReceiver<Sent>,
    piece: Vec<u8>,
    taken: usize,
    ended: bool,
    closed: bool,
    room: Shared,
    urgent: UnboundedSender<(Channel, Asked)>,
    ordered: UnboundedSender<(Channel, Asked)>,
}

impl AsyncRead for End {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while self.taken == self.piece.len() {
            if self.ended {
                return Poll::Ready(Ok(()));
            }
            match ready!(self.incoming.poll_recv(context)) {
                Some(Sent::Bytes(bytes)) => (self.piece, self.taken) = (bytes, 0),
                Some(Sent::End) => self.ended = true,
                Some(Sent::Reset) => {
                    return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
                }
                None => return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into())),
            }
        }
        let count = buffer.remaining().min(self.piece.len() - self.taken);
        buffer.put_slice(&self.piece[self.taken..self.taken + count]);
        self.taken += count;
        let _ = self.urgent.send((self.channel, Asked::Release(count)));
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for End {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut room = room(&self.room);
        if room.over || self.closed {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        let count = bytes.len().min(room.left).min(TUNNEL_DATA_MAX);
        if count == 0 && !bytes.is_empty() {
            room.waker = Some(context.waker().clone());
            return Poll::Pending;
        }
        room.left -= count;
        drop(room);
        let sent = self.ordered.send((self.channel, Asked::Data(bytes[..count].to_vec())));
        Poll::Ready(sent.map(|()| count).map_err(|_| io::ErrorKind::BrokenPipe.into()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !std::mem::replace(&mut self.closed, true) {
            let _ = self.ordered.send((self.channel, Asked::Close));
        }
        Poll::Ready(Ok(()))
    }
}

impl Drop for End {
    fn drop(&mut self) {
        if !(self.ended && self.closed) {
            let _ = self.urgent.send((self.channel, Asked::Reset));
        }
    }
}

#[cfg(test)]
#[path = "tunnels_tests.rs"]
mod tests;
