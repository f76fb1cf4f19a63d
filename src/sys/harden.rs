//! What the process does to itself before it reads a single argument.
//!
//! Each step names the attack that it stops. A step that fails stops the program: a protection
//! that is silently missing is worse than none.

use std::io;
use std::os::fd::{BorrowedFd, RawFd};

use rustix::fs::Mode;
use rustix::io::FdFlags;
use rustix::process::DumpableBehavior;

use crate::codes::Code;
use crate::error::{Failure, Fault};
use crate::exit::Kind;

/// Which step failed.
#[derive(Debug, thiserror::Error)]
pub enum HardenError {
    /// The executable is setuid, setgid or has file capabilities.
    #[error("runner was started setuid, setgid or with file capabilities")]
    Privileged,
    /// `/proc/self` could not be read.
    #[error("cannot read {path}: {source}")]
    Proc {
        /// Which file.
        path: &'static str,
        /// Why.
        source: io::Error,
    },
    /// A prctl or fcntl failed.
    #[error("cannot protect this process: {what}: {source}")]
    Call {
        /// Which call.
        what: &'static str,
        /// Why.
        source: io::Error,
    },
}

/// Makes this process safe to work in.
///
/// The Rust runtime has already opened `/dev/null` in place of missing standard streams (else the
/// first file we open would receive our output) and ignores SIGPIPE (so that a reader who leaves
/// is an error we see, and a call is ended and recorded rather than cut off).
///
/// # Errors
/// A step failed; the program must not go on.
pub fn harden() -> Result<(), HardenError> {
    refuse_gained_privileges()?;
    forbid_inspection()?;
    keep_descriptors_from_children()?;
    keep_new_files_from_others();
    Ok(())
}

/// Stops: an unprivileged caller steering a setuid copy of this program with its environment,
/// descriptors and configuration files. Nothing here is written to hold that line.
fn refuse_gained_privileges() -> Result<(), HardenError> {
    use rustix::process::{getegid, geteuid, getgid, getuid};
    if getuid() != geteuid() || getgid() != getegid() {
        return Err(HardenError::Privileged);
    }
    // File capabilities leave the ids alone; only the kernel's own word for "privileges were gained by exec" shows them.
    #[expect(
        unsafe_code,
        reason = "what the kernel gave this process at its start has no safe reader"
    )]
    // SAFETY: no pointers; the kernel's vector does not change.
    let gained = unsafe { libc::getauxval(libc::AT_SECURE) };
    if gained == 0 { Ok(()) } else { Err(HardenError::Privileged) }
}

/// Stops: another process of the same user reading keys of running calls from our memory, or
/// from a core dump on disk.
fn forbid_inspection() -> Result<(), HardenError> {
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .map_err(|errno| HardenError::Call { what: "prctl(PR_SET_DUMPABLE)", source: errno.into() })
}

/// Stops: a descriptor that the caller left open (a log, a socket, a directory handle) reaching a
/// child of ours, where it would be a way around every path check.
fn keep_descriptors_from_children() -> Result<(), HardenError> {
    #[expect(unsafe_code, reason = "no safe call marks all descriptors at once")]
    // SAFETY: no pointers; descriptors are marked, and none is closed.
    let marked = unsafe {
        libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC)
    };
    // Kernels before 5.11 do not know it.
    if marked == 0 { Ok(()) } else { mark_one_by_one() }
}

fn mark_one_by_one() -> Result<(), HardenError> {
    const PATH: &str = "/proc/self/fd";
    let proc = |source| HardenError::Proc { path: PATH, source };
    for entry in std::fs::read_dir(PATH).map_err(proc)? {
        let name = entry.map_err(proc)?.file_name();
        let Some(fd) = name.to_str().and_then(|name| name.parse::<RawFd>().ok()) else {
            continue;
        };
        if fd > 2 {
            #[expect(unsafe_code, reason = "inherited descriptors have no owner in this program")]
            // SAFETY: the number comes from the kernel's list of our open descriptors and is not
            // -1; the borrow ends here. The one of this listing itself is open until the loop ends.
            let borrowed = unsafe { BorrowedFd::borrow_raw(fd) };
            rustix::io::fcntl_setfd(borrowed, FdFlags::CLOEXEC).map_err(|errno| {
                HardenError::Call { what: "fcntl(F_SETFD)", source: errno.into() }
            })?;
        }
    }
    Ok(())
}

/// Stops: a caller with umask 0 leaving files of ours that others can change. Only ever removes
/// permissions; what is private by nature is created with its own narrow mode.
fn keep_new_files_from_others() {
    let others = Mode::WGRP | Mode::WOTH;
    let before = rustix::process::umask(others);
    rustix::process::umask(before | others);
}

impl Failure for HardenError {
    fn code(&self) -> Code {
        match self {
            Self::Privileged => Code::PrivilegedExecutable,
            Self::Proc { .. } | Self::Call { .. } => Code::HardeningFailed,
        }
    }

    fn kind(&self) -> Kind {
        Kind::Broken
    }

    fn fault(&self) -> Fault {
        match self {
            Self::Privileged => Fault::Usage,
            Self::Proc { .. } | Self::Call { .. } => Fault::Engine,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Privileged => Some(
                "remove the bits and capabilities from the executable and run it as yourself"
                    .to_owned(),
            ),
            Self::Proc { .. } => Some("runner needs /proc of its own process".to_owned()),
            Self::Call { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn descriptors_are_kept_from_children_by_either_way() {
        for mark in [keep_descriptors_from_children, mark_one_by_one] {
            let file = std::fs::File::open("/dev/null").unwrap();
            rustix::io::fcntl_setfd(file.as_fd(), FdFlags::empty()).unwrap();
            mark().unwrap();
            assert_eq!(rustix::io::fcntl_getfd(file.as_fd()).unwrap(), FdFlags::CLOEXEC);
        }
    }
}
