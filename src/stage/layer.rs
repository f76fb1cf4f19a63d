//! What one entry of an overlay's upper layer means.
//!
//! Duty: read an entry of a stage, and open its folders; tell whether a staged file was copied up
//! from a file of the host. Non-goals: walking, comparing content. Trust boundary: names, modes and
//! content are the adversary's. Attributes named `user.overlay.*` are the kernel's: with the mount
//! option `userxattr` it stores what a command sets as `user.overlay.overlay.*`. An attribute that
//! the kernel does not write to an upper layer with our options means that something else wrote the
//! layer. That is an error.
//!
//! | in the layer | meaning |
//! | --- | --- |
//! | character device 0:0 | whiteout: the name is gone |
//! | folder with `opaque` = `y` | hides everything that the host has below it |
//! | `origin` | a handle of the lower file that this one was copied from |
//! | `impure`, `uuid`, `nlink`, `protattr` | the kernel's own notes, without meaning here |
//! | `whiteout`, `opaque` = `x` | only read in lower layers: refused |
//! | `metacopy`, `redirect`, others | need options that we do not mount with: refused |

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, Statx, StatxFlags, chmod, fchmod, fstat, lgetxattr,
    llistxattr, makedev, openat, readlinkat, statx,
};
use rustix::io::Errno;

use super::access;
use super::change::{Facts, Host, Moment, Origin, Staged};
use crate::ids::Identity;
use crate::sys::{FileHandle, file_handle};

/// The kernel's attributes in a layer that is mounted with `userxattr`.
const PREFIX: &[u8] = b"user.overlay.";

/// What a command set itself, as the kernel stores it.
const ESCAPED: &[u8] = b"user.overlay.overlay.";

/// File capabilities, which act like setuid.
const CAPABILITY: &[u8] = b"security.capability";

/// Access lists, of an entry and of what is made in a folder.
const LISTS: [&str; 2] = [access::ACCESS, access::DEFAULT];

/// The kernel's notes that change nothing in what an entry means.
const NOTES: &[&[u8]] = &[b"impure", b"uuid", b"nlink", b"protattr"];

/// Longest list of attribute names that is read; the kernel's own bound (`XATTR_LIST_MAX`).
const MAX_LIST: usize = 64 * 1024;

/// Longest value of an attribute of ours: the header of an origin and the longest file handle.
const MAX_VALUE: usize = 21 + 128;

/// Bits of a mode that `chmod` sets.
pub const MODE_BITS: u32 = 0o7777;

/// Why an entry cannot be read.
#[derive(Debug, thiserror::Error, Clone, PartialEq, Eq)]
pub enum EntryError {
    /// The kernel refused.
    #[error("{0}")]
    Refused(#[from] Errno),
    /// An attribute that an upper layer of ours does not have.
    #[error("attribute `{0}` is not one that the kernel writes to a stage")]
    Attribute(String),
}

/// One entry of a stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// The name is gone.
    Whiteout,
    /// A folder.
    Folder {
        /// Permission bits.
        mode: u32,
        /// Whether what the host has below it is hidden.
        view: View,
        /// Whether the overlay made it for one of the host.
        copied: bool,
        /// Whether it has an access list.
        listed: bool,
    },
    /// A regular file. Its origin is not compared with the host yet.
    File(Staged, Attributes),
    /// A symlink with its target.
    Link(OsString),
    /// A pipe, a socket, a device, or a file with capabilities.
    Special {
        /// Its kind and permission bits, as `st_mode` has them.
        mode: u32,
        /// The device that it stands for.
        device: u64,
    },
}

/// What a staged folder shows of the host's folder under the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// Both, the stage first.
    Merged,
    /// Only the stage.
    Opaque,
}

/// What the kernel noted about an entry.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Attributes {
    opaque: bool,
    origin: Option<Vec<u8>>,
    capability: bool,
    listed: bool,
}

