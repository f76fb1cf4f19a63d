//! Who is at the other end of a unix socket, as the kernel noted it.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// The process that connected, or that listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// Its user, as this process's namespace has it.
    pub uid: u32,
    /// Its number; `None` if it is in no process namespace that this process sees.
    pub pid: Option<u32>,
}

/// Asks the kernel (`SO_PEERCRED`). It noted the user when the socket was connected, or when it began to listen.
///
/// # Errors
/// It is no connected unix socket.
pub fn peer(socket: impl AsFd) -> io::Result<Peer> {
    let mut found = libc::ucred { pid: 0, uid: u32::MAX, gid: u32::MAX };
    let mut size: libc::socklen_t = 12;
    const { assert!(size_of::<libc::ucred>() == 12) };
    #[expect(
        unsafe_code,
        reason = "rustix takes the number 0, which the kernel may give, for a process"
    )]
    // SAFETY: the kernel writes at most `size` bytes, which is the size of the structure, and both live through the call.
    let asked = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut found).cast(),
            &raw mut size,
        )
    };
    if asked != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(Peer { uid: found.uid, pid: u32::try_from(found.pid).ok().filter(|pid| *pid > 0) })
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn both_ends_of_a_pair_are_this_process() {
        let (one, other) = UnixStream::pair().unwrap();
        let this = Peer { uid: rustix::process::geteuid().as_raw(), pid: Some(std::process::id()) };
        assert_eq!((peer(&one).unwrap(), peer(&other).unwrap()), (this, this));
        assert!(peer(std::fs::File::open("/dev/null").unwrap()).is_err());
    }
}
