//! File handles: the kernel's lasting name for a file, independent of its path.

use std::ffi::{CString, OsStr};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;

use rustix::io::Errno;

/// The kernel's lasting name for a file, unique within its file system also over removal and reuse
/// of the inode.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FileHandle {
    /// How the file system encodes it.
    pub kind: i32,
    /// The encoded name.
    pub bytes: Vec<u8>,
}

/// Longest handle that the kernel makes (`MAX_HANDLE_SZ`).
const MAX_BYTES: usize = 128;

/// `struct file_handle` with room for the longest one.
#[repr(C)]
struct Buffer {
    length: libc::c_uint,
    kind: libc::c_int,
    bytes: [u8; MAX_BYTES],
}

/// The handle of `name` in `folder`. A symlink is not followed.
///
/// # Errors
/// The name is missing, or the file system has no handles.
pub fn file_handle(folder: BorrowedFd<'_>, name: &OsStr) -> Result<FileHandle, Errno> {
    let name = CString::new(name.as_bytes()).map_err(|_| Errno::INVAL)?;
    let mut buffer = Buffer { length: MAX_BYTES as libc::c_uint, kind: 0, bytes: [0; MAX_BYTES] };
    let mut mount: libc::c_int = 0;
    #[expect(unsafe_code, reason = "no library has a safe call for this")]
    // SAFETY: `name` ends with NUL. `buffer` has the layout of `struct file_handle` followed by as
    // many bytes as its length says, and the kernel writes no more than that. Both outlive the
    // call.
    let result = unsafe {
        libc::name_to_handle_at(
            folder.as_raw_fd(),
            name.as_ptr(),
            (&raw mut buffer).cast::<libc::file_handle>(),
            &raw mut mount,
            0,
        )
    };
    if result != 0 {
        return Err(std::io::Error::last_os_error()
            .raw_os_error()
            .map_or(Errno::IO, Errno::from_raw_os_error));
    }
    let bytes = buffer.bytes.get(..buffer.length as usize).ok_or(Errno::IO)?.to_vec();
    Ok(FileHandle { kind: buffer.kind, bytes })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn a_handle_names_the_file_and_not_the_path() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a"), "").unwrap();
        std::fs::write(dir.path().join("b"), "").unwrap();
        let folder = std::fs::File::open(dir.path()).unwrap();
        let of = |name: &str| file_handle(folder.as_fd(), OsStr::new(name));
        let a = of("a").unwrap();
        assert_ne!(a, of("b").unwrap());
        std::fs::rename(dir.path().join("a"), dir.path().join("c")).unwrap();
        assert_eq!(a, of("c").unwrap());
        assert_eq!(of("a").unwrap_err(), Errno::NOENT);
    }
}
