//! Copies of staged files, for a root that is in another mount than the stage.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, chownat, fchmod, fchown, ioctl_ficlone, openat, symlinkat,
    unlinkat,
};
use rustix::fs::{Gid, Uid};
use rustix::io::Errno;

use super::super::conflict::open_file;
use super::super::handles;
use super::act::Slot;

/// Copies a staged file or symlink to a name of ours beside its target: by reference where the file system
/// can, else by content. What an earlier run left under that name goes.
pub(super) fn copy(staged: &Slot, to: &Slot) -> io::Result<()> {
    match unlinkat(&to.folder, &to.name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(error) => return Err(error.into()),
    }
    let Some(found) = handles::stat(&staged.folder, &staged.name)? else {
        return Err(Errno::NOENT.into());
    };
    let (uid, gid) = (Uid::from_raw(found.st_uid), Gid::from_raw(found.st_gid));
    let root = rustix::process::geteuid().is_root();
    match FileType::from_raw_mode(found.st_mode) {
        FileType::Symlink => {
            let target = handles::target(&staged.folder, &staged.name)?;
            symlinkat(&target, &to.folder, &to.name)?;
            if root {
                let flags = AtFlags::SYMLINK_NOFOLLOW;
                chownat(&to.folder, &to.name, Some(uid), Some(gid), flags)?;
            }
            Ok(())
        }
        FileType::RegularFile => {
            let mut from = readable(staged.at(), staged, found.st_mode)?;
            let flags =
                OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let mut file =
                File::from(openat(&to.folder, &to.name, flags, Mode::RUSR | Mode::WUSR)?);
            if ioctl_ficlone(&file, &from).is_err() {
                // The standard library uses `copy_file_range` where it can.
                io::copy(&mut from, &mut file)?;
            }
            if root {
                fchown(file.as_fd(), Some(uid), Some(gid))?;
            }
            fchmod(&file, Mode::from_raw_mode(found.st_mode & 0o777))?;
            let time = |seconds, nanoseconds: u64| rustix::fs::Timespec {
                tv_sec: seconds,
                tv_nsec: nanoseconds.cast_signed(),
            };
            let times = rustix::fs::Timestamps {
                last_access: time(found.st_atime, found.st_atime_nsec),
                last_modification: time(found.st_mtime, found.st_mtime_nsec),
            };
            Ok(rustix::fs::futimens(&file, &times)?)
        }
        _ => Err(Errno::INVAL.into()),
    }
}

/// Opens a staged file whose owner may have taken the right to read it from himself.
fn readable(folder: BorrowedFd<'_>, staged: &Slot, mode: u32) -> io::Result<File> {
    match open_file(folder, &staged.name) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            let open = Mode::from_raw_mode((mode & 0o777) | 0o400);
            rustix::fs::chmodat(folder, &staged.name, open, AtFlags::empty())?;
            let file = open_file(folder, &staged.name)?;
            fchmod(&file, Mode::from_raw_mode(mode & 0o777))?;
            Ok(file)
        }
        file => file,
    }
}
