//! Whether the host changed something since a call began, so that the call's change must not replace it.
//!
//! | change | applies if |
//! | --- | --- |
//! | a file that the overlay copied up | the present file is its origin, and its change time is before the staged file's birth |
//! | a file that replaces another, a removal | the present change time is before the claim |
//! | a file or folder that the overlay copied up, and the host has no more | never |
//! | something new | nothing has the name (`RENAME_NOREPLACE` makes sure) |
//!
//! Equal times and missing facts are conflicts. What the host has already is no change. Of folders only
//! the object counts: their times change with every name in them.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::AsFd;

use rustix::fs::{Mode, OFlags, openat};

use super::change::{Change, Facts, Held, Host, Moment, Origin, What, Why};

/// Bytes that are compared at once.
const PIECE: usize = 64 * 1024;

/// What is to be done about a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Finding {
    /// It can be applied.
    Applies,
    /// The host has it so already.
    NoChange,
    /// The host changed it.
    Conflict(&'static str),
}

/// Compares what the host has now with what the change was made from. Content is not looked at.
pub(super) fn find(change: &Change, now: &Host, claim: Option<Moment>) -> Finding {
    use Finding::{Applies, Conflict, NoChange};
    match (&change.what, &change.host, now) {
        (What::Special, ..) => Conflict("it is no ordinary file or folder"),
        (_, _, Host::Other(_)) => Conflict("the host has a pipe, a socket or a device there"),
        (What::Removed, _, Host::Absent) => NoChange,
        (What::Link { target }, _, Host::Link { target: has, .. }) if target == has => NoChange,
        (What::Folder { .. }, Host::Absent, Host::Folder(_)) => NoChange,
        (What::Folder { mode }, Host::Folder(_), Host::Folder(now))
            if now.mode & 0o1777 == mode & 0o1777 =>
        {
            NoChange
        }
        (_, Host::Absent, Host::Absent) if change.lost => Conflict("the host removed it"),
        (_, Host::Absent, Host::Absent) => Applies,
        (_, Host::Absent, _) => Conflict("the host made something of that name"),
        (_, _, Host::Absent) => Conflict("the host removed it"),
        (_, Host::Folder(was), Host::Folder(now)) => match was.identity == now.identity {
            true => Applies,
            false => Conflict("the host replaced the folder"),
        },
        (what, Host::File(was), Host::File(now)) => {
            if was.identity != now.identity {
                return Conflict("the host replaced it");
            }
            match what {
                What::File(staged) if staged.origin == Origin::Host => {
                    before(now, staged.born, "the host changed it")
                }
                _ => before(now, claim, "the host changed it"),
            }
        }
        (_, Host::Link { facts: was, target }, Host::Link { facts: now, target: has }) => {
            if was.identity != now.identity || target != has {
                return Conflict("the host replaced the symlink");
            }
            before(now, claim, "the host changed it")
        }
        _ => Conflict("the host has something of another kind there"),
    }
}

fn before(now: &Facts, moment: Option<Moment>, why: &'static str) -> Finding {
    match moment {
        Some(moment) if now.ctime < moment => Finding::Applies,
        Some(_) => Finding::Conflict(why),
        None => Finding::Conflict("it is not known when it changed"),
    }
}

/// A conflict as it is told.
pub(super) fn held(reason: impl Into<String>) -> Held {
    Held {
        why: Why::Conflict,
        reason: reason.into(),
        rule: "built-in/conflict".to_owned(),
        next: "compare both with `runner stage diff`, then apply it by name or discard it"
            .to_owned(),
    }
}

/// Whether two files have the same content.
pub(super) fn same_content(one: impl AsFd, other: impl AsFd) -> io::Result<bool> {
    let open = |file: &dyn Fn() -> rustix::io::Result<std::os::fd::OwnedFd>| file().map(File::from);
    let mut one = open(&|| rustix::io::fcntl_dupfd_cloexec(&one, 3))?;
    let mut other = open(&|| rustix::io::fcntl_dupfd_cloexec(&other, 3))?;
    let (mut first, mut second) = (vec![0; PIECE], vec![0; PIECE]);
    loop {
        let length = fill(&mut one, &mut first)?;
        if length != fill(&mut other, &mut second)? || first[..length] != second[..length] {
            return Ok(false);
        }
        if length == 0 {
            return Ok(true);
        }
    }
}

fn fill(file: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(length) => filled += length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// Opens a regular file for reading; a symlink is none, and a pipe blocks nobody.
pub(super) fn open_file(folder: impl AsFd, name: &std::ffi::OsStr) -> io::Result<File> {
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(openat(folder, name, flags, Mode::empty())?);
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::ErrorKind::InvalidInput.into()),
    }
}
