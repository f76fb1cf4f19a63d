//! What a folder looks like besides its entries: permissions, owner, times, access lists.
//!
//! Duty: let a folder of ours, which lies in a layer over a real one, look like it. An overlay shows the
//! attributes of the topmost folder.

use std::collections::BTreeSet;
use std::os::fd::BorrowedFd;

use runner_wire::MARK;
use rustix::fs::{
    AtFlags, Gid, Mode, Timespec, Timestamps, UTIME_OMIT, Uid, XattrFlags, fchmod, fchown,
    fgetxattr, flistxattr, fremovexattr, fsetxattr, fstat, utimensat,
};
use rustix::io::Errno;

/// Longest attribute, and longest list of their names; the kernel's own bound.
const LONGEST: usize = 64 << 10;

/// Gives a folder of ours the attributes of another.
///
/// # Errors
/// The file system refused.
pub fn copy(from: BorrowedFd<'_>, to: BorrowedFd<'_>) -> Result<(), Errno> {
    let (real, own) = (fstat(from)?, fstat(to)?);
    if (real.st_uid, real.st_gid) != (own.st_uid, own.st_gid) {
        let (uid, gid) = (Uid::from_raw(real.st_uid), Gid::from_raw(real.st_gid));
        // An ordinary caller cannot give a folder away. What is written there is applied to the real one.
        match fchown(to, Some(uid), Some(gid)) {
            Ok(()) | Err(Errno::PERM) => {}
            Err(error) => return Err(error),
        }
    }
    copy_extended(from, to);
    fchmod(to, Mode::from(real.st_mode & 0o7777))?;
    let times = Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        last_modification: Timespec {
            tv_sec: real.st_mtime,
            tv_nsec: i64::try_from(real.st_mtime_nsec).unwrap_or(0),
        },
    };
    utimensat(to, "", &times, AtFlags::EMPTY_PATH)
}

/// Access lists and the caller's own attributes. What the file system does not take is left out: the
/// permission bits are set after them.
fn copy_extended(from: BorrowedFd<'_>, to: BorrowedFd<'_>) {
    let (wanted, there) = (names(from), names(to));
    for name in there.difference(&wanted) {
        let _ = fremovexattr(to, name.as_slice());
    }
    for name in &wanted {
        let mut value = vec![0; LONGEST];
        if let Ok(length) = fgetxattr(from, name.as_slice(), &mut value) {
            value.truncate(length);
            let _ = fsetxattr(to, name.as_slice(), &value, XattrFlags::empty());
        }
    }
}

fn names(handle: BorrowedFd<'_>) -> BTreeSet<Vec<u8>> {
    let mut list = vec![0; LONGEST];
    let length = flistxattr(handle, &mut list).unwrap_or(0);
    list.truncate(length);
    let wanted = |name: &&[u8]| {
        let acl = name.starts_with(b"system.posix_acl_");
        let own = name.starts_with(b"user.") && !name.starts_with(b"user.overlay.");
        (acl || own) && *name != MARK.as_bytes()
    };
    list.split(|byte| *byte == 0).filter(wanted).map(<[u8]>::to_vec).collect()
}