/// Reads the entry `name` of a stage's folder.
///
/// # Errors
/// It cannot be read, or has an attribute that is not known.
pub fn read(folder: BorrowedFd<'_>, name: &OsStr) -> Result<Entry, EntryError> {
    let stat = look(folder, name)?;
    let mode = u32::from(stat.stx_mode);
    let device = makedev(stat.stx_rdev_major, stat.stx_rdev_minor);
    match FileType::from_raw_mode(mode) {
        FileType::CharacterDevice if device == 0 => Ok(Entry::Whiteout),
        FileType::Directory => {
            let found = match attributes(folder, name) {
                // A folder of mode 000 shows its attributes to its owner once it is opened.
                Err(EntryError::Refused(Errno::ACCESS)) => {
                    let _opened = open_folder(folder, name)?;
                    attributes(folder, name)?
                }
                found => found?,
            };
            let view = if found.opaque { View::Opaque } else { View::Merged };
            let copied = found.origin.is_some();
            Ok(Entry::Folder { mode: mode & MODE_BITS, view, copied, listed: found.listed })
        }
        FileType::RegularFile => {
            let attributes = attributes(folder, name)?;
            if attributes.capability {
                return Ok(Entry::Special { mode, device });
            }
            Ok(Entry::File(staged(&stat), attributes))
        }
        FileType::Symlink => Ok(Entry::Link(target(folder, name)?)),
        _ => Ok(Entry::Special { mode, device }),
    }
}

/// What the host has under `name` in `folder`.
///
/// # Errors
/// The kernel refused to tell.
pub fn host(folder: BorrowedFd<'_>, name: &OsStr) -> Result<Host, Errno> {
    let stat = match look(folder, name) {
        Ok(stat) => stat,
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(Host::Absent),
        Err(error) => return Err(error),
    };
    let facts = facts(&stat);
    Ok(match FileType::from_raw_mode(u32::from(stat.stx_mode)) {
        FileType::RegularFile => Host::File(facts),
        FileType::Directory => Host::Folder(facts),
        FileType::Symlink => match target(folder, name) {
            Ok(target) => Host::Link { target, facts },
            Err(Errno::NOENT | Errno::INVAL) => Host::Absent,
            Err(error) => return Err(error),
        },
        _ => Host::Other(facts),
    })
}

/// Whether a special entry of the stage is the one that the host has: kind, device, permission
/// bits.
#[must_use]
pub fn is_same_special(folder: BorrowedFd<'_>, name: &OsStr, mode: u32, device: u64) -> bool {
    look(folder, name).is_ok_and(|stat| {
        u32::from(stat.stx_mode) == mode
            && makedev(stat.stx_rdev_major, stat.stx_rdev_minor) == device
    })
}

fn look(folder: BorrowedFd<'_>, name: &OsStr) -> Result<Statx, Errno> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
    statx(folder, name, flags, StatxFlags::BASIC_STATS | StatxFlags::BTIME)
}

fn target(folder: BorrowedFd<'_>, name: &OsStr) -> Result<OsString, Errno> {
    let target = readlinkat(folder, name, Vec::new())?;
    Ok(OsStr::from_bytes(target.as_bytes()).to_owned())
}

fn moment(time: &rustix::fs::StatxTimestamp) -> Moment {
    Moment { seconds: time.tv_sec, nanoseconds: time.tv_nsec }
}

fn identity(stat: &Statx) -> Identity {
    Identity { dev: makedev(stat.stx_dev_major, stat.stx_dev_minor), ino: stat.stx_ino }
}

fn facts(stat: &Statx) -> Facts {
    Facts {
        identity: identity(stat),
        mode: u32::from(stat.stx_mode) & MODE_BITS,
        size: stat.stx_size,
        links: u64::from(stat.stx_nlink),
        mtime: moment(&stat.stx_mtime),
        ctime: moment(&stat.stx_ctime),
    }
}

fn staged(stat: &Statx) -> Staged {
    let told = StatxFlags::from_bits_retain(stat.stx_mask).contains(StatxFlags::BTIME);
    Staged {
        identity: identity(stat),
        mode: u32::from(stat.stx_mode) & MODE_BITS,
        size: stat.stx_size,
        links: u64::from(stat.stx_nlink),
        born: told.then(|| moment(&stat.stx_btime)),
        origin: Origin::New,
    }
}

/// A path to an entry through a handle. Only the last part is a name, and `l…xattr` does not follow
/// it.
pub(super) fn through(folder: BorrowedFd<'_>, name: &OsStr) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd())).join(name)
}

