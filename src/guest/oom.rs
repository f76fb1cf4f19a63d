//! Whom the kernel ends when the machine, or the sandbox, runs out of memory.
//!
//! What waits goes first, since nobody loses anything with it; then commands; then the guest, which must live to tell;
//! and all of them before anything of the host's. A process may raise its own score, and lower it as far as it was when
//! the container was made. Best effort: without it the kernel takes the largest process.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// The guest of a call. As the engine makes the container (`src/engine/docker/settings.rs`).
const TELLS: &str = "600";

/// A command, or the program of a tool.
const WORKS: &str = "800";

/// A guest that waits, and what it has started meanwhile. There is none above this.
const WAITS: &str = "1000";

/// The guest's own file.
static OWN: OnceLock<File> = OnceLock::new();

/// Whether somebody has come.
static AWAKE: AtomicBool = AtomicBool::new(false);

/// The guest waits, and so will what it starts. The file is opened now: a process that nobody can look into may not open
/// its own any more.
pub fn wait() {
    if let Ok(file) = score("self") {
        let _ = OWN.set(file);
    }
    set(WAITS);
}

/// Somebody has come for it, and for what it has started.
pub fn wake(started: Option<u32>) {
    AWAKE.store(true, Ordering::Relaxed);
    set(TELLS);
    if let Some(process) = started {
        let file = score(&process.to_string());
        let _ = file.and_then(|file| file.write_at(WORKS.as_bytes(), 0));
    }
}

/// Starts something that is to go before the guest. It has its score from its first moment, and so has what it starts.
pub fn start<T>(spawn: impl FnOnce() -> T) -> T {
    if !AWAKE.load(Ordering::Relaxed) {
        return spawn();
    }
    set(WORKS);
    let started = spawn();
    set(TELLS);
    started
}

/// Sets the score of this process, before it is the guest.
pub fn set_own(figure: i32) {
    if let Ok(file) = score("self") {
        let _ = file.write_at(figure.to_string().as_bytes(), 0);
    }
}

fn score(process: &str) -> io::Result<File> {
    OpenOptions::new().write(true).open(format!("/proc/{process}/oom_score_adj"))
}

fn set(figure: &str) {
    if let Some(own) = OWN.get() {
        let _ = own.write_at(figure.as_bytes(), 0);
    }
}
