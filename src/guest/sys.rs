//! The only unsafe code and raw system calls of the guest, each behind a small safe function.
#![expect(unsafe_code, reason = "system calls that std does not offer")]

use std::ffi::{CString, c_char, c_int, c_void};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

/// Turns the C convention of -1 into an error.
fn check(result: c_int) -> io::Result<c_int> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Closes every descriptor above standard error. Call it before anything was opened.
pub fn close_inherited() {
    // SAFETY: nothing in this process owns a descriptor above 2 yet.
    let closed = unsafe { libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, 0_u32) };
    if closed != 0 {
        for fd in 3..1024 {
            // SAFETY: as above; closing a number that is not open is harmless.
            unsafe { libc::close(fd) };
        }
    }
}

/// Other processes of this user cannot look into this one or open its descriptors.
pub fn set_undumpable() -> io::Result<()> {
    // SAFETY: no pointers.
    check(unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) }).map(drop)
}

/// Undoes [`set_undumpable`].
pub fn set_dumpable() -> io::Result<()> {
    // SAFETY: no pointers.
    check(unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 1, 0, 0, 0) }).map(drop)
}

/// The first number of descriptors that no redirection names.
const HIGH: RawFd = 10;

/// A copy of a descriptor that no redirection names, not inherited by programs.
pub fn high(fd: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    high_number(fd.as_raw_fd())
}

/// The same of a number that a redirection names; an error if it is not open.
pub fn high_number(number: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: no pointers; the result is a new descriptor that nobody else owns.
    unsafe {
        let copy = check(libc::fcntl(number, libc::F_DUPFD_CLOEXEC, HIGH))?;
        Ok(OwnedFd::from_raw_fd(copy))
    }
}

/// Makes a copy of this process; its number, or none in the copy. Only for a process with one thread.
pub fn fork() -> io::Result<Option<u32>> {
    // SAFETY: this program never starts a thread, so no lock is held by one that the copy lacks.
    let pid = check(unsafe { libc::fork() })?;
    Ok((pid != 0).then(|| pid.unsigned_abs()))
}

/// Ends a copy of this process. Nothing of the original is flushed or given back.
pub fn exit(status: u8) -> ! {
    // SAFETY: no pointers.
    unsafe { libc::_exit(status.into()) }
}

/// Processor time of the children that this process waited for, in microseconds: their own, and the kernel's for them.
pub fn cpu_time() -> (u64, u64) {
    // SAFETY: an all-zero rusage is valid, and the pointer lives through the call.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage);
        usage
    };
    (micros(usage.ru_utime), micros(usage.ru_stime))
}

fn micros(time: libc::timeval) -> u64 {
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000 + u64::try_from(time.tv_usec).unwrap_or(0)
}

/// Makes reads and writes of `fd` return at once.
pub fn set_nonblocking(fd: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: no pointers; `fd` is open.
    unsafe {
        let flags = check(libc::fcntl(fd.as_raw_fd(), libc::F_GETFL))?;
        check(libc::fcntl(fd.as_raw_fd(), libc::F_SETFL, flags | libc::O_NONBLOCK)).map(drop)
    }
}

/// Makes closing a socket reset its connection.
pub fn linger_none(socket: BorrowedFd<'_>) -> io::Result<()> {
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    let size = libc::socklen_t::try_from(size_of::<libc::linger>()).unwrap_or_default();
    // SAFETY: the pointer and the size are those of a value that lives through the call.
    let result = unsafe {
        let value = (&raw const linger).cast::<c_void>();
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_LINGER, value, size)
    };
    check(result).map(drop)
}

/// Lets this process open as many files as it may; how many.
pub fn raise_descriptors() -> u64 {
    // SAFETY: an all-zero rlimit is valid, and the pointers live through the calls.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) != 0 {
            return 0;
        }
        let raised = libc::rlimit { rlim_cur: limit.rlim_max, rlim_max: limit.rlim_max };
        if libc::setrlimit(libc::RLIMIT_NOFILE, &raw const raised) == 0 {
            limit.rlim_cur = limit.rlim_max;
        }
        limit.rlim_cur
    }
}

