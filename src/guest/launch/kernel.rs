//! The system calls of a launch, each behind a small safe function.
#![expect(unsafe_code, reason = "mounts, namespaces and privileges have no safe calls in std")]

use runner_wire::Bytes;
use std::ffi::{CString, OsStr, c_int, c_long};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

fn check(result: c_int) -> io::Result<c_int> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn check_long(result: c_long) -> io::Result<RawFd> {
    if result == -1 {
        return Err(io::Error::last_os_error());
    }
    RawFd::try_from(result).map_err(|_| io::ErrorKind::InvalidData.into())
}

fn text(value: impl AsRef<[u8]>) -> io::Result<CString> {
    CString::new(value.as_ref()).map_err(|_| io::ErrorKind::InvalidInput.into())
}

fn path(value: &Path) -> io::Result<CString> {
    text(value.as_os_str().as_bytes())
}

/// A kind of namespace.
#[derive(Debug, Clone, Copy)]
pub enum Namespace {
    /// User and group numbers, and capabilities.
    Users,
    /// Process numbers; the next child is the first process of it.
    Processes,
    /// Mounts.
    Mounts,
    /// Network devices and sockets.
    Network,
    /// Shared memory and message queues.
    Ipc,
    /// The host name.
    Names,
    /// Control groups: the present ones become the root.
    Groups,
}

/// Moves this process into new namespaces.
pub fn unshare(kinds: &[Namespace]) -> io::Result<()> {
    let flag = |kind: &Namespace| match kind {
        Namespace::Users => libc::CLONE_NEWUSER,
        Namespace::Processes => libc::CLONE_NEWPID,
        Namespace::Mounts => libc::CLONE_NEWNS,
        Namespace::Network => libc::CLONE_NEWNET,
        Namespace::Ipc => libc::CLONE_NEWIPC,
        Namespace::Names => libc::CLONE_NEWUTS,
        Namespace::Groups => libc::CLONE_NEWCGROUP,
    };
    let flags = kinds.iter().map(flag).fold(0, |all, flag| all | flag);
    // SAFETY: no pointers.
    check(unsafe { libc::unshare(flags) }).map(drop)
}

/// Closes standard input and output, which are the wire. [`Watch`](super::watch::Watch) has a copy of it, by which it sees
/// that the host is gone.
pub fn let_go_of_the_wire() -> io::Result<()> {
    let null = File::options().read(true).write(true).open("/dev/null")?;
    for number in [0, 1] {
        // SAFETY: no pointers; nothing in this process reads or writes the two any more.
        check(unsafe { libc::dup2(null.as_raw_fd(), number) })?;
    }
    Ok(())
}

/// Closes this process's copy of standard error: only the sandbox's first process has it now.
pub fn let_go_of_words() -> io::Result<()> {
    let null = File::options().write(true).open("/dev/null")?;
    // SAFETY: no pointers; nothing in this process writes there any more.
    check(unsafe { libc::dup2(null.as_raw_fd(), 2) }).map(drop)
}

/// Standard error is closed when this process becomes another program, and not before. That program opens `/dev/null`
/// in its place.
pub fn end_words_with_exec() -> io::Result<()> {
    // SAFETY: no pointers.
    check(unsafe { libc::fcntl(2, libc::F_SETFD, libc::FD_CLOEXEC) }).map(drop)
}

/// Signals that a launcher waits for: that its child ended, and that the host wants an end.
pub struct Signals {
    set: libc::sigset_t,
    before: libc::sigset_t,
}

impl Signals {
    /// From here on they wait until they are asked for.
    pub fn hold() -> io::Result<Self> {
        // SAFETY: the sets are initialised by sigemptyset and sigprocmask before they are used.
        unsafe {
            let mut signals = Self { set: std::mem::zeroed(), before: std::mem::zeroed() };
            libc::sigemptyset(&raw mut signals.set);
            libc::sigaddset(&raw mut signals.set, libc::SIGTERM);
            libc::sigaddset(&raw mut signals.set, libc::SIGCHLD);
            let (set, before) = (&raw const signals.set, &raw mut signals.before);
            check(libc::sigprocmask(libc::SIG_BLOCK, set, before))?;
            Ok(signals)
        }
    }