/// Reads the kernel's notes on a file or folder.
fn attributes(folder: BorrowedFd<'_>, name: &OsStr) -> Result<Attributes, EntryError> {
    let path = through(folder, name);
    let mut list = [0u8; 512];
    let mut long = Vec::new();
    let names = match llistxattr(&path, &mut list) {
        Ok(length) => &list[..length],
        Err(Errno::RANGE) => {
            long.resize(MAX_LIST, 0);
            let length = llistxattr(&path, &mut long[..])?;
            &long[..length]
        }
        // A file system without attributes: there are none.
        Err(Errno::NOTSUP) => &[],
        Err(error) => return Err(error.into()),
    };
    let mut found = Attributes::default();
    for attribute in names.split(|byte| *byte == 0) {
        if attribute == CAPABILITY {
            found.capability = true;
        }
        found.listed |= LISTS.iter().any(|list| list.as_bytes() == attribute);
        if attribute.starts_with(ESCAPED) {
            continue;
        }
        let Some(note) = attribute.strip_prefix(PREFIX) else { continue };
        let unknown = || EntryError::Attribute(String::from_utf8_lossy(attribute).into_owned());
        match note {
            b"opaque" => match value(&path, attribute)?.as_slice() {
                b"y" => found.opaque = true,
                _ => return Err(unknown()),
            },
            // Unreadable, also for lack of permission: known to be copied up, not known from where.
            b"origin" => found.origin = Some(value(&path, attribute).unwrap_or_default()),
            note if NOTES.contains(&note) => {}
            _ => return Err(unknown()),
        }
    }
    Ok(found)
}

fn value(path: &std::path::Path, name: &[u8]) -> Result<Vec<u8>, Errno> {
    let mut value = [0u8; MAX_VALUE];
    let length = lgetxattr(path, OsStr::from_bytes(name), &mut value)?;
    Ok(value[..length].to_vec())
}

impl Attributes {
    /// Whether the entry has an access list.
    #[must_use]
    pub fn is_listed(&self) -> bool {
        self.listed
    }

    /// The handle of the file that a staged one was copied from, if it is known.
    #[must_use]
    pub fn copied_from(&self) -> Option<FileHandle> {
        noted_handle(self.origin.as_ref()?)
    }

    /// Where a staged file came from, given what the host has under its name now.
    #[must_use]
    pub fn origin(&self, host: Option<BorrowedFd<'_>>, name: &OsStr) -> Origin {
        let Some(noted) = &self.origin else { return Origin::New };
        let Some(noted) = noted_handle(noted) else { return Origin::Unknown };
        match host.map(|host| file_handle(host, name)) {
            Some(Ok(present)) if present == noted => Origin::Host,
            _ => Origin::Unknown,
        }
    }
}

/// The handle in an `origin`: `struct ovl_fb` is version 0, magic 0xfb, its own length, flags, the
/// kind of the handle, 16 bytes of the file system's UUID (zero if overlayfs does without), and the
/// handle.
#[must_use]
pub fn noted_handle(origin: &[u8]) -> Option<FileHandle> {
    let [0, 0xfb, length, _flags, kind, rest @ ..] = origin else { return None };
    let bytes = rest.get(16..)?;
    let whole = usize::from(*length) == origin.len() && !bytes.is_empty();
    whole.then(|| FileHandle { kind: i32::from(*kind), bytes: bytes.to_vec() })
}

/// An open folder of a stage. If its mode kept its owner out, it gets that mode back when this is
/// dropped.
#[derive(Debug)]
pub struct StageFolder {
    handle: OwnedFd,
    closed: Option<u32>,
}

impl AsFd for StageFolder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }
}

impl Drop for StageFolder {
    fn drop(&mut self) {
        if let Some(mode) = self.closed {
            // Best effort: the folder is ours, and the mode that counts is already read.
            let _ = fchmod(&self.handle, Mode::from_raw_mode(mode));
        }
    }
}

/// Opens the folder `name` of a stage, also one whose mode keeps its owner out.
///
/// # Errors
/// It is not a folder, or belongs to somebody else.
pub fn open_folder(folder: BorrowedFd<'_>, name: &OsStr) -> Result<StageFolder, Errno> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let seen = openat(folder, name, OFlags::PATH | flags, Mode::empty())?;
    let mode = fstat(&seen)?.st_mode & MODE_BITS;
    let closed = (mode & 0o700 != 0o700 && !rustix::process::geteuid().is_root()).then_some(mode);
    if closed.is_some() {
        // `fchmod` does not take a handle that only names; the magic link leads to that very
        // folder.
        let path = format!("/proc/self/fd/{}", seen.as_raw_fd());
        chmod(path, Mode::from_raw_mode(mode | 0o700))?;
    }
    let opened = openat(&seen, ".", OFlags::RDONLY | flags, Mode::empty());
    match opened {
        Ok(handle) => Ok(StageFolder { handle, closed }),
        Err(error) => {
            if closed.is_some() {
                let path = format!("/proc/self/fd/{}", seen.as_raw_fd());
                let _ = chmod(path, Mode::from_raw_mode(mode));
            }
            Err(error)
        }
    }
}

#[cfg(test)]
#[path = "layer_tests.rs"]
mod tests;
