//! Descriptors that the caller hands over by number.

use std::os::fd::{BorrowedFd, OwnedFd, RawFd};

use rustix::fs::OFlags;
use rustix::io::Errno;

/// Why a descriptor cannot carry the status line.
#[derive(Debug, thiserror::Error, Clone, Copy, PartialEq, Eq)]
pub enum StatusFdError {
    /// 0, 1 and 2 carry the command's own streams.
    #[error("descriptor {0} is a standard stream; the status needs one of its own")]
    Standard(RawFd),
    /// Nothing is open there.
    #[error("descriptor {0} is not open")]
    NotOpen(RawFd),
    /// It is open for reading only.
    #[error("descriptor {0} is not open for writing")]
    NotWritable(RawFd),
}

/// A copy of our own of the inherited descriptor `fd`, checked to be open and writable.
///
/// Call it before this process opens a file: its own descriptor would pass too.
///
/// # Errors
/// It is a standard stream, not open, or not writable.
pub fn claim_status_fd(fd: RawFd) -> Result<OwnedFd, StatusFdError> {
    if (0..=2).contains(&fd) {
        return Err(StatusFdError::Standard(fd));
    }
    if fd < 0 {
        return Err(StatusFdError::NotOpen(fd));
    }
    #[expect(unsafe_code, reason = "a number from the command line is all the caller can give")]
    // SAFETY: `fd` is not -1, and the borrow ends in this function. If nothing is open there, each
    // call below reports EBADF and touches nothing.
    let borrowed = unsafe { BorrowedFd::borrow_raw(fd) };
    let flags = rustix::fs::fcntl_getfl(borrowed).map_err(|_: Errno| StatusFdError::NotOpen(fd))?;
    if !flags.intersects(OFlags::WRONLY | OFlags::RDWR) || flags.contains(OFlags::PATH) {
        return Err(StatusFdError::NotWritable(fd));
    }
    rustix::io::fcntl_dupfd_cloexec(borrowed, 3).map_err(|_: Errno| StatusFdError::NotOpen(fd))
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    #[test]
    fn standard_closed_and_read_only_descriptors_are_refused() {
        assert_eq!(claim_status_fd(1).unwrap_err(), StatusFdError::Standard(1));
        assert_eq!(claim_status_fd(-1).unwrap_err(), StatusFdError::NotOpen(-1));
        assert_eq!(claim_status_fd(9_999).unwrap_err(), StatusFdError::NotOpen(9_999));
        let file = std::fs::File::open("/dev/null").unwrap();
        let fd = file.as_raw_fd();
        assert_eq!(claim_status_fd(fd).unwrap_err(), StatusFdError::NotWritable(fd));
    }

    #[test]
    fn a_writable_descriptor_is_copied() {
        let file = std::fs::File::options().write(true).open("/dev/null").unwrap();
        let copy = claim_status_fd(file.as_raw_fd()).unwrap();
        assert_ne!(copy.as_raw_fd(), file.as_raw_fd());
    }
}
