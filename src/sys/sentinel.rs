//! A process that waits until this one ends, and then executes a program.
//!
//! Starting a program costs milliseconds on two processors: new memory, and every page of it. A sentinel is a process that
//! shares this process's memory (`CLONE_VM`) until it calls `execve`, so it costs as much as a thread. It shares nothing
//! else: it has closed all inherited descriptors, and a signal that kills this process does not kill it. Only the kernel's
//! OOM killer ends all processes that share one memory, so a watchdog that must survive that starts at once.

#![expect(unsafe_code, reason = "a process that shares memory cannot be started otherwise")]

use std::ffi::{CString, c_char, c_int, c_void};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Bytes of a sentinel's stack. It only makes system calls.
const STACK: usize = 16 << 10;

/// A program to become, with all of its words and variables.
#[derive(Debug, Clone)]
pub struct Program {
    /// Its file.
    pub path: CString,
    /// Its words; the first is its name.
    pub words: Vec<CString>,
    /// Its variables, `NAME=VALUE`.
    pub variables: Vec<CString>,
}

/// The memory that a sentinel uses while it shares ours.
struct ChildMemory {
    /// Its process id while it uses this memory; the kernel sets it to 0 afterwards (`CLONE_CHILD_CLEARTID`).
    inside: AtomicI32,
    stack: Box<[u128]>,
    order: Order,
}

/// What it executes. The pointers lead into `program`.
struct Order {
    socket: c_int,
    patience: libc::timespec,
    program: Program,
    words: Vec<*const c_char>,
    variables: Vec<*const c_char>,
}

// SAFETY: the pointers lead to the heap of the same value's `program`, which is not changed while they are used.
unsafe impl Send for ChildMemory {}

/// The memory of each child that has not become its program yet.
#[expect(clippy::vec_box, reason = "the child uses it by its address")]
static IN_USE: Mutex<Vec<Box<ChildMemory>>> = Mutex::new(Vec::new());

/// Starts a process that waits until the other end of `socket` is closed, or for `patience`, and is `program` then, with
/// the socket as standard input, no output, no other descriptor, in the root folder, in a session of its own without the
/// caller's terminal, with all signals held back ([`unblock_signals`]).
///
/// # Errors
/// The kernel has no process for us.
pub fn sentinel(socket: &OwnedFd, program: Program, patience: Duration) -> io::Result<()> {
    let mut in_use = IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
    in_use.retain(|memory| memory.inside.load(Ordering::Acquire) != 0);
    let pointers = |texts: &[CString]| -> Vec<*const c_char> {
        texts.iter().map(|text| text.as_ptr()).chain([ptr::null()]).collect()
    };
    let order = Order {
        socket: socket.as_raw_fd(),
        patience: libc::timespec {
            tv_sec: patience.as_secs().try_into().unwrap_or(libc::time_t::MAX),
            tv_nsec: patience.subsec_nanos().into(),
        },
        words: pointers(&program.words),
        variables: pointers(&program.variables),
        program,
    };
    let stack = vec![0_u128; STACK / size_of::<u128>()].into_boxed_slice();
    let mut memory = Box::new(ChildMemory { inside: AtomicI32::new(0), stack, order });
    let top = memory.stack.as_mut_ptr_range().end.cast::<c_void>();
    let argument = (&raw mut memory.order).cast::<c_void>();
    let inside = memory.inside.as_ptr();
    // The kernel writes the number before it returns, and clears it when the process has our memory no more.
    let flags = libc::CLONE_VM | libc::CLONE_PARENT_SETTID | libc::CLONE_CHILD_CLEARTID;
    let held = hold_signals()?;
    // SAFETY: the stack is the new process's alone, and stays where it is, as the order does, until `inside` is cleared:
    // the memory is kept below. `wait` calls the kernel and touches nothing of ours but its order.
    let number = unsafe {
        libc::clone(wait, top, flags, argument, inside, ptr::null_mut::<c_void>(), inside)
    };
    let result = if number < 0 { Err(io::Error::last_os_error()) } else { Ok(()) };
    set_signals(&held)?;
    if result.is_ok() {
        in_use.push(memory);
    }
    result
}

/// Lets all signals through again; who was a sentinel begins with it.
///
/// # Errors
/// The kernel refuses.
pub fn unblock_signals() -> io::Result<()> {
    // SAFETY: an empty set is made here, whole.
    let none = unsafe {
        let mut none = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        none
    };
    set_signals(&none)
}

/// Holds all signals back; what was held before. A handler of ours must not run in a sentinel.
fn hold_signals() -> io::Result<libc::sigset_t> {
    // SAFETY: both sets are made here, whole, and are valid for the calls.
    let (result, before) = unsafe {
        let (mut all, mut before) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&raw mut all);
        (libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before), before)
    };
    if result == 0 { Ok(before) } else { Err(io::Error::from_raw_os_error(result)) }
}

fn set_signals(set: &libc::sigset_t) -> io::Result<()> {
    // SAFETY: the set is valid, and the old one is not asked for.
    let result = unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, set, ptr::null_mut()) };
    if result == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(result)) }
}

