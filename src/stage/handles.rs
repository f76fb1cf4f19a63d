//! Access through directory handles: parents, facts, extended attributes, removal of whole trees.
//!
//! Duty: the few ways in which this room touches files. Every path is resolved beneath a root's handle,
//! through no symlink and into no other mount. Trust boundary: both the stage and the host's tree may
//! hold any name at any depth, and the host's tree may change at any moment.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, FileType, Gid, Mode, OFlags, ResolveFlags, Stat, StatxFlags, Uid, chmodat, chownat,
    llistxattr, lremovexattr, mkdirat, openat, openat2, readlinkat, statat, statx,
};
use rustix::io::Errno;

use super::change::{Facts, Host, Moment};
use crate::ids::Identity;
use crate::undo::trees::open_own_from;
pub(super) use crate::undo::trees::{names, remove_all};
use crate::workspace::temp::proc_path;

/// The longest path that is given to the kernel at once; its own limit is 4096 with the end mark.
const PATH_STEP: usize = 4000;
/// Names of extended attributes that one file may have, in bytes: the kernel's own limit.
const XATTR_NAMES: usize = 64 * 1024;
/// How the overlay's own attributes begin, escaped ones too.
const OVERLAY: &[u8] = b"user.overlay.";
const FOLDER: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Opens a folder below `root`, however long its path is. The empty path is the root itself.
pub(super) fn open_folder(root: impl AsFd, path: &Path) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::BENEATH
        | ResolveFlags::NO_SYMLINKS
        | ResolveFlags::NO_MAGICLINKS
        | ResolveFlags::NO_XDEV;
    let mut at = openat2(&root, ".", FOLDER, Mode::empty(), resolve)?;
    let bytes = path.as_os_str().as_bytes();
    if bytes.is_empty() {
        return Ok(at);
    }
    if bytes.len() <= PATH_STEP {
        return openat2(&root, path, FOLDER, Mode::empty(), resolve);
    }
    let mut step = PathBuf::new();
    for part in path {
        if step.as_os_str().len() + part.len() > PATH_STEP {
            at = openat2(&at, &step, FOLDER, Mode::empty(), resolve)?;
            step.clear();
        }
        step.push(part);
    }
    openat2(&at, &step, FOLDER, Mode::empty(), resolve)
}

/// Opens a folder of the stage, which is the caller's own: a folder that a command closed with its
/// permissions is opened again for the owner.
pub(super) fn open_own(root: impl AsFd, path: &Path) -> Result<OwnedFd, Errno> {
    match open_folder(&root, path) {
        Err(Errno::ACCESS) => open_own_from(open_folder(&root, Path::new(""))?, path),
        other => other,
    }
}

/// The folder of a path and the name in it.
pub(super) fn split(path: &Path) -> Option<(&Path, &OsStr)> {
    Some((path.parent()?, path.file_name()?))
}

/// Keeps the handle of the folder that was used last: changes come folder by folder.
#[derive(Debug, Default)]
pub(super) struct Parents {
    last: Option<(PathBuf, OwnedFd)>,
}

/// Whose folders are opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// The host's.
    Host,
    /// The stage's.
    Stage,
}

impl Parents {
    /// The handle of a folder.
    pub(super) fn open(
        &mut self,
        root: BorrowedFd<'_>,
        folder: &Path,
        side: Side,
    ) -> Result<BorrowedFd<'_>, Errno> {
        if self.last.as_ref().is_none_or(|(path, _)| path != folder) {
            let handle = match side {
                Side::Host => open_folder(root, folder)?,
                Side::Stage => open_own(root, folder)?,
            };
            self.last = Some((folder.to_owned(), handle));
        }
        match &self.last {
            Some((_, handle)) => Ok(handle.as_fd()),
            None => Err(Errno::NOENT),
        }
    }
}

/// The facts of a file from its status.
pub(super) fn facts(stat: &Stat) -> Facts {
    Facts {
        identity: identity(stat),
        mode: stat.st_mode & 0o7777,
        size: u64::try_from(stat.st_size).unwrap_or(0),
        links: u64::from(stat.st_nlink as u32),
        mtime: moment(stat.st_mtime, stat.st_mtime_nsec),
        ctime: moment(stat.st_ctime, stat.st_ctime_nsec),
    }
}

fn moment(seconds: i64, nanoseconds: u64) -> Moment {
    Moment { seconds, nanoseconds: u32::try_from(nanoseconds).unwrap_or(0) }
}

/// Device and inode.
pub(super) fn identity(stat: &Stat) -> Identity {
    Identity { dev: stat.st_dev, ino: stat.st_ino }
}

/// The status of a name; `None` if nothing has it.
pub(super) fn stat(folder: impl AsFd, name: &OsStr) -> Result<Option<Stat>, Errno> {
    match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(stat)),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error),
    }
}