    /// Undoes [`hold`](Self::hold).
    pub fn release(&self) -> io::Result<()> {
        let none = std::ptr::null_mut();
        // SAFETY: the set was filled by the kernel.
        check(unsafe { libc::sigprocmask(libc::SIG_SETMASK, &raw const self.before, none) })
            .map(drop)
    }

    /// A descriptor that can be read when one of them waits.
    pub fn descriptor(&self) -> io::Result<OwnedFd> {
        let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
        // SAFETY: the set is initialised; the result is a new descriptor.
        unsafe {
            let number = check(libc::signalfd(-1, &raw const self.set, flags))?;
            Ok(OwnedFd::from_raw_fd(number))
        }
    }
}

/// The next signal of a descriptor, if one waits.
pub fn next_signal(signals: &OwnedFd) -> Option<c_int> {
    const SIZE: usize = size_of::<libc::signalfd_siginfo>();
    // SAFETY: an all-zero value is valid, and the kernel writes no more than the size that it is told.
    let (count, found) = unsafe {
        let mut found: libc::signalfd_siginfo = std::mem::zeroed();
        (libc::read(signals.as_raw_fd(), (&raw mut found).cast(), SIZE), found)
    };
    let whole = usize::try_from(count).is_ok_and(|count| count == SIZE);
    whole.then(|| c_int::try_from(found.ssi_signo).unwrap_or_default())
}

/// Whether a child of this process has ended; it is waited for by that, and only here, so its number is not another
/// process's before.
pub fn is_reaped(child: u32) -> bool {
    let Ok(child) = c_int::try_from(child) else { return true };
    // SAFETY: no pointers but a null one, which the kernel takes for no wish.
    unsafe { libc::waitpid(child, std::ptr::null_mut(), libc::WNOHANG) != 0 }
}

/// Kills a child of this process that was not waited for yet.
pub fn kill(child: u32) {
    if let Ok(child) = c_int::try_from(child) {
        // SAFETY: no pointers.
        unsafe { libc::kill(child, libc::SIGKILL) };
    }
}

/// A handle of a process.
pub fn open_process(pid: u32) -> io::Result<OwnedFd> {
    // SAFETY: no pointers; the result is a new descriptor.
    unsafe {
        Ok(OwnedFd::from_raw_fd(check_long(libc::syscall(libc::SYS_pidfd_open, pid, 0_u32))?))
    }
}

/// Kills the process of a handle.
pub fn kill_opened(process: &OwnedFd) {
    let (number, signal) = (process.as_raw_fd(), libc::SIGKILL);
    let nothing: *const libc::siginfo_t = std::ptr::null();
    // SAFETY: the pointer is null, which the kernel takes for no further facts.
    unsafe { libc::syscall(libc::SYS_pidfd_send_signal, number, signal, nothing, 0_u32) };
}

/// `CLONE_INTO_CGROUP` of the kernel, which is wider than the type that libc gives it.
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// Makes a copy of this process; its number, or none in the copy. It is born in this control group of version 2, if one is
/// given. Only for a process with one thread.
pub fn fork_into(group: Option<BorrowedFd<'_>>) -> io::Result<Option<u32>> {
    let Some(group) = group else { return crate::sys::fork() };
    // SAFETY: an all-zero `clone_args` is valid.
    let mut how: libc::clone_args = unsafe { std::mem::zeroed() };
    how.flags = CLONE_INTO_CGROUP;
    how.exit_signal = u64::try_from(libc::SIGCHLD).unwrap_or(0);
    how.cgroup = u64::try_from(group.as_raw_fd()).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: `how` lives through the call, which is told its size; without CLONE_VM the copy has memory of its own, and
    // this program never starts a thread, so no lock is held by one that the copy lacks.
    let pid = unsafe {
        check_long(libc::syscall(libc::SYS_clone3, &raw const how, size_of::<libc::clone_args>()))?
    };
    Ok((pid != 0).then(|| pid.unsigned_abs()))
}

