//! What has a name: the form in which it is compared and kept.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, fstat, openat, readlinkat, statat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::names::encode_bytes;
use super::trees::{Glimpse, glimpse};

/// What has a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub(crate) enum State {
    /// Nothing.
    Absent,
    /// A file.
    File {
        /// Permissions.
        mode: u32,
        /// Its length.
        size: u64,
        /// BLAKE3 of its content, if it was read.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        digest: Option<String>,
        /// Which file at which moment, if it was looked at.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stamp: Option<Stamp>,
    },
    /// A link.
    Link {
        /// To what.
        target: String,
    },
    /// A folder.
    Folder {
        /// Permissions.
        mode: u32,
        /// Which one, if it was looked at.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stamp: Option<Stamp>,
    },
    /// A folder with all that is in it, which one change made or took away as a whole.
    Tree {
        /// Permissions of the folder.
        mode: u32,
        /// A digest over everything below it; see `trees`.
        digest: String,
        /// How many entries it has.
        entries: u64,
        /// Bytes of all its files.
        bytes: u64,
        /// Which folder.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stamp: Option<Stamp>,
    },
    /// A pipe, a socket, a device.
    Other,
}

/// Which object, and when it last changed: the kernel updates that time with every change, and no program can set it back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stamp {
    device: u64,
    inode: u64,
    changed: (i64, u64),
}

impl Stamp {
    /// Of something that was seen as these numbers.
    pub(crate) fn new(device: u64, inode: u64, changed: (i64, u64)) -> Self {
        Self { device, inode, changed }
    }

    /// Which object.
    pub(crate) fn object(&self) -> (u64, u64) {
        (self.device, self.inode)
    }

    pub(super) fn of(stat: &Stat) -> Self {
        Self {
            device: stat.st_dev,
            inode: stat.st_ino,
            changed: (stat.st_ctime, stat.st_ctime_nsec),
        }
    }

    pub(super) fn is_same_object(&self, other: &Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }
}

impl State {
    /// What has this name now, without the content of a file. A link is a link.
    pub(crate) fn glance(
        folder: BorrowedFd<'_>,
        name: impl rustix::path::Arg + Copy,
    ) -> Result<Self, Errno> {
        let stat = match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Ok(Self::Absent),
            Err(error) => return Err(error),
        };
        let mode = stat.st_mode & 0o7777;
        let stamp = Some(Stamp::of(&stat));
        Ok(match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Self::File {
                mode,
                size: u64::try_from(stat.st_size).unwrap_or(0),
                digest: None,
                stamp,
            },
            FileType::Directory => Self::Folder { mode, stamp },
            FileType::Symlink => {
                let target = readlinkat(folder, name, Vec::new())?;
                Self::Link { target: encode_bytes(target.as_bytes()) }
            }
            FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Unknown => Self::Other,
        })
    }

    /// The same, with the content's digest.
    pub(super) fn look(folder: BorrowedFd<'_>, name: &OsStr) -> io::Result<Self> {
        let glanced = Self::glance(folder, name)?;
        let Self::File { .. } = glanced else { return Ok(glanced) };
        let file = open_file(folder, name)?;
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(&file)?;
        Ok(Self::of_file(&file, Some(&hasher.finalize()))?)
    }

    /// What has this name, as a whole tree if it is a folder.
    pub(crate) fn tree(folder: BorrowedFd<'_>, name: &OsStr) -> Result<Self, Errno> {
        let Self::Folder { mode, stamp } = Self::glance(folder, name)? else {
            return Self::glance(folder, name);
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let inside = openat(folder, name, flags, Mode::empty())?;
        let Glimpse { digest, entries, bytes } = glimpse(&inside)?;
        Ok(Self::Tree { mode, digest, entries, bytes, stamp })
    }

    /// An open file.
    pub(super) fn of_file(file: impl AsFd, digest: Option<&blake3::Hash>) -> Result<Self, Errno> {
        let stat = fstat(file)?;
        Ok(Self::File {
            mode: stat.st_mode & 0o7777,
            size: u64::try_from(stat.st_size).unwrap_or(0),
            digest: digest.map(|digest| digest.to_hex().to_string()),
            stamp: Some(Stamp::of(&stat)),
        })
    }

    /// Whether both are the same, as far as both know: the same content and permissions, or the very same object
    /// unchanged. Of folders the object is enough: what is in them has names of its own.
    pub(super) fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Absent, Self::Absent) => true,
            (Self::Link { target }, Self::Link { target: other }) => target == other,
            (
                Self::File { mode, size, digest, stamp },
                Self::File { mode: m, size: s, digest: d, stamp: st },
            ) => {
                let content = matches!((digest, d), (Some(one), Some(other)) if one == other);
                let untouched = matches!((stamp, st), (Some(one), Some(other)) if one == other);
                mode == m && size == s && (content || untouched)
            }
            (Self::Folder { mode, stamp }, Self::Folder { mode: m, stamp: st }) => {
                mode == m
                    && match (stamp, st) {
                        (Some(one), Some(other)) => one.is_same_object(other),
                        (Some(_) | None, _) => true,
                    }
            }
            (
                Self::Tree { mode, digest, stamp, .. },
                Self::Tree { mode: m, digest: d, stamp: st, .. },
            ) => {
                let object = |stamp: &Option<Stamp>| stamp.as_ref().map(Stamp::object);
                mode == m && digest == d && object(stamp) == object(st)
            }
            (
                Self::Absent
                | Self::Link { .. }
                | Self::File { .. }
                | Self::Folder { .. }
                | Self::Tree { .. }
                | Self::Other,
                _,
            ) => false,
        }
    }

    /// As `text` wrote it; `Other`, which is like nothing, for anything else.
    pub(super) fn of_text(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or(Self::Other)
    }

    /// As text.
    pub(super) fn text(&self) -> String {
        // Plain data with text keys: writing it as JSON cannot fail.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Device and inode of the object, if it was looked at.
    pub(crate) fn object(&self) -> Option<(u64, u64)> {
        self.stamp().map(|stamp| stamp.object())
    }

    /// Which object it was, if it was looked at.
    pub(super) fn stamp(&self) -> Option<Stamp> {
        match self {
            Self::File { stamp, .. } | Self::Folder { stamp, .. } | Self::Tree { stamp, .. } => {
                *stamp
            }
            Self::Absent | Self::Link { .. } | Self::Other => None,
        }
    }

    /// In a word or two.
    pub(super) fn words(&self) -> String {
        match self {
            Self::Absent => "nothing".to_owned(),
            Self::File { size, mode, .. } => format!("a file of {size} bytes, mode {mode:o}"),
            Self::Link { target } => format!("a link to {target}"),
            Self::Folder { mode, .. } => format!("a folder, mode {mode:o}"),
            Self::Tree { entries, .. } => format!("a folder with {entries} entries"),
            Self::Other => "a pipe, socket or device".to_owned(),
        }
    }
}

/// Opens a file for reading by its name in a folder; a link is refused, and a pipe does not block.
pub(super) fn open_file(
    folder: BorrowedFd<'_>,
    name: impl rustix::path::Arg,
) -> Result<File, Errno> {
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = openat(folder, name, flags, Mode::empty())?;
    match FileType::from_raw_mode(fstat(&file)?.st_mode) {
        FileType::RegularFile => Ok(File::from(file)),
        _ => Err(Errno::INVAL),
    }
}