/// What a name of the host is now.
pub(super) fn look(folder: impl AsFd, name: &OsStr) -> Result<Host, Errno> {
    let Some(stat) = stat(&folder, name)? else { return Ok(Host::Absent) };
    let facts = facts(&stat);
    Ok(match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Host::File(facts),
        FileType::Directory => Host::Folder(facts),
        FileType::Symlink => Host::Link { target: target(folder, name)?, facts },
        _ => Host::Other(facts),
    })
}

/// The target of a symlink.
pub(super) fn target(folder: impl AsFd, name: &OsStr) -> Result<OsString, Errno> {
    Ok(OsString::from_vec(readlinkat(folder, name, Vec::new())?.into_bytes()))
}

/// When a file was made, if the file system tells.
#[cfg(test)]
pub(super) fn born(folder: impl AsFd, name: &OsStr) -> Option<Moment> {
    let found = statx(folder, name, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::BTIME).ok()?;
    let mask = StatxFlags::from_bits_retain(found.stx_mask);
    mask.contains(StatxFlags::BTIME)
        .then_some(Moment { seconds: found.stx_btime.tv_sec, nanoseconds: found.stx_btime.tv_nsec })
}

/// The mount that a folder is in: a rename between two mounts fails even on one file system.
pub(super) fn mount_of(folder: impl AsFd) -> Result<(u64, u64), Errno> {
    let found = statx(&folder, "", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID)?;
    let device = rustix::fs::fstat(&folder)?.st_dev;
    Ok((device, found.stx_mnt_id))
}

/// Makes an entry of the stage fit for the host: no attribute of the overlay, no setuid or setgid bit on
/// a file, the owner that its place asks for. Attributes that a command set in the overlay's name appear
/// escaped in the stage; they go with the rest.
pub(super) fn clean(
    folder: BorrowedFd<'_>,
    name: &OsStr,
    stat: &Stat,
    mode: Option<u32>,
    owner: Option<(u32, u32)>,
) -> Result<(), Errno> {
    let kind = FileType::from_raw_mode(stat.st_mode);
    let mut path = OsString::from(proc_path(&folder));
    path.push("/");
    path.push(name);
    if kind != FileType::Symlink {
        let names = overlay_names(&path)?;
        let old = stat.st_mode & 0o7777;
        let wanted = match (kind, mode) {
            (FileType::Directory, mode) => mode.unwrap_or(old) & 0o3777,
            (_, mode) => mode.unwrap_or(old) & 0o777,
        };
        if !names.is_empty() && old & 0o600 != 0o600 {
            chmodat(folder, name, Mode::from_raw_mode(wanted | 0o600), AtFlags::empty())?;
        }
        for name in &names {
            match lremovexattr(&path, OsStr::from_bytes(name)) {
                Ok(()) | Err(Errno::NODATA) => {}
                Err(error) => return Err(error),
            }
        }
        if wanted != old || (!names.is_empty() && old & 0o600 != 0o600) {
            chmodat(folder, name, Mode::from_raw_mode(wanted), AtFlags::empty())?;
        }
    }
    if let Some((uid, gid)) = owner.filter(|owner| *owner != (stat.st_uid, stat.st_gid)) {
        let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
        chownat(folder, name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)?;
    }
    Ok(())
}

/// The overlay's attributes on something. A file system without attributes has none.
fn overlay_names(path: &OsStr) -> Result<Vec<Vec<u8>>, Errno> {
    let mut buffer = [0_u8; 512];
    let list = match llistxattr(path, &mut buffer[..]) {
        Ok(length) => buffer[..length].to_vec(),
        Err(Errno::RANGE) => {
            let mut large = vec![0_u8; XATTR_NAMES];
            let length = llistxattr(path, &mut large[..])?;
            large.truncate(length);
            large
        }
        Err(Errno::OPNOTSUPP) => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let names = list.split(|byte| *byte == 0).filter(|name| name.starts_with(OVERLAY));
    Ok(names.map(<[u8]>::to_vec).collect())
}

/// The owner that new entries of a host folder get: a caller who is root writes in other people's
/// folders. `None` for everybody else: what they make is theirs.
pub(super) fn owner_of(folder: impl AsFd) -> Result<Option<(u32, u32)>, Errno> {
    if !rustix::process::geteuid().is_root() {
        return Ok(None);
    }
    let stat = rustix::fs::fstat(folder)?;
    Ok(Some((stat.st_uid, stat.st_gid)))
}

/// Makes a folder of our own if it is missing, and opens it.
pub(super) fn own_folder(at: impl AsFd, name: &str) -> Result<OwnedFd, Errno> {
    match mkdirat(&at, name, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(error),
    }
    openat(at, name, FOLDER, Mode::empty())
}