/// Takes the only lock of a file, if it is free; it goes with the handle.
pub fn lock(file: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: no pointers.
    check(unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) }).map(drop)
}

/// Whether what is open is what stands at a path.
pub fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let number = |found: std::fs::Metadata| (found.dev(), found.ino());
    match (file.metadata(), std::fs::symlink_metadata(path)) {
        (Ok(open), Ok(named)) => number(open) == number(named),
        _ => false,
    }
}

/// Keeps this process, and all that it starts, on this many processors of those that it may use. Which they are depends on
/// the number of this process, so that sandboxes spread.
pub fn stay_on(count: u32) -> io::Result<()> {
    let size = size_of::<libc::cpu_set_t>();
    // SAFETY: an all-zero set is valid; both calls get a set of the size that they are told, and the macros stay within it.
    unsafe {
        let mut may: libc::cpu_set_t = std::mem::zeroed();
        check(libc::sched_getaffinity(0, size, &raw mut may))?;
        let all = 0..usize::try_from(libc::CPU_SETSIZE).unwrap_or(0);
        let all: Vec<usize> = all.filter(|number| libc::CPU_ISSET(*number, &may)).collect();
        let count = usize::try_from(count).unwrap_or(usize::MAX).max(1);
        if count >= all.len() {
            return Ok(());
        }
        let first = usize::try_from(libc::getppid()).unwrap_or(0);
        let mut chosen: libc::cpu_set_t = std::mem::zeroed();
        for step in 0..count {
            libc::CPU_SET(all[(first + step) % all.len()], &mut chosen);
        }
        check(libc::sched_setaffinity(0, size, &raw const chosen)).map(drop)
    }
}

/// Leaves the caller's session, process group and terminal.
pub fn new_session() -> io::Result<()> {
    // SAFETY: no pointers.
    check(unsafe { libc::setsid() }).map(drop)
}

/// What happens to mounts here stays here, and what happens outside does not come in.
pub fn make_mounts_private() -> io::Result<()> {
    let (none, root) = (std::ptr::null(), c"/");
    // SAFETY: the path is a C string; the kernel ignores the other pointers.
    let made = unsafe {
        let flags = libc::MS_REC | libc::MS_PRIVATE;
        libc::mount(none, root.as_ptr(), none, flags, none.cast())
    };
    check(made).map(drop)
}

/// Mounts a file system of this kind.
pub fn mount(kind: &str, at: &Path, flags: libc::c_ulong, options: &str) -> io::Result<()> {
    let (kind, at, options) = (text(kind)?, path(at)?, text(options)?);
    // SAFETY: all are C strings that live through the call.
    let mounted = unsafe {
        libc::mount(kind.as_ptr(), at.as_ptr(), kind.as_ptr(), flags, options.as_ptr().cast())
    };
    check(mounted).map(drop)
}

/// Takes a mount away, with what is below it.
pub fn unmount(at: &Path) -> io::Result<()> {
    let at = path(at)?;
    // SAFETY: the path is a C string that lives through the call.
    check(unsafe { libc::umount2(at.as_ptr(), libc::MNT_DETACH) }).map(drop)
}

/// Whether mounts below a folder are copied with it.
#[derive(Debug, Clone, Copy)]
pub enum Below {
    /// They are left out.
    Left,
    /// They come along.
    Along,
}

