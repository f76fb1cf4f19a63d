//! The index of a database's log, which SQLite makes anew for whoever opens the database alone.
//!
//! Duty: to have it made anew in the room that it has. SQLite cuts its file to three bytes first, and makes it longer again
//! page by page; a file system with a journal takes longer for that than for all else that a short call records. Zeros in
//! place of what was there say the same: nothing is known, so the log itself is read. Non-goals: when that happens, which
//! SQLite decides, with a lock that shows that nobody else has the database open.

#![expect(unsafe_code, reason = "SQLite takes another system call as a bare pointer")]

use std::ffi::{CStr, c_int};
use std::os::fd::BorrowedFd;
use std::ptr;
use std::sync::Once;

use rusqlite::ffi::{sqlite3_syscall_ptr, sqlite3_vfs_find};

/// The length to which SQLite cuts an index, and nothing else: logs and databases are whole pages, or empty.
const FORGOTTEN: libc::off_t = 3;

/// The room of the index of a log of some thousand pages, which is all that one of ours ever is. A longer one is cut.
const ROOM: usize = 32 << 10;

/// Has SQLite forget an index without giving its room back, from now on.
pub fn keep_log_index() {
    const CALL: &CStr = c"ftruncate";
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let ours: extern "C" fn(c_int, libc::off_t) -> c_int = cut;
        // SAFETY: the name of a file system that is not given is that of the default one, which is there as long as the
        // process. It keeps the pointer and calls it with the arguments of `ftruncate`, which are those of `cut`.
        unsafe {
            let system = sqlite3_vfs_find(ptr::null());
            if let Some(set) = system.as_ref().and_then(|system| system.xSetSystemCall) {
                let ours = std::mem::transmute::<
                    extern "C" fn(c_int, libc::off_t) -> c_int,
                    sqlite3_syscall_ptr,
                >(ours);
                // Where it is not taken, all works as before, and slower.
                set(system, CALL.as_ptr(), ours);
            }
        }
    });
}

/// `ftruncate`, but for an index. What cannot be overwritten is cut.
extern "C" fn cut(file: c_int, length: libc::off_t) -> c_int {
    // SAFETY: SQLite has it open for the time of this call.
    let borrowed = unsafe { BorrowedFd::borrow_raw(file) };
    if length == FORGOTTEN && forget(borrowed) {
        return 0;
    }
    // SAFETY: no pointers; what is no file is refused.
    unsafe { libc::ftruncate(file, length) }
}

/// Overwrites all of a file that is no longer than an index; whether it is done.
fn forget(file: BorrowedFd<'_>) -> bool {
    static NOTHING: [u8; ROOM] = [0; ROOM];
    let length = rustix::fs::fstat(file).ok().and_then(|found| usize::try_from(found.st_size).ok());
    let all = length.and_then(|length| NOTHING.get(..length));
    all.is_some_and(|all| rustix::io::pwrite(file, all, 0) == Ok(all.len()))
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd as _;

    use super::*;

    #[test]
    fn sqlite_takes_it() {
        keep_log_index();
        // SAFETY: as above; it gives the pointer that it calls.
        let taken = unsafe {
            let system = sqlite3_vfs_find(ptr::null());
            system.as_ref().and_then(|it| it.xGetSystemCall).unwrap()(system, c"ftruncate".as_ptr())
        };
        let ours: extern "C" fn(c_int, libc::off_t) -> c_int = cut;
        assert_eq!(taken.map(|call| call as usize), Some(ours as usize));
    }

    #[test]
    fn an_index_is_overwritten_and_all_else_is_cut() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let cut_to = |before: usize, length: libc::off_t| {
            std::fs::write(&path, vec![7; before]).unwrap();
            let file = std::fs::File::options().read(true).write(true).open(&path).unwrap();
            assert_eq!(cut(file.as_raw_fd(), length), 0);
            std::fs::read(&path).unwrap()
        };
        for room in [0, 1, 3, 4096, ROOM] {
            assert_eq!(cut_to(room, FORGOTTEN), vec![0; room]);
        }
        assert_eq!(cut_to(ROOM + 1, FORGOTTEN), [7; 3]);
        for length in [0, 1, 512, 4096] {
            assert_eq!(cut_to(8192, length), vec![7; usize::try_from(length).unwrap()]);
        }
        let readable = std::fs::File::open(&path).unwrap();
        assert_eq!(cut(readable.as_raw_fd(), FORGOTTEN), -1, "nobody is told that it went well");
    }
}
