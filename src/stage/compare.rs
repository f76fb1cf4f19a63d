//! Reads both sides of a change, and compares them for people.

use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use super::change::{Change, Host, What};
use super::diff::{Content, Line, MAX_CONTENT, Side, diff};
use super::merged::Merged;

/// How long lines are compared before the comparison becomes coarse.
const PATIENCE: Duration = Duration::from_secs(2);

/// The content of a file as it was read.
enum Read {
    Whole(Vec<u8>),
    Unread(u64),
}

impl Read {
    fn of(bytes: Option<Vec<u8>>, size: u64) -> Self {
        bytes.map_or(Self::Unread(size), Self::Whole)
    }

    fn content(&self) -> Content<'_> {
        match self {
            Self::Whole(bytes) => Content::Bytes(bytes),
            Self::Unread(size) => Content::TooLong { size: *size },
        }
    }
}

/// What differs at each of these changes, in their order. `root` is the path of the host's root.
#[must_use]
pub fn compare(
    changes: &[Change],
    root: &Path,
    host: BorrowedFd<'_>,
    upper: BorrowedFd<'_>,
) -> Vec<Vec<Line>> {
    let merged = Merged::new(host, upper, root, changes);
    changes.iter().map(|change| one(change, &merged)).collect()
}

fn one(change: &Change, merged: &Merged<'_>) -> Vec<Line> {
    let old = match &change.host {
        Host::File(facts) => {
            Read::of(merged.read_host(&change.path, Some(*facts), MAX_CONTENT), facts.size)
        }
        _ => Read::Unread(0),
    };
    let before = match &change.host {
        Host::Absent => Side::Absent,
        Host::File(facts) => Side::File { content: old.content(), mode: facts.mode },
        Host::Folder(facts) => Side::Folder { mode: facts.mode },
        Host::Link { target, .. } => Side::Link { target: target.as_bytes() },
        Host::Other(_) => Side::Special,
    };
    let new = match &change.what {
        What::File(staged) => Read::of(merged.read_staged(change, MAX_CONTENT), staged.size),
        _ => Read::Unread(0),
    };
    let after = match &change.what {
        What::File(staged) => Side::File { content: new.content(), mode: staged.mode },
        What::Link { target } => Side::Link { target: target.as_bytes() },
        What::Folder { mode } => Side::Folder { mode: *mode },
        What::Removed => Side::Absent,
        What::Special => Side::Special,
    };
    diff(change.path.as_os_str().as_bytes(), before, after, Instant::now() + PATIENCE)
}