/// A mount of what is open, that is attached nowhere yet.
pub fn copy_mount(source: BorrowedFd<'_>, below: Below) -> io::Result<OwnedFd> {
    let recursive = match below {
        Below::Left => 0,
        Below::Along => libc::AT_RECURSIVE,
    };
    let flags = libc::OPEN_TREE_CLONE
        | libc::OPEN_TREE_CLOEXEC
        | libc::c_uint::try_from(libc::AT_EMPTY_PATH | recursive).unwrap_or(0);
    // SAFETY: the path is a C string; the result is a new descriptor.
    unsafe {
        let copy = libc::syscall(libc::SYS_open_tree, source.as_raw_fd(), c"".as_ptr(), flags);
        Ok(OwnedFd::from_raw_fd(check_long(copy)?))
    }
}

/// Attaches a mount to a folder or file that is open.
pub fn attach(mount: BorrowedFd<'_>, at: BorrowedFd<'_>) -> io::Result<()> {
    let flags = libc::MOVE_MOUNT_F_EMPTY_PATH | libc::MOVE_MOUNT_T_EMPTY_PATH;
    let empty = c"".as_ptr();
    let (mount, at) = (mount.as_raw_fd(), at.as_raw_fd());
    // SAFETY: both paths are C strings.
    let moved = unsafe { libc::syscall(libc::SYS_move_mount, mount, empty, at, empty, flags) };
    check_long(moved).map(drop)
}

/// What a mount allows.
#[derive(Debug, Clone, Copy)]
pub enum Mounted {
    /// Reading and starting programs.
    ReadOnly,
    /// Using a device; its file cannot be changed.
    Device,
}

impl Mounted {
    const fn attributes(self) -> u64 {
        match self {
            Self::ReadOnly => {
                libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV
            }
            Self::Device => {
                libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NOEXEC
            }
        }
    }
}

/// `struct mount_attr` of the kernel.
#[repr(C)]
struct MountAttributes {
    set: u64,
    clear: u64,
    propagation: u64,
    users: u64,
}

/// Sets what a mount allows.
pub fn set_attributes(mount: BorrowedFd<'_>, mounted: Mounted) -> io::Result<()> {
    change(mount, mounted.attributes(), 0, 0)
}

/// The same for it and all mounts below it.
pub fn set_attributes_of_all(mount: BorrowedFd<'_>, mounted: Mounted) -> io::Result<()> {
    change(mount, mounted.attributes(), 0, libc::AT_RECURSIVE)
}

/// Makes what is mounted here read-only, and leaves its other attributes.
pub fn make_read_only(at: BorrowedFd<'_>) -> io::Result<()> {
    change(at, libc::MOUNT_ATTR_RDONLY, 0, 0)
}

/// Shows the owners of files by the map of a user namespace.
pub fn map_owners(mount: BorrowedFd<'_>, users: BorrowedFd<'_>) -> io::Result<()> {
    let users = u64::try_from(users.as_raw_fd()).map_err(|_| io::ErrorKind::InvalidInput)?;
    change(mount, libc::MOUNT_ATTR_IDMAP, users, 0)
}

fn change(mount: BorrowedFd<'_>, set: u64, users: u64, recursive: c_int) -> io::Result<()> {
    let attributes = MountAttributes { set, clear: 0, propagation: 0, users };
    // SAFETY: the path is a C string, and the attributes live through the call, which is told their size.
    let changed = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH | recursive,
            &raw const attributes,
            size_of::<MountAttributes>(),
        )
    };
    check_long(changed).map(drop)
}

/// A file or folder as a path. The last part is not followed if it is a symlink.
pub fn open_path(at: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    File::options().read(true).custom_flags(libc::O_PATH | libc::O_NOFOLLOW).open(at)
}

