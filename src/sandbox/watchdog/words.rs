//! What a host tells its watchdog, and how it travels: a line of JSON each, and with one of them a descriptor.

use std::collections::VecDeque;
use std::io::{self, IoSlice, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use rustix::cmsg_space;
use rustix::io::retry_on_intr;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::{Deserialize, Serialize};

use crate::pool::Order;

/// How much is read at once.
const PIECE: usize = 16 << 10;

/// A word. What it means stands with those who say it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Word {
    /// It comes with a copy of the connection.
    Asked,
    Made,
    Took(String),
    Refill(Box<Order>),
    Settle(PathBuf),
    Ended,
}

/// Sends a word's line, with a copy of a descriptor.
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

/// The words as they come, with what came with them; over when the host is gone.
pub(super) struct Words<S> {
    socket: S,
    /// Read, and not yet a whole line.
    bytes: Vec<u8>,
    /// Arrived, and not yet given out with its word: the kernel delivers a descriptor with the bytes that it was
    /// sent with, or before.
    descriptors: VecDeque<OwnedFd>,
}

impl<S: AsFd> Words<S> {
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
}

impl<S: AsFd> Iterator for Words<S> {
    type Item = (Word, Option<OwnedFd>);

    fn next(&mut self) -> Option<Self::Item> {
        let end = loop {
            match self.bytes.iter().position(|byte| *byte == b'\n') {
                Some(end) => break end,
                None if self.read().ok()? => {}
                None => return None,
            }
        };
        // Both ends are one program: what cannot be read was cut off by a death.
        let word = serde_json::from_slice(self.bytes.get(..end)?).ok()?;
        self.bytes.drain(..=end);
        let with = match word {
            Word::Asked => self.descriptors.pop_front(),
            _ => None,
        };
        Some((word, with))
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
        send(&host, b"\"made\"\n", None).unwrap();
        let writer = std::thread::spawn(move || {
            send(&host, long.as_bytes(), None).unwrap();
            send(&host, b"\"asked\"\n\"ended\"\n\"cut o", Some(connection.as_fd())).unwrap();
        });
        let words: Vec<_> = Words::of(watchdog).collect();
        writer.join().unwrap();
        let shown: Vec<_> = words
            .iter()
            .map(|(word, with)| (serde_json::to_value(word).unwrap(), with.is_some()))
            .collect();
        assert_eq!(shown[0], ("made".into(), false));
        assert!(shown[1].0["took"].is_string() && !shown[1].1);
        assert_eq!(shown[2..], [("asked".into(), true), ("ended".into(), false)]);
        // The copy is all that is left of the host's end.
        drop(words);
        assert_eq!(daemon.read(&mut [0]).unwrap(), 0);
    }
}
