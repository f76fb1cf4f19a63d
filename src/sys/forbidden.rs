//! System calls that no sandbox may have: `runner doctor` tries them from inside one.
//!
//! The arguments are such that a call which the kernel lets through changes nothing on the host: null pointers, closed
//! descriptors, paths of the sandbox's own scratch folder.
#![expect(unsafe_code, reason = "these calls have no safe wrappers, on purpose")]

use std::io;

/// A system call, by name, with the arguments that it is tried with.
type Tried = (&'static str, libc::c_long, [usize; 5]);

/// Any process, for calls that take one: the first of the sandbox.
const FIRST: usize = 1;

/// `PTRACE_PEEKDATA`: of a process that is not traced it reads nothing and changes nothing.
const PEEK: usize = 2;

/// No descriptor.
const CLOSED: usize = usize::MAX;

/// What is tried. Without a filter the kernel would answer each with success, or with another error than those in
/// [`REFUSALS`].
const CALLS: [Tried; 17] = [
    ("setns", libc::SYS_setns, [CLOSED, 0, 0, 0, 0]),
    ("mount", libc::SYS_mount, [0, 0, 0, 0, 0]),
    ("umount2", libc::SYS_umount2, [0, 0, 0, 0, 0]),
    ("fsopen", libc::SYS_fsopen, [0, 0, 0, 0, 0]),
    ("open_tree", libc::SYS_open_tree, [CLOSED, 0, 0, 0, 0]),
    ("pivot_root", libc::SYS_pivot_root, [0, 0, 0, 0, 0]),
    ("ptrace", libc::SYS_ptrace, [PEEK, FIRST, 0, 0, 0]),
    ("process_vm_readv", libc::SYS_process_vm_readv, [FIRST, 0, 0, 0, 0]),
    ("bpf", libc::SYS_bpf, [0, 0, 0, 0, 0]),
    ("perf_event_open", libc::SYS_perf_event_open, [0, 0, 0, CLOSED, 0]),
    ("io_uring_setup", libc::SYS_io_uring_setup, [1, 0, 0, 0, 0]),
    ("keyctl", libc::SYS_keyctl, [0, CLOSED, 0, 0, 0]),
    ("userfaultfd", libc::SYS_userfaultfd, [1, 0, 0, 0, 0]),
    ("open_by_handle_at", libc::SYS_open_by_handle_at, [CLOSED, 0, 0, 0, 0]),
    ("init_module", libc::SYS_init_module, [0, 0, 0, 0, 0]),
    ("kexec_load", libc::SYS_kexec_load, [0, 0, 0, 0, 0]),
    // Last: where it succeeds, this process is in a user namespace of its own from here on.
    ("unshare", libc::SYS_unshare, [0x1000_0000, 0, 0, 0, 0]),
];

/// How a kernel says that a call is not for this process.
const REFUSALS: [i32; 3] = [libc::EPERM, libc::ENOSYS, libc::EACCES];

/// Tries each call; its name, and why it was refused, if it was.
#[must_use]
pub fn try_forbidden_calls() -> Vec<(&'static str, Result<(), io::Error>)> {
    CALLS.iter().map(|(name, number, arguments)| (*name, attempt(*number, arguments))).collect()
}

/// Makes one call. An error that says nothing of rights means that the kernel looked at the arguments: it was let through.
fn attempt(number: libc::c_long, [a, b, c, d, e]: &[usize; 5]) -> Result<(), io::Error> {
    // SAFETY: pointers among the arguments are null, which the kernel refuses with an error; descriptors are closed ones.
    let result = unsafe { libc::syscall(number, *a, *b, *c, *d, *e) };
    if result >= 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(number) if REFUSALS.contains(&number) => Err(error),
        _ => Ok(()),
    }
}

/// Makes a device file, which no sandbox may.
///
/// # Errors
/// As it should be.
pub fn make_device(path: &std::ffi::CStr) -> io::Result<()> {
    // SAFETY: the path is a C string.
    let made = unsafe { libc::mknod(path.as_ptr(), libc::S_IFCHR | 0o666, libc::makedev(1, 3)) };
    if made == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Becomes root, which no sandbox may.
///
/// # Errors
/// As it should be.
pub fn become_root() -> io::Result<()> {
    // SAFETY: no pointers.
    let done = unsafe { libc::setuid(0) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Has this process ignore SIGTERM, as a program that does not want to end.
pub fn ignore_termination() {
    // SAFETY: no handler is installed; ignoring a signal needs none.
    unsafe { libc::signal(libc::SIGTERM, libc::SIG_IGN) };
}

/// Has writes beyond a file size limit fail with an error, instead of ending this process.
pub fn ignore_file_size_signal() {
    // SAFETY: no handler is installed; ignoring a signal needs none.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

/// Starts a session of its own, out of reach of signals to the process group of the parent.
///
/// # Errors
/// It leads a process group already.
pub fn new_session() -> io::Result<()> {
    Ok(rustix::process::setsid().map(drop)?)
}