/// What is below a folder. No part of the path may be a symlink or lead out.
pub fn open_below(folder: BorrowedFd<'_>, below: &Path) -> io::Result<File> {
    let below = path(below)?;
    // SAFETY: an all-zero `open_how` is valid.
    let mut how: libc::open_how = unsafe { std::mem::zeroed() };
    how.flags = u64::try_from(libc::O_PATH | libc::O_CLOEXEC | libc::O_NOFOLLOW).unwrap_or(0);
    how.resolve = libc::RESOLVE_BENEATH | libc::RESOLVE_NO_SYMLINKS;
    // SAFETY: the path is a C string and `how` lives through the call, which is told its size; the result is a new
    // descriptor.
    unsafe {
        let found = libc::syscall(
            libc::SYS_openat2,
            folder.as_raw_fd(),
            below.as_ptr(),
            &raw const how,
            size_of::<libc::open_how>(),
        );
        Ok(File::from_raw_fd(check_long(found)?))
    }
}

/// Makes a folder in one that is open.
pub fn make_folder(parent: BorrowedFd<'_>, name: &OsStr, mode: u32) -> io::Result<()> {
    let name = text(name.as_bytes())?;
    // SAFETY: the name is a C string that lives through the call.
    check(unsafe { libc::mkdirat(parent.as_raw_fd(), name.as_ptr(), mode) }).map(drop)
}

/// Makes an empty file in a folder that is open.
pub fn make_file(parent: BorrowedFd<'_>, name: &OsStr) -> io::Result<()> {
    let name = text(name.as_bytes())?;
    // SAFETY: the name is a C string that lives through the call; no device is made.
    check(unsafe { libc::mknodat(parent.as_raw_fd(), name.as_ptr(), libc::S_IFREG | 0o444, 0) })
        .map(drop)
}

/// Where something is mounted in this namespace, sorted: a parent before what is below it.
pub fn mount_points() -> io::Result<Vec<Bytes>> {
    let table = std::fs::read("/proc/self/mountinfo")?;
    let mut found: Vec<Bytes> = table
        .split(|byte| *byte == b'\n')
        .filter_map(|line| line.split(|byte| *byte == b' ').nth(4))
        .map(crate::report::unescape)
        .map(Bytes)
        .collect();
    found.sort();
    found.dedup();
    Ok(found)
}

/// Makes a folder the root of this process and of its mount namespace, and takes the old root away.
pub fn change_root(to: &str) -> io::Result<()> {
    std::env::set_current_dir(to)?;
    let here = c".".as_ptr();
    // SAFETY: both paths are C strings. The old root is mounted over the new one, and is taken away next.
    check_long(unsafe { libc::syscall(libc::SYS_pivot_root, here, here) })?;
    // SAFETY: the path is a C string.
    check(unsafe { libc::umount2(here, libc::MNT_DETACH) })?;
    std::env::set_current_dir("/")
}

/// The part of `struct ifreq` that holds a device's flags.
#[repr(C)]
struct DeviceFlags {
    name: [u8; libc::IFNAMSIZ],
    flags: i16,
    rest: [u8; 22],
}

/// Brings the loopback device up: the only one of a new network namespace.
pub fn loopback_up() -> io::Result<()> {
    let mut device = DeviceFlags { name: [0; libc::IFNAMSIZ], flags: 0, rest: [0; 22] };
    device.name[..2].copy_from_slice(b"lo");
    // SAFETY: the structure is as large as `struct ifreq`, and lives through both calls; the socket is closed by its owner.
    unsafe {
        let socket = check(libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0))?;
        let socket = OwnedFd::from_raw_fd(socket);
        check(libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFFLAGS, &raw mut device))?;
        device.flags |= i16::try_from(libc::IFF_UP | libc::IFF_RUNNING).unwrap_or(1);
        check(libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const device)).map(drop)
    }
}

/// Lets a process without capabilities listen at any port of this process's network namespace.
pub fn open_low_ports() -> io::Result<()> {
    std::fs::write("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0")
}

/// Sets the host name of this process's namespace.
pub fn set_host_name(name: &str) -> io::Result<()> {
    // SAFETY: the pointer and the length are those of the name.
    check(unsafe { libc::sethostname(name.as_ptr().cast(), name.len()) }).map(drop)
}

