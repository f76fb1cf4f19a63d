//! What holders are told and answer, and how descriptors travel.

use std::collections::BTreeMap;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use runner_wire::{Bytes, Recipe};
use rustix::cmsg_space;
use rustix::io::retry_on_intr;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use rustix::process::Pid;
use serde::{Deserialize, Serialize};

use crate::engine::embedded::failure::LaunchError;
use crate::sys;

/// What a holder is to make, and how long it waits.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Order {
    /// Where its socket is made.
    pub folder: Bytes,
    /// The sandbox's own label.
    pub label: String,
    /// All of its labels.
    pub labels: BTreeMap<String, String>,
    /// How long it waits, in milliseconds. The guest counts too.
    pub wait_ms: u64,
    /// Where the guest's executable is placed.
    pub cache: Bytes,
    /// The sandbox.
    pub recipe: Recipe,
}

/// What a holder answers to its order.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub(super) enum Answer {
    /// The guest runs, and its socket is there.
    Waits,
    /// What the launcher said before it ended.
    Launcher(Bytes),
    /// Why the holder could not do its part.
    Failed(String),
}

/// A client wants the wire. The answer is the same byte, with two descriptors: the wire and the launcher.
pub(super) const TAKE: u8 = b't';

/// A client wants an end. The answer is the same byte, when the sandbox is gone.
pub(super) const END: u8 = b'e';

/// How many descriptors a claim gets.
const HANDED: usize = 2;

/// Sends the wire and what ends the launcher to a client.
pub(super) fn hand_over(
    client: BorrowedFd<'_>,
    wire: BorrowedFd<'_>,
    launcher: BorrowedFd<'_>,
) -> io::Result<()> {
    let handed = [wire, launcher];
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(HANDED))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&handed));
    let pieces = [IoSlice::new(&[TAKE])];
    let sent = retry_on_intr(|| sendmsg(client, &pieces, &mut control, SendFlags::NOSIGNAL))?;
    if sent == 1 { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
}

/// Receives the wire and what ends the launcher; anything else is an error, and is closed.
pub(super) fn receive(socket: BorrowedFd<'_>) -> io::Result<(OwnedFd, OwnedFd)> {
    let mut word = [0];
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(HANDED))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = retry_on_intr(|| {
        let mut pieces = [IoSliceMut::new(&mut word)];
        let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
        recvmsg(socket, &mut pieces, &mut control, flags)
    })?;
    let mut handed = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
        _ => None,
    });
    let mut handed = handed.next().into_iter().flatten();
    let (wire, launcher, more) = (handed.next(), handed.next(), handed.next());
    match (wire, launcher, more, received.bytes, word) {
        (Some(wire), Some(launcher), None, 1, [TAKE]) => Ok((wire, launcher)),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// The process at the other end of a socket, if it is this user's and this process can see it. One that it cannot see is
/// in another container, whatever its user is called there.
pub(super) fn peer(socket: impl AsFd) -> Result<Pid, LaunchError> {
    let found = sys::peer(socket).map_err(|_| LaunchError::ForeignPeer)?;
    let ours = found.uid == rustix::process::geteuid().as_raw();
    let pid = found.pid.filter(|_| ours).and_then(|pid| Pid::from_raw(pid.cast_signed()));
    pid.ok_or(LaunchError::ForeignPeer)
}
