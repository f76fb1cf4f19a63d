//! The messages from a host to its watchdog: a line of JSON each, some with a file descriptor.

use std::collections::VecDeque;
use std::io::{self, IoSlice, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::cmsg_space;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::{Deserialize, Serialize};

/// How much is read at once.
const PIECE: usize = 16 << 10;

/// A message. `host.rs` says what each means.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Message {
    /// It comes with a copy of a socket: a sandbox may appear until the engine closes that.
    Pending,
    /// The sandbox is there.
    Settled,
    Took(String),
    /// It comes with the order, in a file.
    Refill,
    Settle(PathBuf),
    Ended,
}

/// Sends a message's line, with a copy of a descriptor.
pub(super) fn send(
    socket: &UnixStream,
    line: &[u8],
    with: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    let Some(with) = with else { return (&*socket).write_all(line) };
    let with = [with];
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&with));
    let pieces = [IoSlice::new(line)];
    let sent = retry_on_intr(|| sendmsg(socket, &pieces, &mut control, SendFlags::NOSIGNAL))?;
    (&*socket).write_all(line.get(sent..).unwrap_or_default())
}

/// What comes next.
#[derive(Debug)]
pub(super) enum Next {
    /// A message, with the descriptor that came with it.
    Message(Message, Option<OwnedFd>),
    /// Nothing, in the time that there was.
    Nothing,
    /// Nothing more: the host is gone.
    Over,
}

/// The messages as they arrive.
pub(super) struct Inbox<S> {
    socket: S,
    /// Read, and not yet a whole line.
    bytes: Vec<u8>,
    /// Received, and not yet returned with its message: the kernel delivers a descriptor with the bytes that it was
    /// sent with, or before.
    descriptors: VecDeque<OwnedFd>,
}

impl<S: AsFd> Inbox<S> {
    pub(super) fn of(socket: S) -> Self {
        Self { socket, bytes: Vec::new(), descriptors: VecDeque::new() }
    }

    /// Reads what there is; `false` at the end.
    fn read(&mut self) -> io::Result<bool> {
        let mut piece = [0; PIECE];
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let read = retry_on_intr(|| {
            let mut pieces = [IoSliceMut::new(&mut piece)];
            recvmsg(&self.socket, &mut pieces, &mut control, RecvFlags::CMSG_CLOEXEC)
        })?;
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(arrived) = message {
                self.descriptors.extend(arrived);
            }
        }
        self.bytes.extend(piece.get(..read.bytes).unwrap_or_default());
        Ok(read.bytes > 0)
    }

    /// The next message, awaited for this long; `None` is without a limit.
    pub(super) fn next(&mut self, wait: Option<Duration>) -> Next {
        let until = wait.map(|wait| Instant::now() + wait);
        let end = loop {
            if let Some(end) = self.bytes.iter().position(|byte| *byte == b'\n') {
                break end;
            }
            match self.comes(until) {
                Ok(true) => {}
                Ok(false) => return Next::Nothing,
                Err(_) => return Next::Over,
            }
            if !self.read().unwrap_or(false) {
                return Next::Over;
            }
        };
        // Both ends are one program: what cannot be read was cut off by a death.
        let line = self.bytes.get(..end).unwrap_or_default();
        let Ok(word) = serde_json::from_slice(line) else { return Next::Over };
        self.bytes.drain(..=end);
        let with = match word {
            Message::Pending | Message::Refill => self.descriptors.pop_front(),
            _ => None,
        };
        Next::Message(word, with)
    }

    /// Whether something comes until then.
    fn comes(&self, until: Option<Instant>) -> io::Result<bool> {
        let ready = retry_on_intr(|| {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            let left = left.and_then(|left| Timespec::try_from(left).ok());
            poll(&mut [PollFd::from_borrowed_fd(self.socket.as_fd(), PollFlags::IN)], left.as_ref())
        })?;
        Ok(ready > 0)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn a_connection_arrives_with_its_word_however_the_bytes_are_cut() {
        let (host, watchdog) = UnixStream::pair().unwrap();
        let (connection, mut daemon) = UnixStream::pair().unwrap();
        let long = format!("{{\"took\":\"{}\"}}\n", "a".repeat(3 * PIECE));
        send(&host, b"\"settled\"\n", None).unwrap();
        let writer = std::thread::spawn(move || {
            send(&host, long.as_bytes(), None).unwrap();
            send(&host, b"\"pending\"\n\"ended\"\n\"cut o", Some(connection.as_fd())).unwrap();
        });
        let mut heard = Inbox::of(watchdog);
        let mut words = Vec::new();
        while let Next::Message(word, with) = heard.next(None) {
            words.push((word, with));
        }
        writer.join().unwrap();
        let shown: Vec<_> = words
            .iter()
            .map(|(word, with)| (serde_json::to_value(word).unwrap(), with.is_some()))
            .collect();
        assert_eq!(shown[0], ("settled".into(), false));
        assert!(shown[1].0["took"].is_string() && !shown[1].1);
        assert_eq!(shown[2..], [("pending".into(), true), ("ended".into(), false)]);
        // The copy is all that is left of the host's end.
        drop(words);
        assert_eq!(daemon.read(&mut [0]).unwrap(), 0);
    }

    #[test]
    fn nothing_is_told_from_the_end() {
        let (host, watchdog) = UnixStream::pair().unwrap();
        let mut heard = Inbox::of(watchdog);
        assert!(matches!(heard.next(Some(Duration::from_millis(5))), Next::Nothing));
        send(&host, b"\"ended\"\n", None).unwrap();
        assert!(matches!(heard.next(Some(Duration::ZERO)), Next::Message(Message::Ended, None)));
        drop(host);
        assert!(matches!(heard.next(Some(Duration::from_secs(60))), Next::Over));
    }
}