/// Sets a limit. A hard limit that is lower already stays.
pub fn limit(resource: u32, soft: u64, hard: u64) -> io::Result<()> {
    // SAFETY: both calls get a pointer to a live rlimit.
    unsafe {
        let mut now = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        check(libc::getrlimit(resource, &raw mut now))?;
        let hard = hard.min(now.rlim_max);
        let new = libc::rlimit { rlim_cur: soft.min(hard), rlim_max: hard };
        check(libc::setrlimit(resource, &raw const new)).map(drop)
    }
}

/// The highest number that a capability could have.
const CAPABILITY_MAX: u64 = 63;

/// No program that is started can gain a capability.
pub fn empty_bounding_set() -> io::Result<()> {
    for capability in 0..=CAPABILITY_MAX {
        // SAFETY: no pointers.
        let dropped = unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) };
        if dropped == -1 {
            let error = io::Error::last_os_error();
            // The first number that this kernel does not know.
            let unknown = error.raw_os_error() == Some(libc::EINVAL) && capability > 0;
            return if unknown { Ok(()) } else { Err(error) };
        }
    }
    Ok(())
}

/// Becomes this user, in this group alone.
pub fn become_user(uid: u32, gid: u32) -> io::Result<()> {
    // SAFETY: no pointers but an empty list. This process has one thread: the calls of the C library would tell others.
    unsafe {
        check(libc::setgroups(0, std::ptr::null()))?;
        check(libc::setresgid(gid, gid, gid))?;
        check(libc::setresuid(uid, uid, uid)).map(drop)
    }
}

/// `_LINUX_CAPABILITY_VERSION_3`: sets of 64 bits, in two halves.
const CAPABILITY_VERSION: u32 = 0x2008_0522;

/// Gives every capability up, in every set.
pub fn drop_capabilities() -> io::Result<()> {
    let header = [CAPABILITY_VERSION, 0];
    let sets = [0_u32; 6];
    // SAFETY: the header and the sets have the sizes of that version, and live through the call.
    unsafe {
        check(libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0))?;
        check_long(libc::syscall(libc::SYS_capset, header.as_ptr(), sets.as_ptr())).map(drop)
    }
}

/// The kernel kills this process when its parent ends: an error if it has ended before the kernel knew of that wish.
pub fn end_with(parent: &OwnedFd) -> io::Result<()> {
    // SAFETY: no pointers.
    check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0) })?;
    let mut ended = [crate::sys::Poll::read(parent.as_raw_fd())];
    crate::sys::poll_now(&mut ended)?;
    if ended[0].ready() { Err(io::Error::from_raw_os_error(libc::ESRCH)) } else { Ok(()) }
}

/// No program that is started can gain privileges, and none may undo it.
pub fn forbid_new_privileges() -> io::Result<()> {
    // SAFETY: no pointers.
    check(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }).map(drop)
}

/// Installs a system call filter for this process and all that it starts.
pub fn install_filter(instructions: &[u8]) -> io::Result<()> {
    const ONE: usize = size_of::<libc::sock_filter>();
    let wrong = || io::Error::from(io::ErrorKind::InvalidData);
    if instructions.is_empty() || !instructions.len().is_multiple_of(ONE) {
        return Err(wrong());
    }
    let filter: Vec<libc::sock_filter> = instructions
        .chunks_exact(ONE)
        .map(|bytes| libc::sock_filter {
            code: u16::from_le_bytes([bytes[0], bytes[1]]),
            jt: bytes[2],
            jf: bytes[3],
            k: u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]),
        })
        .collect();
    crate::sys::install_filter(filter)
}

/// Becomes another program, without any variable; returns only if that failed.
pub fn exec<'a>(program: &str, words: impl Iterator<Item = &'a str>) -> io::Error {
    let words: io::Result<Vec<CString>> = words.map(text).collect();
    match (text(program), words) {
        (Ok(program), Ok(words)) => crate::sys::exec(&program, &words, &[]),
        (Err(error), _) | (_, Err(error)) => error,
    }
}
