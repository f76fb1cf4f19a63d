//! A time limit for measured commands: a command on a stuck engine would never end.

use std::os::fd::OwnedFd;
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// How often it is looked for them: rarely, since it happens beside what is measured.
const EVERY: Duration = Duration::from_secs(1);

/// A command that is under way.
struct UnderWay {
    /// Itself, and not its number, which may be another's by then.
    process: OwnedFd,
    until: Instant,
    ended: Arc<AtomicBool>,
}

static ALL: Mutex<Vec<UnderWay>> = Mutex::new(Vec::new());

/// Sees to it that a command ends by then, from now until [`over`](Self::over).
pub struct Deadline(Option<Arc<AtomicBool>>);

impl Deadline {
    /// For this command, which has begun. Where the kernel cannot name it, it has none.
    pub fn of(child: &Child, longest: Duration) -> Self {
        static WATCHING: Once = Once::new();
        WATCHING.call_once(|| drop(std::thread::spawn(watch)));
        let Ok(process) = pidfd_open(Pid::from_child(child), PidfdFlags::empty()) else {
            return Self(None);
        };
        let ended = Arc::new(AtomicBool::new(false));
        let until = Instant::now() + longest;
        let one = UnderWay { process, until, ended: Arc::clone(&ended) };
        ALL.lock().unwrap_or_else(PoisonError::into_inner).push(one);
        Self(Some(ended))
    }

    /// The command has ended; whether that was our doing.
    pub fn over(self) -> bool {
        let Some(ended) = self.0 else { return false };
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|one| !Arc::ptr_eq(&one.ended, &ended));
        ended.load(Ordering::Relaxed)
    }
}

fn watch() {
    loop {
        std::thread::sleep(EVERY);
        let now = Instant::now();
        for one in ALL.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            if one.until <= now && pidfd_send_signal(&one.process, Signal::KILL).is_ok() {
                one.ended.store(true, Ordering::Relaxed);
            }
        }
    }
}
