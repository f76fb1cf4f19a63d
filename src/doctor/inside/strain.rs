//! What uses up a machine: each in a call of its own, which its limit must end or hold.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::VERB;
use crate::doctor::seen::Seen;
use crate::sys::forbidden::{ignore_termination, new_session};
use crate::sys::processor_time;

/// How much memory is filled at a time.
const BLOCK: usize = 1 << 20;

/// How long what must be ended goes on, if nothing ends it.
const AT_MOST: Duration = Duration::from_secs(20);

/// Most threads that use processors at once.
const MOST_PROCESSORS: usize = 8;

/// Fills so much memory; how much it was.
pub fn memory(bytes: u64) -> u64 {
    let mut all: Vec<Vec<u8>> = Vec::new();
    let mut filled = 0;
    while filled < bytes {
        // Bytes other than zero: pages that nothing has written to are no memory.
        all.push(vec![1; BLOCK]);
        filled += BLOCK as u64;
    }
    std::hint::black_box(&all);
    filled
}

/// Starts so many threads that live at once; how many there were.
pub fn threads(count: u64) -> u64 {
    let over = AtomicBool::new(false);
    let mut started = 0;
    std::thread::scope(|scope| {
        let wait = || {
            while !over.load(Ordering::Relaxed) {
                std::thread::park_timeout(Duration::from_millis(20));
            }
        };
        let small = || std::thread::Builder::new().stack_size(64 << 10);
        while started < count && small().spawn_scoped(scope, wait).is_ok() {
            started += 1;
        }
        over.store(true, Ordering::Relaxed);
    });
    started
}

/// Uses every processor for so long; how much of one processor it got, in thousandths.
pub fn processors(millis: u64) -> u64 {
    let (begun, long) = (Instant::now(), Duration::from_millis(millis));
    let before = processor_time().unwrap_or_default();
    let count = std::thread::available_parallelism().map_or(2, |it| it.get().max(2));
    std::thread::scope(|scope| {
        for _ in 0..count.min(MOST_PROCESSORS) {
            scope.spawn(|| while begun.elapsed() < long {});
        }
    });
    let used = processor_time().unwrap_or_default().saturating_sub(before);
    let share = used.as_secs_f64() / begun.elapsed().as_secs_f64();
    (share * 1000.0).round() as u64
}

/// Uses one processor until it is ended, or for so long that a limit should have ended it.
pub fn spin() -> u64 {
    let begun = Instant::now();
    while begun.elapsed() < AT_MOST {}
    0
}

/// Writes so much output.
pub fn output(bytes: u64) -> u8 {
    let line = [b"0123456789abcdef".repeat(63).as_slice(), b"\n"].concat();
    let mut out = std::io::stdout().lock();
    let mut written = 0;
    while written < bytes && out.write_all(&line).is_ok() {
        written += line.len() as u64;
    }
    0
}

/// Does not end when it is asked to.
pub fn hang() -> u8 {
    ignore_termination();
    std::thread::sleep(AT_MOST);
    0
}

/// Leaves a process behind, in a session of its own, and says that it is there.
pub fn linger(word: &str) -> u8 {
    let Ok(program) = std::env::current_exe() else { return 1 };
    let null = Stdio::null;
    let left = Command::new(program)
        .args([VERB, "stay", word])
        .stdin(null())
        .stdout(null())
        .stderr(null())
        .spawn();
    u8::from(left.is_err())
}

/// Says which variables of the host there are, and stays.
pub fn stay_on(word: &str) -> u8 {
    let mut seen = Seen::default();
    let wrong = |why: &str| std::io::Error::other(why.to_owned());
    let own = std::env::var_os("PATH").ok_or_else(|| wrong("there is no PATH"));
    seen.control("environment", "find a variable of its own", own);
    let theirs = std::env::vars().find(|(_, value)| value.contains(word));
    let theirs = theirs.ok_or_else(|| wrong("there is none"));
    seen.attack("environment", "find a variable of the host", theirs);
    super::print(&seen);
    stay()
}

/// Stays until it is ended, or for so long that its sandbox should be gone.
pub fn stay() -> u8 {
    ignore_termination();
    let _ = new_session();
    std::thread::sleep(AT_MOST);
    0
}