/// A copy with a number of at least `min` that a child process inherits.
pub fn inheritable(fd: BorrowedFd<'_>, min: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: no pointers; `fd` is open, and the result is a new descriptor that nobody else owns.
    unsafe {
        let copy = check(libc::fcntl(fd.as_raw_fd(), libc::F_DUPFD, min))?;
        Ok(OwnedFd::from_raw_fd(copy))
    }
}

/// Takes a descriptor that this process was started with; it will not be inherited further.
pub fn adopt(number: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: no pointers. F_SETFD fails if the number is not open. The caller passes each number
    // once, and it came from the parent, so nothing else in this process owns it.
    unsafe {
        check(libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC))?;
        Ok(OwnedFd::from_raw_fd(number))
    }
}

/// Makes `number` mean what `fd` means.
pub fn place(fd: RawFd, number: RawFd) -> io::Result<()> {
    // SAFETY: no pointers. `number` is 0 to 9, which no owned descriptor of a stage has.
    check(unsafe { libc::dup2(fd, number) }).map(drop)
}

/// Closes a descriptor by number.
pub fn close(number: RawFd) {
    // SAFETY: `number` is 0 to 9, which no owned descriptor of a stage has, or belongs to an owner who never drops it
    // because this is a copy of its process.
    unsafe { libc::close(number) };
}

/// An anonymous file in memory, not inherited.
pub fn memory_file() -> io::Result<File> {
    // SAFETY: the name is a C string; the result is a new descriptor.
    unsafe {
        let fd = check(libc::memfd_create(c"runner".as_ptr(), libc::MFD_CLOEXEC))?;
        Ok(File::from_raw_fd(fd))
    }
}

/// A descriptor that becomes readable when a child ends. SIGCHLD is blocked from here on.
pub fn child_signal() -> io::Result<OwnedFd> {
    // SAFETY: the set is initialised by sigemptyset before use; the result is a new descriptor.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGCHLD);
        check(libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()))?;
        let fd = check(libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK))?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// Empties a descriptor of [`child_signal`].
pub fn drain(fd: &OwnedFd) {
    let mut buffer = [0_u8; 1024];
    // SAFETY: the buffer is as long as the call is told, and the descriptor does not block.
    while unsafe { libc::read(fd.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len()) } > 0 {}
}

/// What to wait for on one descriptor, and what came.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Poll(libc::pollfd);

impl Poll {
    /// Waits until `fd` can be read, or its other end is gone.
    pub fn read(fd: RawFd) -> Self {
        Self(libc::pollfd { fd, events: libc::POLLIN, revents: 0 })
    }

    /// Waits until `fd` can be written, or its other end is gone.
    pub fn write(fd: RawFd) -> Self {
        Self(libc::pollfd { fd, events: libc::POLLOUT, revents: 0 })
    }

    /// Waits until `fd` can be read or written, or its other end is gone.
    pub fn both(fd: RawFd) -> Self {
        Self(libc::pollfd { fd, events: libc::POLLIN | libc::POLLOUT, revents: 0 })
    }

    /// Waits until the other end of `fd` is gone, whatever can be read.
    pub fn hangup(fd: RawFd) -> Self {
        Self(libc::pollfd { fd, events: 0, revents: 0 })
    }

    /// Waits for nothing.
    pub fn none() -> Self {
        Self(libc::pollfd { fd: -1, events: 0, revents: 0 })
    }

    /// Whether anything came.
    pub fn ready(self) -> bool {
        self.0.revents != 0
    }
}

/// Waits for any of `polls` or the end of `timeout`.
pub fn poll(polls: &mut [Poll], timeout: Duration) -> io::Result<()> {
    // Rounded up, so that a deadline has passed when its wait is over.
    poll_for(polls, c_int::try_from(timeout.as_millis().saturating_add(1)).unwrap_or(c_int::MAX))
}

/// Looks at `polls` without waiting.
pub fn poll_now(polls: &mut [Poll]) -> io::Result<()> {
    poll_for(polls, 0)
}

fn poll_for(polls: &mut [Poll], millis: c_int) -> io::Result<()> {
    // SAFETY: `Poll` is a transparent `pollfd`, and the length is that of the slice.
    let result =
        unsafe { libc::poll(polls.as_mut_ptr().cast(), polls.len() as libc::nfds_t, millis) };
    match check(result) {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
        other => other.map(drop),
    }
}

