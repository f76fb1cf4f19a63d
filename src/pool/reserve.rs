//! Room in the pool: counted under one lock, so that no storm makes more than may wait.
//!
//! Whoever makes a sandbox holds a locked file meanwhile; the kernel drops the lock at any death, and the place is
//! free again. Draining counts an epoch up: what is being made then is not added afterwards.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::entry::{Class, Entry, Pool, PoolError};
use super::key::{Key, Lane};
use crate::config;
use crate::engine::CallId;
use crate::sys::shared_file;

/// Places of sandboxes that are being made are files with this ending.
const ENDING: &str = "making";

/// The pool's lock; it holds the epoch.
const LOCK: &str = "lock";

/// With less than one part in this many of the machine's memory left, the pool shrinks.
const PRESSURE: u64 = 16;

/// A place in the pool, for one sandbox that is being made.
#[derive(Debug)]
pub struct Place {
    /// Locked as long as the maker lives.
    _held: File,
    path: PathBuf,
    epoch: u64,
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// What came of asking for a place.
#[derive(Debug)]
pub struct Reserved {
    /// The place, if there is one.
    pub place: Option<Place>,
    /// Entries that were given up; their sandboxes are the caller's to remove.
    pub given_up: Vec<Entry>,
}

impl Pool {
    /// Asks for a place for a sandbox of this key. Earlier keys of the lane are given up, and, where the pool is full,
    /// the oldest of other keys.
    ///
    /// # Errors
    /// The folder cannot be used.
    pub fn reserve(
        &self,
        label: &CallId,
        (key, lane): (&Key, &Lane),
        class: Class,
        settings: &config::Pool,
    ) -> Result<Reserved, PoolError> {
        let lock = self.lock()?;
        let (mut entries, mut given_up) = (Vec::new(), Vec::new());
        for entry in self.entries() {
            if entry.is_over() {
                self.take(&entry);
            } else if entry.lane == *lane && entry.key != *key {
                given_up.push(entry);
            } else {
                entries.push(entry);
            }
        }
        let making = self.making()?;
        let short = is_short_of_memory();
        let fits = |entries: &[Entry]| {
            let waiting = entries.iter().map(|entry| entry.class.cost());
            let cost: u64 = waiting.chain(making.iter().map(|class| class.cost())).sum();
            entries.len() + making.len() < settings.size
                && cost + class.cost() <= settings.memory
                && !short
        };
        while !fits(&entries) {
            let Some(at) = entries.iter().position(|entry| short || entry.key != *key) else {
                break;
            };
            given_up.push(entries.remove(at));
            if short {
                break;
            }
        }
        given_up.retain(|entry| self.take(entry));
        let place = if fits(&entries) { Some(self.place(label, class, lock.epoch)?) } else { None };
        Ok(Reserved { place, given_up })
    }

    /// Adds what was made; `false` if the pool was drained meanwhile.
    ///
    /// # Errors
    /// The folder cannot be used.
    pub fn publish(&self, place: Place, entry: &Entry) -> Result<bool, PoolError> {
        let lock = self.lock()?;
        if lock.epoch != place.epoch {
            return Ok(false);
        }
        self.put(entry)?;
        Ok(true)
    }

    /// Takes every entry, and makes sure that nothing that is being made is added.
    ///
    /// # Errors
    /// The folder cannot be used.
    pub fn drain(&self) -> Result<Vec<Entry>, PoolError> {
        let mut lock = self.lock()?;
        lock.count_up().map_err(PoolError::at("write", &self.folder()?.join(LOCK)))?;
        Ok(self.entries().into_iter().filter(|entry| self.take(entry)).collect())
    }

    fn place(&self, label: &CallId, class: Class, epoch: u64) -> Result<Place, PoolError> {
        let path = self.folder()?.join(format!("{label}.{ENDING}"));
        let make = || {
            let mut file = shared_file(&path)?;
            flock(&file, FlockOperation::NonBlockingLockExclusive)?;
            file.write_all(class.word().as_bytes())?;
            Ok(file)
        };
        let held = make().map_err(PoolError::at("write", &path))?;
        Ok(Place { _held: held, path, epoch })
    }

    /// What is being made right now; the places of dead makers are removed.
    fn making(&self) -> Result<Vec<Class>, PoolError> {
        let folder = self.folder()?;
        let listed = std::fs::read_dir(folder).map_err(PoolError::at("read", folder))?;
        let mut making = Vec::new();
        for path in listed.filter_map(|entry| Some(entry.ok()?.path())) {
            if path.extension().is_none_or(|ending| ending != ENDING) {
                continue;
            }
            let Ok(mut file) = File::open(&path) else { continue };
            if flock(&file, FlockOperation::NonBlockingLockShared) == Err(Errno::WOULDBLOCK) {
                let mut word = String::new();
                let _ = file.read_to_string(&mut word);
                making.push(if word == Class::Tool.word() { Class::Tool } else { Class::Read });
            } else {
                let _ = std::fs::remove_file(&path);
            }
        }
        Ok(making)
    }

    /// How many are being made right now.
    ///
    /// # Errors
    /// The folder cannot be used.
    pub fn being_made(&self) -> Result<usize, PoolError> {
        let _lock = self.lock()?;
        Ok(self.making()?.len())
    }

    fn lock(&self) -> Result<Lock, PoolError> {
        let path = self.folder()?.join(LOCK);
        Lock::take(&path).map_err(PoolError::at("lock", &path))
    }
}

/// The pool's lock, held.
struct Lock {
    file: File,
    epoch: u64,
}

impl Lock {
    fn take(path: &Path) -> io::Result<Self> {
        let mut file = shared_file(path)?;
        while let Err(error) = flock(&file, FlockOperation::LockExclusive) {
            if error != Errno::INTR {
                return Err(error.into());
            }
        }
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        Ok(Self { file, epoch: text.trim().parse().unwrap_or(0) })
    }

    fn count_up(&mut self) -> io::Result<()> {
        self.epoch += 1;
        self.file.set_len(0)?;
        self.file.seek(SeekFrom::Start(0))?;
        write!(self.file, "{}", self.epoch)
    }
}

/// Whether the machine has little memory left. What cannot be read counts as enough: the kernel ends waiting
/// sandboxes first in any case.
fn is_short_of_memory() -> bool {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let figure = |name: &str| -> Option<u64> {
        text.lines()
            .find_map(|line| line.strip_prefix(name)?.split_whitespace().next()?.parse().ok())
    };
    matches!((figure("MemTotal:"), figure("MemAvailable:")), (Some(all), Some(left)) if left < all / PRESSURE)
}
