//! Descriptors that whoever started this process left open. The only unsafe code of this program.

use std::io;
use std::os::fd::{AsRawFd as _, RawFd};

use rustix::fs::{CWD, Dir, Mode, OFlags, openat};

/// Closes every descriptor but the standard streams: what a caller left open is a way around every path check.
///
/// Call it in a process that has opened nothing yet and has one thread: whatever is open has no owner then.
///
/// # Errors
/// The kernel's list of open descriptors cannot be read.
pub fn close() -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let listing = openat(CWD, "/proc/self/fd", flags, Mode::empty())?;
    let own = listing.as_raw_fd();
    let mut open = Vec::new();
    for entry in Dir::new(listing)? {
        open.extend(entry?.file_name().to_str().ok().and_then(|name| name.parse::<RawFd>().ok()));
    }
    for fd in open.into_iter().filter(|fd| *fd > 2 && *fd != own) {
        #[expect(unsafe_code, reason = "inherited descriptors have no owner in this program")]
        // SAFETY: the number is from the kernel's list of what is open; nobody else in this process owns it, as the caller promises.
        unsafe {
            rustix::io::close(fd);
        }
    }
    Ok(())
}