/// A child that has ended.
pub struct Reaped {
    /// Which.
    pub pid: u32,
    /// Its exit status, if it returned.
    pub status: Option<i32>,
    /// The signal that ended it, if one did.
    pub signal: Option<i32>,
    /// Processor time of it and of those it waited for, in microseconds.
    pub cpu_us: u64,
}

/// The next child that has ended, if there is one.
pub fn reap() -> Option<Reaped> {
    reap_with(-1, libc::WNOHANG)
}

/// The next child that ends; none if there is no child.
pub fn wait() -> Option<Reaped> {
    loop {
        let reaped = reap_with(-1, 0);
        let interrupted = || io::Error::last_os_error().kind() == io::ErrorKind::Interrupted;
        if reaped.is_some() || !interrupted() {
            return reaped;
        }
    }
}

/// The end of one child; none if it is not ours.
pub fn wait_for(pid: u32) -> Option<Reaped> {
    let pid = c_int::try_from(pid).ok().filter(|pid| *pid > 0)?;
    loop {
        let reaped = reap_with(pid, 0);
        let interrupted = || io::Error::last_os_error().kind() == io::ErrorKind::Interrupted;
        if reaped.is_some() || !interrupted() {
            return reaped;
        }
    }
}

fn reap_with(pid: c_int, options: c_int) -> Option<Reaped> {
    let mut status = 0;
    // SAFETY: an all-zero rusage is valid, and wait4 fills it; both pointers live through the call.
    let (pid, usage) = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        (libc::wait4(pid, &raw mut status, options, &raw mut usage), usage)
    };
    let pid = u32::try_from(pid).ok().filter(|pid| *pid > 0)?;
    Some(Reaped {
        pid,
        status: libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status)),
        signal: libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status)),
        cpu_us: micros(usage.ru_utime) + micros(usage.ru_stime),
    })
}

/// Whether any process is left. All orphans become children of PID 1, so no child is no process.
pub fn has_children() -> bool {
    // SAFETY: an all-zero siginfo is valid, and the pointer lives through the call.
    let result = unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        libc::waitid(libc::P_ALL, 0, &raw mut info, options)
    };
    result == 0 || io::Error::last_os_error().raw_os_error() != Some(libc::ECHILD)
}

/// Kills every other process of this namespace.
pub fn kill_all() {
    if std::process::id() == 1 {
        // SAFETY: no pointers. As PID 1 of its own namespace, -1 is every process of the sandbox.
        unsafe { libc::kill(-1, libc::SIGKILL) };
    }
}

/// Sends a signal to a process group that the guest made.
pub fn signal_group(leader: u32, signal: c_int) {
    if let Ok(group) = c_int::try_from(leader)
        && group > 1
    {
        // SAFETY: no pointers.
        unsafe { libc::kill(-group, signal) };
    }
}

/// User and group of this process.
pub fn user() -> (u32, u32) {
    // SAFETY: no pointers; these calls cannot fail.
    unsafe { (libc::geteuid(), libc::getegid()) }
}

/// Sets the bits that new files never get.
pub fn set_umask(mask: u32) {
    // SAFETY: no pointers; it cannot fail.
    unsafe { libc::umask(mask as libc::mode_t & 0o777) };
}

/// Installs a system call filter for this process and all that it starts.
pub fn install_filter(mut filter: Vec<libc::sock_filter>) -> io::Result<()> {
    let length = u16::try_from(filter.len()).map_err(|_| io::ErrorKind::InvalidData)?;
    let program = libc::sock_fprog { len: length, filter: filter.as_mut_ptr() };
    // SAFETY: the program points to as many instructions as it says, which live through the call.
    let installed = unsafe {
        libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program, 0, 0)
    };
    check(installed).map(drop)
}

/// A limit that the kernel holds for each process.
#[derive(Clone, Copy)]
pub enum Resource {
    /// Core dumps.
    Core,
    /// Processor time in seconds; the soft end comes a second before the hard one.
    Cpu,
    /// Size of one file.
    FileSize,
    /// Open files.
    OpenFiles,
}

