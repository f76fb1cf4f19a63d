//! Whole trees that one change made: what they are now, and how they go.
//!
//! Duty: a digest over a tree that changes with every change below it, without reading contents; removal
//! of trees of any depth. Trust boundary: names and depth are the adversary's.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;

use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, chmod, fstat, openat, readlinkat, renameat, statat,
    unlinkat,
};
use rustix::io::Errno;

use crate::workspace::temp::{proc_path, temp_name};

/// How deep a tree may be that is treated as one: a handle is open for each level.
pub(crate) const DEPTH_MAX: usize = 128;
const FOLDER: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// A tree as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Glimpse {
    pub digest: String,
    pub entries: u64,
    pub bytes: u64,
}

/// Looks at everything below a folder: names, kinds, permissions, inodes, lengths, change times, targets.
/// The kernel moves a change time with every change, so an equal digest means an untouched tree. The
/// folder's own change time is left out: it moves when the tree is renamed as a whole.
pub(super) fn glimpse(folder: impl AsFd) -> Result<Glimpse, Errno> {
    let mut hasher = blake3::Hasher::new();
    let (mut entries, mut bytes) = (0, 0_u64);
    let top = openat(folder, ".", FOLDER, Mode::empty())?;
    let mut levels = vec![sorted(top)?];
    while let Some((handle, waiting)) = levels.last_mut() {
        let Some(name) = waiting.pop() else {
            hasher.update(b"\0up\0");
            levels.pop();
            continue;
        };
        entries += 1;
        let stat = statat(&*handle, &name, AtFlags::SYMLINK_NOFOLLOW)?;
        hasher.update(name.as_bytes());
        hasher.update(b"\0");
        for number in
            [u64::from(stat.st_mode), stat.st_dev, stat.st_ino, stat.st_size.cast_unsigned()]
        {
            hasher.update(&number.to_le_bytes());
        }
        hasher.update(&stat.st_ctime.to_le_bytes());
        hasher.update(&stat.st_ctime_nsec.to_le_bytes());
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Symlink => {
                hasher.update(readlinkat(&*handle, &name, Vec::new())?.as_bytes());
                hasher.update(b"\0");
            }
            FileType::Directory => {
                let inside = openat(&*handle, &name, FOLDER, Mode::empty())?;
                if levels.len() >= DEPTH_MAX {
                    return Err(Errno::NAMETOOLONG);
                }
                levels.push(sorted(inside)?);
            }
            _ => bytes = bytes.saturating_add(stat.st_size.cast_unsigned()),
        }
    }
    Ok(Glimpse { digest: hasher.finalize().to_hex().to_string(), entries, bytes })
}

fn sorted(folder: OwnedFd) -> Result<(OwnedFd, Vec<OsString>), Errno> {
    let mut found = names(&folder)?;
    found.sort_unstable_by(|one, other| other.cmp(one));
    Ok((folder, found))
}

/// Opens a folder of the caller's own; one that is closed by its permissions is opened for the owner.
fn open_own(at: impl AsFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    let found = openat(&at, name, FOLDER, Mode::empty());
    let closed = match &found {
        Err(Errno::ACCESS) => true,
        Ok(handle) => fstat(handle)?.st_mode & 0o700 != 0o700,
        Err(_) => false,
    };
    if !closed {
        return found;
    }
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let handle = openat(&at, name, flags, Mode::empty())?;
    let mode = fstat(&handle)?.st_mode & 0o7777;
    chmod(proc_path(&handle), Mode::from_raw_mode(mode | 0o700))?;
    openat(at, name, FOLDER, Mode::empty())
}

/// The same for a path below a folder.
pub(crate) fn open_own_from(mut at: OwnedFd, path: &Path) -> Result<OwnedFd, Errno> {
    for part in path {
        at = open_own(&at, part)?;
    }
    Ok(at)
}

/// The names in a folder.
pub(crate) fn names(folder: impl AsFd) -> Result<Vec<OsString>, Errno> {
    let mut found = Vec::new();
    for entry in Dir::read_from(folder)? {
        let name = entry?.file_name().to_bytes().to_vec();
        if name != b"." && name != b".." {
            found.push(OsString::from_vec(name));
        }
    }
    Ok(found)
}

/// Removes a name and all below it, whatever the depth: folders are moved up beside the first one before
/// they are emptied, so that one handle is open at a time. Only for folders that are the caller's own.
pub(crate) fn remove_all(folder: impl AsFd, name: &OsStr) -> Result<(), Errno> {
    match unlinkat(&folder, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => return Ok(()),
        Err(Errno::ISDIR | Errno::PERM) => {}
        Err(error) => return Err(error),
    }
    let mut waiting = vec![name.to_owned()];
    while let Some(next) = waiting.pop() {
        let inside = open_own(&folder, &next)?;
        for entry in names(&inside)? {
            match unlinkat(&inside, &entry, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(Errno::ISDIR | Errno::PERM) => {
                    if unlinkat(&inside, &entry, AtFlags::REMOVEDIR).is_ok() {
                        continue;
                    }
                    // A folder can be moved only if its owner may write in it.
                    drop(open_own(&inside, &entry)?);
                    let up = OsString::from(temp_name()?);
                    renameat(&inside, &entry, &folder, &up)?;
                    waiting.push(up);
                }
                Err(error) => return Err(error),
            }
        }
        unlinkat(&folder, &next, AtFlags::REMOVEDIR)?;
    }
    Ok(())
}
