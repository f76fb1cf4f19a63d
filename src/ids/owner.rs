//! Which process something belongs to, across reuse of process numbers and restarts of the machine.

use std::io;
use std::os::unix::fs::MetadataExt;

/// The process that a sandbox or a record belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// Its user.
    pub uid: u32,
    /// The machine, its boot and the process namespace, in which `pid` means something.
    pub place: String,
    /// Its number.
    pub pid: u32,
    /// When it started, in the kernel's own count: numbers are used again.
    pub started: u64,
}

impl Owner {
    /// This process.
    ///
    /// # Errors
    /// `/proc` cannot be read.
    pub fn this() -> io::Result<Self> {
        // It is asked once for every call that runs, and is the same for the life of a process.
        static THIS: std::sync::OnceLock<Owner> = std::sync::OnceLock::new();
        match THIS.get() {
            Some(known) => Ok(known.clone()),
            None => Self::of(std::process::id()).map(|found| THIS.get_or_init(|| found).clone()),
        }
    }

    /// A process of this user.
    ///
    /// # Errors
    /// There is none of this number, or `/proc` cannot be read.
    pub fn of(pid: u32) -> io::Result<Self> {
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
        let namespace = std::fs::metadata("/proc/self/ns/pid")?.ino();
        let place = format!("{}-{namespace}", boot.trim());
        let started = Self::started(pid).ok_or_else(|| io::Error::other("/proc/PID/stat"))?;
        Ok(Self { uid: rustix::process::getuid().as_raw(), place, pid, started })
    }
}

impl Owner {
    /// Whether this process is known to be dead: its number is free or another's, or the machine was
    /// started anew. Of another process namespace nothing is known.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        let Ok(me) = Self::this() else { return false };
        if me.place == self.place {
            return Self::started(self.pid) != Some(self.started);
        }
        let boot = |place: &str| place.rsplit_once('-').map(|(boot, _)| boot.to_owned());
        boot(&me.place) != boot(&self.place)
    }

    /// When a process started, or `None` if there is none of that number.
    #[must_use]
    pub fn started(pid: u32) -> Option<u64> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name in brackets may hold anything; what follows its end does not.
        stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
    }
}