/// Sets a limit for this process and its children; it can only be lowered.
pub fn limit(resource: Resource, figure: u64) -> io::Result<()> {
    let which = match resource {
        Resource::Core => libc::RLIMIT_CORE,
        Resource::Cpu => libc::RLIMIT_CPU,
        Resource::FileSize => libc::RLIMIT_FSIZE,
        Resource::OpenFiles => libc::RLIMIT_NOFILE,
    };
    // SAFETY: both calls get a pointer to a live rlimit.
    unsafe {
        let mut now = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        check(libc::getrlimit(which, &raw mut now))?;
        let hard = match resource {
            Resource::Cpu => figure.saturating_add(1),
            Resource::Core | Resource::FileSize | Resource::OpenFiles => figure,
        }
        .min(now.rlim_max);
        let new = libc::rlimit { rlim_cur: figure.min(hard), rlim_max: hard };
        check(libc::setrlimit(which, &raw const new)).map(drop)
    }
}

/// The signals that this process ignores, as bits. Nothing of ours ignores more of them after its start, so they are
/// asked for once.
pub fn ignored_signals() -> u64 {
    static IGNORED: OnceLock<u64> = OnceLock::new();
    *IGNORED.get_or_init(|| {
        let ignores = |signal: &u32| {
            let mut action = [0_u64; 4];
            let none = std::ptr::null::<u64>();
            // SAFETY: the kernel's own sigaction is four words on 64 bits, the handler first, and its set of signals
            // eight bytes. The C library would refuse its two internal signals, which it makes ignored in every
            // process that it spawns.
            let asked = unsafe {
                let action = action.as_mut_ptr();
                libc::syscall(libc::SYS_rt_sigaction, *signal, none, action, 8_usize)
            };
            asked == 0 && action[0] == libc::SIG_IGN as u64
        };
        (1..=64).filter(ignores).fold(0, |all, signal| all | 1 << (signal - 1))
    })
}

/// Which ignored signals get their default action back.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Ignored {
    /// All of them.
    All,
    /// Those that Rust and the C library ignore on their own. The others were ignored by who started this process.
    Ours,
}

/// Gives signals their default action and unblocks all: a new program starts clean. A signal that is handled loses
/// its handler with the program that has it.
pub fn reset_signals(which: Ignored) {
    // All zero is the default action without flags and mask.
    let default = [0_u64; 4];
    let ignored = ignored_signals();
    let resets = |signal: &u32| {
        ignored & 1 << (signal - 1) != 0
            && (which == Ignored::All || *signal == libc::SIGPIPE as u32 || *signal >= 32)
    };
    // SAFETY: as above; numbers that cannot be changed only fail. The set is initialised before use.
    unsafe {
        for signal in (1..=64).filter(resets) {
            let none = std::ptr::null_mut::<u64>();
            libc::syscall(libc::SYS_rt_sigaction, signal, default.as_ptr(), none, 8_usize);
        }
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const set, std::ptr::null_mut());
    }
}

/// Whether there is a file, of whatever kind. One that cannot be looked at counts: who tries it is told why.
pub fn is_there(path: &CString) -> bool {
    // SAFETY: the path is a C string that lives through the call.
    let found = unsafe { libc::access(path.as_ptr(), libc::F_OK) } == 0;
    found
        || !matches!(io::Error::last_os_error().raw_os_error(), Some(libc::ENOENT | libc::ENOTDIR))
}

/// Becomes another program; returns only if that failed.
pub fn exec(program: &CString, argv: &[CString], env: &[CString]) -> io::Error {
    let list = |strings: &[CString]| -> Vec<*const c_char> {
        let pointers = strings.iter().map(|string| string.as_ptr());
        pointers.chain([std::ptr::null()]).collect()
    };
    let (argv, env) = (list(argv), list(env));
    // SAFETY: both lists end with null and point to C strings that live through the call.
    unsafe { libc::execve(program.as_ptr(), argv.as_ptr(), env.as_ptr()) };
    io::Error::last_os_error()
}