/// The whole life of a sentinel.
///
/// It runs in the memory of a process with other threads, on a thread's own variables: so it allocates nothing, takes
/// no lock, cannot panic, and calls the kernel directly, since the C library would write its `errno` into ours.
extern "C" fn wait(order: *mut c_void) -> c_int {
    const NULL: &std::ffi::CStr = c"/dev/null";
    const ROOT: &std::ffi::CStr = c"/";
    // SAFETY: `sentinel` made it, and keeps it until we are gone.
    let order = unsafe { &*order.cast::<Order>() };
    let number = |fd: c_int| fd as usize;
    kernel(libc::SYS_setsid, [0; 5]);
    kernel(libc::SYS_dup3, [number(order.socket), 0, 0, 0, 0]);
    let place = number(libc::AT_FDCWD);
    let null = kernel(libc::SYS_openat, [place, NULL.as_ptr().addr(), number(libc::O_RDWR), 0, 0]);
    for output in [1, 2] {
        if kernel(libc::SYS_dup3, [null.cast_unsigned(), output, 0, 0, 0]) < 0 {
            // The program finds it missing, and opens the same in its place.
            kernel(libc::SYS_close, [output, 0, 0, 0, 0]);
        }
    }
    // What we hold open nobody else would see closed. Kernels before 5.9 cannot do this; there the program begins at
    // once, which leaves all of it behind.
    let alone = kernel(libc::SYS_close_range, [3, usize::MAX >> 32, 0, 0, 0]) == 0;
    kernel(libc::SYS_chdir, [ROOT.as_ptr().addr(), 0, 0, 0, 0]);
    if alone {
        let mut socket = libc::pollfd { fd: 0, events: libc::POLLRDHUP, revents: 0 };
        let mut patience = order.patience;
        let (socket, patience) = ((&raw mut socket).addr(), (&raw mut patience).addr());
        kernel(libc::SYS_ppoll, [socket, 1, patience, 0, 0]);
    }
    let program = [
        order.program.path.as_ptr().addr(),
        order.words.as_ptr().addr(),
        order.variables.as_ptr().addr(),
    ];
    kernel(libc::SYS_execve, [program[0], program[1], program[2], 0, 0]);
    kernel(libc::SYS_exit, [127, 0, 0, 0, 0]);
    127
}

/// Calls the kernel, without the C library. Pointers are given as their addresses, and must be valid for the call.
#[cfg(target_arch = "x86_64")]
fn kernel(call: libc::c_long, given: [usize; 5]) -> isize {
    let [first, second, third, fourth, fifth] = given;
    let result;
    // SAFETY: the kernel changes no register but these, and no memory but what the arguments lead to.
    unsafe {
        std::arch::asm!(
            "syscall",
            inlateout("rax") call as isize => result,
            in("rdi") first, in("rsi") second, in("rdx") third, in("r10") fourth, in("r8") fifth,
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    result
}

/// Calls the kernel, without the C library. Pointers are given as their addresses, and must be valid for the call.
#[cfg(target_arch = "aarch64")]
fn kernel(call: libc::c_long, given: [usize; 5]) -> isize {
    let [first, second, third, fourth, fifth] = given;
    let result;
    // SAFETY: the kernel changes no register but these, and no memory but what the arguments lead to.
    unsafe {
        std::arch::asm!(
            "svc 0",
            in("x8") call,
            inlateout("x0") first => result,
            in("x1") second, in("x2") third, in("x3") fourth, in("x4") fifth,
            options(nostack),
        );
    }
    result
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::os::unix::net::UnixStream;
    use std::time::Instant;

    use super::*;

    fn sh(line: &str) -> Program {
        Program {
            path: c"/bin/sh".to_owned(),
            words: vec![c"sh".to_owned(), c"-c".to_owned(), CString::new(line).unwrap()],
            variables: vec![c"A=b".to_owned()],
        }
    }

    /// Starts one that writes to a file what it was told and what it is, and gives the file's text when it is there.
    fn told(line: &str, patience: Duration, end: impl FnOnce(UnixStream)) -> String {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("told");
        let line = format!("exec > {0}.new; {line}; mv {0}.new {0}", file.display());
        let (ours, theirs) = UnixStream::pair().unwrap();
        sentinel(&theirs.into(), sh(&line), patience).unwrap();
        end(ours);
        let begun = Instant::now();
        while !file.exists() && begun.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(5));
        }
        std::fs::read_to_string(file).unwrap()
    }

    #[test]
    fn it_is_the_program_once_the_other_end_is_closed_and_hears_what_was_said_before() {
        let line = "cat; echo $A; pwd; ls /proc/self/fd | wc -l";
        let said = told(line, Duration::from_secs(3600), |mut ours| {
            ours.write_all(b"last words\n").unwrap();
        });
        // Its three streams, and what `ls` looks through.
        assert_eq!(said, "last words\nb\n/\n4\n");
    }

    #[test]
    fn it_is_the_program_when_its_patience_is_over() {
        let mut kept = None;
        let said = told("echo here", Duration::from_millis(20), |ours| kept = Some(ours));
        assert_eq!(said, "here\n");
    }

    #[test]
    fn it_holds_nothing_of_ours_open() {
        let (mut reader, writer) = UnixStream::pair().unwrap();
        let (ours, theirs) = UnixStream::pair().unwrap();
        sentinel(&theirs.into(), sh("true"), Duration::from_secs(3600)).unwrap();
        drop(writer);
        assert_eq!(reader.read(&mut [0]).unwrap(), 0, "the sentinel would keep it open");
        drop(ours);
    }

    #[test]
    fn a_nest_that_was_left_is_given_up() {
        for _ in 0..8 {
            told("true", Duration::ZERO, drop);
        }
        let (_ours, theirs) = UnixStream::pair().unwrap();
        sentinel(&theirs.into(), sh("true"), Duration::from_secs(3600)).unwrap();
        // Ours, and those of tests of this module that run beside it.
        assert!(IN_USE.lock().unwrap().len() <= 4);
    }
}
