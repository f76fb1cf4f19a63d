//! The filter in the kernel: a child process installs it and makes system calls.
#![expect(unsafe_code, reason = "the filter is installed by system calls, after a fork")]

use runner_filter::bytes;
use std::io;

/// What a child tells by its exit code if it cannot install the filter.
const NOT_INSTALLED: i32 = 99;

/// Installs the filter in a child, makes one system call there, and returns how the child ended: its exit code is the error
/// number of the call, 0 if it succeeded. A child that was killed by a signal is the negative number.
fn try_call(number: libc::c_long, args: [u64; 4]) -> i32 {
    let program = bytes(&super::program());
    let mut filters: Vec<libc::sock_filter> = program
        .chunks(8)
        .map(|insn| libc::sock_filter {
            code: u16::from_le_bytes([insn[0], insn[1]]),
            jt: insn[2],
            jf: insn[3],
            k: u32::from_le_bytes([insn[4], insn[5], insn[6], insn[7]]),
        })
        .collect();
    let prog = libc::sock_fprog {
        len: u16::try_from(filters.len()).unwrap(),
        filter: filters.as_mut_ptr(),
    };
    // SAFETY: until it ends, the child makes system calls only, with memory that was made before.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: `prog` and what it points to are the child's own copy; the call takes what the kernel checks.
        unsafe {
            if libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
                || libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &prog) != 0
            {
                libc::_exit(NOT_INSTALLED);
            }
            let done = libc::syscall(number, args[0], args[1], args[2], args[3]);
            let errno = if done < 0 { *libc::__errno_location() } else { 0 };
            libc::_exit(errno);
        }
    }
    assert!(child > 0, "{}", io::Error::last_os_error());
    let mut status = 0;
    // SAFETY: the child is ours and `status` is a place for the answer.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    if libc::WIFSIGNALED(status) { -libc::WTERMSIG(status) } else { libc::WEXITSTATUS(status) }
}

#[test]
fn the_kernel_takes_the_filter_and_an_allowed_call_is_made() {
    assert_eq!(try_call(libc::SYS_getpid, [0; 4]), 0);
    let unix = u64::try_from(libc::AF_UNIX).unwrap();
    let stream = u64::try_from(libc::SOCK_STREAM).unwrap();
    assert_eq!(try_call(libc::SYS_socket, [unix, stream, 0, 0]), 0);
}

#[test]
fn forbidden_calls_fail_as_the_profile_says() {
    let family = |family: i32| u64::try_from(family).unwrap();
    let stream = u64::try_from(libc::SOCK_STREAM).unwrap();
    let datagram = u64::try_from(libc::SOCK_DGRAM).unwrap();
    // Without the filter each of these has another result: 0, EBADF, EFAULT, EINVAL or, for a plain user, EPERM by the kernel.
    assert_eq!(try_call(libc::SYS_ptrace, [0; 4]), libc::EPERM);
    assert_eq!(try_call(libc::SYS_unshare, [0; 4]), libc::EPERM);
    assert_eq!(try_call(libc::SYS_socket, [family(libc::AF_PACKET), stream, 0, 0]), libc::EPERM);
    assert_eq!(try_call(libc::SYS_socket, [family(libc::AF_VSOCK), stream, 0, 0]), libc::EPERM);
    // Of netlink only the routing protocol is allowed: 0, not 15 (kernel events).
    let netlink = family(libc::AF_NETLINK);
    assert_eq!(try_call(libc::SYS_socket, [netlink, datagram, 0, 0]), 0);
    assert_eq!(try_call(libc::SYS_socket, [netlink, datagram, 15, 0]), libc::EPERM);
    for absent in [libc::SYS_clone3, libc::SYS_openat2, libc::SYS_io_uring_setup] {
        assert_eq!(try_call(absent, [0; 4]), libc::ENOSYS, "{absent}");
    }
    // High halves of an argument count: the kernel would take no notice of them here.
    let high = family(libc::AF_UNIX) | 1 << 32;
    assert_eq!(try_call(libc::SYS_socket, [high, stream, 0, 0]), libc::EPERM);
}

#[test]
fn a_mode_with_a_setuid_bit_is_refused_and_without_it_taken() {
    let path = c"/proc/self/no-such-file".as_ptr() as u64;
    assert_eq!(try_call(libc::SYS_chmod, [path, 0o755, 0, 0]), libc::ENOENT);
    assert_eq!(try_call(libc::SYS_chmod, [path, 0o4755, 0, 0]), libc::EPERM);
    assert_eq!(try_call(libc::SYS_chmod, [path, 0o2755, 0, 0]), libc::EPERM);
    // A new namespace is made by no thread.
    let namespace = u64::try_from(libc::CLONE_NEWUSER).unwrap();
    assert_eq!(try_call(libc::SYS_clone, [namespace, 0, 0, 0]), libc::EPERM);
}

#[test]
fn calls_of_x32_are_absent() {
    assert_eq!(try_call(libc::SYS_getpid | 0x4000_0000, [0; 4]), libc::ENOSYS);
}