/// Starts a process with these standard streams, in a group of its own, that becomes another program by itself; its number.
/// `become_it` returns only if that failed, which is what is told then. Until it is a program it has our memory and we
/// wait for it, so none is copied, of which a fork makes both sides copy what they touch.
pub fn start<F: FnMut() -> io::Error>(streams: &[OwnedFd; 3], become_it: F) -> io::Result<u32> {
    // Enough for the longest path and the names of its links; pages that are not touched cost nothing.
    const STACK: usize = 256 * 1024;
    let mut stack = Box::<[u128]>::new_uninit_slice(STACK / size_of::<u128>());
    let streams = streams.each_ref().map(AsRawFd::as_raw_fd);
    let mut child = Child { streams, become_it, failed: None };
    let shared = &raw mut child;
    // SAFETY: the stack is ours, aligned, and grows down from its end. The child has all else of ours too, but this process
    // has one thread, which stands still until the child is a program or has ended: nobody sees anything half done. It has
    // descriptors, signal actions, folder, mask and limits of its own. `shared` lives through the call, and is read
    // when nobody else can write it any more.
    unsafe {
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        let top = stack.as_mut_ptr_range().end.cast();
        let pid = check(libc::clone(enter::<F>, top, flags, shared.cast()))?;
        match (*shared).failed {
            None => Ok(pid.unsigned_abs()),
            Some(errno) => {
                libc::waitpid(pid, std::ptr::null_mut(), 0);
                Err(io::Error::from_raw_os_error(errno))
            }
        }
    }
}

/// What a process that is started shares with us.
struct Child<F> {
    streams: [RawFd; 3],
    become_it: F,
    /// Why it did not become a program.
    failed: Option<c_int>,
}

/// The life of a process that is started.
extern "C" fn enter<F: FnMut() -> io::Error>(child: *mut c_void) -> c_int {
    // SAFETY: `start` passes a child that lives until this process is a program or has ended, and does not touch it
    // meanwhile.
    let child = unsafe { &mut *child.cast::<Child<F>>() };
    let prepare = || {
        for (number, fd) in (0..).zip(child.streams) {
            place(fd, number)?;
        }
        // SAFETY: no pointers.
        check(unsafe { libc::setpgid(0, 0) })
    };
    let error = prepare().err().unwrap_or_else(|| (child.become_it)());
    child.failed = Some(error.raw_os_error().unwrap_or(libc::EINVAL));
    // SAFETY: nothing of ours is flushed, dropped or given back: it is the other process's too.
    unsafe { libc::_exit(127) }
}

/// What this process may do with a file.
#[derive(Clone, Copy)]
pub enum Permission {
    /// Read it.
    Read,
    /// Write it.
    Write,
    /// Execute it, or enter it.
    Execute,
}

/// Whether this process has a permission, as the kernel sees it now.
pub fn may(path: &Path, permission: Permission) -> bool {
    use std::os::unix::ffi::OsStrExt;
    let mode = match permission {
        Permission::Read => libc::R_OK,
        Permission::Write => libc::W_OK,
        Permission::Execute => libc::X_OK,
    };
    // SAFETY: the path is a C string that lives through the call.
    CString::new(path.as_os_str().as_bytes())
        .is_ok_and(|path| unsafe { libc::access(path.as_ptr(), mode) } == 0)
}

/// An extended attribute of a file, of a symlink itself if it is one; `None` if it has none, or a longer one.
pub fn attribute(path: &Path, name: &str, most: usize) -> Option<Vec<u8>> {
    use std::os::unix::ffi::OsStrExt;
    let path = CString::new(path.as_os_str().as_bytes()).ok()?;
    let name = CString::new(name).ok()?;
    let mut value = vec![0_u8; most];
    // SAFETY: both names end with NUL and live until the call returns; the kernel writes at most
    // `value.len()` bytes into `value`.
    let length = unsafe {
        libc::lgetxattr(path.as_ptr(), name.as_ptr(), value.as_mut_ptr().cast(), value.len())
    };
    value.truncate(usize::try_from(length).ok()?);
    Some(value)
}

/// Bytes that the files of a folder's file system take up; none if it cannot be asked.
pub fn used_space(folder: &Path) -> u64 {
    let Ok(folder) = CString::new(folder.as_os_str().as_encoded_bytes()) else { return 0 };
    // SAFETY: an all-zero statfs is valid; the path is a C string, and both live through the call.
    let found = unsafe {
        let mut found: libc::statfs = std::mem::zeroed();
        (libc::statfs(folder.as_ptr(), &raw mut found) == 0).then_some(found)
    };
    found.map_or(0, |found| {
        let blocks = found.f_blocks.saturating_sub(found.f_bfree);
        blocks.saturating_mul(u64::try_from(found.f_bsize).unwrap_or(0))
    })
}
