//! The staged objects, before git reads them.
//!
//! Git would follow symlinks, wait for pipes, and take further folders from `info/alternates`.

use std::ffi::CStr;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, openat, statat};

use super::layers::{Seen, look};
use super::refs::RefsError;

/// Most staged objects.
const MAX_OBJECTS: usize = 2_000_000;

/// Checks the staged objects before git reads them, and opens their folder.
pub(super) fn staged_objects(staged: BorrowedFd<'_>) -> Result<Option<OwnedFd>, RefsError> {
    let objects = match look(staged, b"objects")? {
        Seen::Through | Seen::Hidden => return Ok(None),
        Seen::File(_) => return Err(RefsError::Odd("objects")),
        Seen::Folder(objects, _) => objects,
    };
    let mut left = MAX_OBJECTS;
    for top in Dir::read_from(&objects).map_err(RefsError::Read)? {
        let top = top.map_err(RefsError::Read)?;
        let name = top.file_name();
        if matches!(name.to_bytes(), b"." | b"..") || !is_folder(objects.as_fd(), name)? {
            continue;
        }
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::DIRECTORY;
        let folder = openat(&objects, name, flags, Mode::empty()).map_err(RefsError::Read)?;
        for entry in Dir::read_from(&folder).map_err(RefsError::Read)? {
            let entry = entry.map_err(RefsError::Read)?;
            left = left.checked_sub(1).ok_or(RefsError::TooMany)?;
            is_folder(folder.as_fd(), entry.file_name())?;
            let file = entry.file_name().to_bytes();
            if name.to_bytes() == b"info" && matches!(file, b"alternates" | b"http-alternates") {
                return Err(RefsError::Odd("objects that lead elsewhere"));
            }
        }
    }
    Ok(Some(objects))
}

/// Whether it is a folder; a whiteout and a file are none, and anything else is refused.
fn is_folder(at: BorrowedFd<'_>, name: &CStr) -> Result<bool, RefsError> {
    let stat = statat(at, name, AtFlags::SYMLINK_NOFOLLOW).map_err(RefsError::Read)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => Ok(true),
        FileType::RegularFile => Ok(false),
        FileType::CharacterDevice if stat.st_rdev == 0 => Ok(false),
        _ => Err(RefsError::Odd("an object that is no file")),
    }
}
