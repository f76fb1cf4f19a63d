//! Room in the pool: counted under one lock, so that no storm makes more than may wait.
//!
//! A process that makes a sandbox holds a locked file meanwhile; the kernel drops the lock at any death, and the place is
//! free again. Draining counts an epoch up: what is being made then is not added afterwards.
//!
//! A project's own figures bound what its own calls leave waiting; only the user's and the managed ones bound all of
//! it, so no repository takes away what waits for another.

use std::ffi::OsStr;
use std::io;
use std::path::Path;

use super::entry::{ENDING, Entry, NEW, Pool, PoolError};
use super::held::{CLAIMED, Hands, Held, MAKING, Trace, look};
use super::order::Order;
use crate::config;
use crate::sys::lease::{Exclusive, Lease};

/// The pool's lock; it holds the epoch.
const LOCK: &str = "lock";

/// With less than one part in this many of the machine's memory left, nothing waits.
const PRESSURE: u64 = 16;

/// A place in the pool, for one sandbox that is being made. Dropped without [`over`](Self::over), its file stays:
/// the next process finds it, and removes the sandbox.
#[derive(Debug)]
pub struct Reservation {
    held: Held,
    epoch: u64,
}

impl Reservation {
    /// Nothing was made, or it is gone.
    pub fn over(self) {
        self.held.over();
    }
}

/// What came of adding a sandbox.
#[derive(Debug)]
pub struct Published {
    /// The place, given back: no call would claim the new sandbox any more. The sandbox is the caller's to end.
    pub refused: Option<Reservation>,
    /// Sandboxes that were given up; they are the caller's to end.
    pub given_up: Vec<Held>,
}

/// What came of asking for a place.
#[derive(Debug)]
pub struct Reserved {
    /// The place, if there is one.
    pub place: Option<Reservation>,
    /// Sandboxes that were given up, and those of dead processes; they are the caller's to end.
    pub given_up: Vec<Held>,
}

impl Pool {
    /// Asks for a place for a sandbox by this order. Earlier keys of the lane and earlier forms of the policy are given
    /// up, then what is too much, and, where the pool is full, the oldest of other keys.
    ///
    /// # Errors
    /// The folder cannot be used.
    pub fn reserve(&self, order: &Order, trace: Trace) -> Result<Reserved, PoolError> {
        self.reserve_on(&Machine::now(), order, trace)
    }

    fn reserve_on(
        &self,
        machine: &Machine,
        order: &Order,
        trace: Trace,
    ) -> Result<Reserved, PoolError> {
        let lock = self.lock()?;
        let (making, mut given_up) = self.in_hands()?;
        let mut counting = Counting { making, order, cost: trace.cost, waiting: Vec::new() };
        let mut leaving = Vec::new();
        for entry in self.entries() {
            if entry.is_over() {
                if let Some(held) = self.take(&entry) {
                    held.over();
                }
            } else if order.replaces(&entry) {
                leaving.push(entry);
            } else {
                counting.waiting.push(entry);
            }
        }
        let of_project = |project: &Path| project == order.project;
        let all = |_: &Path| true;
        let (own, whole) = (&order.bounds.own, &order.bounds.whole);
        let can_fit = counting.can_fit(&of_project, own) && counting.can_fit(&all, whole);
        leaving.extend(counting.shrink(&of_project, own, can_fit));
        leaving.extend(counting.shrink(&all, whole, can_fit));
        let short = machine.is_short_of_memory();
        if short {
            leaving.append(&mut counting.waiting);
        }
        let fits = !short && counting.has_room(&of_project, own) && counting.has_room(&all, whole);
        given_up.extend(leaving.iter().filter_map(|entry| self.take(entry)));
        let place = if fits { Some(self.place(trace, lock.epoch)?) } else { None };
        Ok(Reserved { place, given_up })
    }

    /// Adds what was made by this order; the place is given back if the pool was drained meanwhile. Two orders for one
    /// lane can be carried out at once, and neither sees the other's sandbox when it asks for a place: the later one's stays.
    ///
    /// # Errors
    /// The folder cannot be used.
    pub fn publish(
        &self,
        place: Reservation,
        order: &Order,
        entry: &Entry,
    ) -> Result<Published, PoolError> {
        let lock = self.lock()?;
        let rivals = || self.entries().into_iter().filter(|rival| order.replaces(rival));
        if lock.epoch != place.epoch || rivals().any(|rival| rival.made > entry.made) {
            return Ok(Published { refused: Some(place), given_up: Vec::new() });
        }
        let given_up = rivals().filter_map(|rival| self.take(&rival)).collect();
        self.put(entry)?;
        place.over();
        Ok(Published { refused: None, given_up })
    }

    /// Takes every entry, and what dead processes left, and makes sure that nothing that is being made is added.
    ///
    /// # Errors
    /// The folder cannot be used.
    pub fn drain(&self) -> Result<Vec<Held>, PoolError> {
        let mut lock = self.lock()?;
        lock.count_up().map_err(PoolError::at("write", &self.folder()?.join(LOCK)))?;
        let (_, mut held) = self.in_hands()?;
        held.extend(self.entries().iter().filter_map(|entry| self.take(entry)));
        Ok(held)
    }

    /// What dead processes left.
    ///
    /// # Errors
    /// The folder cannot be used.
    pub fn left_over(&self) -> Result<Vec<Held>, PoolError> {
        let _lock = self.lock()?;
        Ok(self.in_hands()?.1)
    }

    fn place(&self, trace: Trace, epoch: u64) -> Result<Reservation, PoolError> {
        let path = self.folder()?.join(format!("{}.{MAKING}", trace.label));
        let make = || Lease::with_content(&path, &serde_json::to_vec(&trace)?);
        let lease = make().map_err(PoolError::at("write", &path))?;
        Ok(Reservation { held: Held::new(trace, lease, None), epoch })
    }

    /// What is being made right now, and what dead processes had in their hands. The pool's lock is held.
    fn in_hands(&self) -> Result<(Vec<Trace>, Vec<Held>), PoolError> {
        let folder = self.folder()?;
        let listed = std::fs::read_dir(folder).map_err(PoolError::at("read", folder))?;
        let (mut making, mut dead) = (Vec::new(), Vec::new());
        for path in listed.filter_map(|entry| Some(entry.ok()?.path())) {
            let is = |ending: &str| path.extension().is_some_and(|found| found == ending);
            if is(NEW) {
                // Its writer held the lock, and died with it. What it had made has a file that says so.
                let _ = std::fs::remove_file(&path);
            }
            if is(ENDING) && !self.is_entry(&path) {
                // Of another version of this program, or damaged: no call will claim it.
                if let Some(Hands::Dead(held)) = look(&path) {
                    dead.push(held);
                }
            }
            if !is(MAKING) && !is(CLAIMED) {
                continue;
            }
            // Before the file is read: a process that claims a waiting sandbox removes this file first, so one that is there
            // afterwards tells of nothing that was claimed since.
            let waits = path.file_stem().and_then(OsStr::to_str).is_some_and(|it| self.waits(it));
            match look(&path) {
                Some(Hands::Living(trace)) if is(MAKING) => making.push(trace),
                // It waits: its maker died when all was done but this file.
                Some(Hands::Dead(held)) if waits => held.over(),
                Some(Hands::Dead(held)) => dead.push(held),
                Some(Hands::Living(_)) | None => {}
            }
        }
        Ok((making, dead))
    }

    fn is_entry(&self, path: &Path) -> bool {
        path.file_name()
            .and_then(|name| name.to_str())
            .is_some_and(|name| self.read(name).is_some())
    }

    /// How many are being made right now.
    ///
    /// # Errors
    /// The folder cannot be used.
    pub fn being_made(&self) -> Result<usize, PoolError> {
        let _lock = self.lock()?;
        // What the dead had is looked for by who can end it.
        Ok(self.in_hands()?.0.len())
    }

    fn lock(&self) -> Result<Lock, PoolError> {
        let path = self.folder()?.join(LOCK);
        Lock::take(&path).map_err(PoolError::at("lock", &path))
    }
}

/// What counts against the bounds.
struct Counting<'a> {
    making: Vec<Trace>,
    /// Oldest first.
    waiting: Vec<Entry>,
    order: &'a Order,
    /// What one more costs.
    cost: u64,
}

impl Counting<'_> {
    /// How many there are of these projects, and what they cost.
    fn count(&self, of: &dyn Fn(&Path) -> bool) -> (usize, u64) {
        self.count_where(of, |_| true)
    }

    /// The same, of those that wait only these.
    fn count_where(
        &self,
        of: &dyn Fn(&Path) -> bool,
        counts: impl Fn(&Entry) -> bool,
    ) -> (usize, u64) {
        let waiting = self.waiting.iter().filter(|entry| counts(entry));
        let waiting = waiting.map(|entry| (&entry.project, entry.cost));
        let making = self.making.iter().map(|trace| (&trace.project, trace.cost));
        let counted = waiting.chain(making).filter(|(project, _)| of(project));
        counted.fold((0, 0), |(count, cost), (_, one)| (count + 1, cost + one))
    }

    fn has_room(&self, of: &dyn Fn(&Path) -> bool, bounds: &config::Pool) -> bool {
        self.fits(self.count(of), bounds)
    }

    /// Whether there would be room if nothing of another key waited. If not, no sandbox is given up in vain.
    fn can_fit(&self, of: &dyn Fn(&Path) -> bool, bounds: &config::Pool) -> bool {
        self.fits(self.count_where(of, |entry| entry.key == self.order.key), bounds)
    }

    fn fits(&self, (count, cost): (usize, u64), bounds: &config::Pool) -> bool {
        count < bounds.size && cost + self.cost <= bounds.memory
    }

    /// Gives up what is too much, of other keys first, and then what stands in the way of one more, if that can fit.
    fn shrink(
        &mut self,
        of: &dyn Fn(&Path) -> bool,
        bounds: &config::Pool,
        can_fit: bool,
    ) -> Vec<Entry> {
        let mut leaving = Vec::new();
        loop {
            let (count, cost) = self.count(of);
            let too_much = count > bounds.size || cost > bounds.memory;
            if !too_much && (!can_fit || self.has_room(of, bounds)) {
                return leaving;
            }
            let oldest = |own_key: bool| {
                self.waiting.iter().position(|entry| {
                    of(&entry.project) && (own_key || entry.key != self.order.key)
                })
            };
            let Some(at) = oldest(false).or_else(|| oldest(true).filter(|_| too_much)) else {
                return leaving;
            };
            leaving.push(self.waiting.remove(at));
        }
    }
}

/// The pool's lock, held.
struct Lock {
    lease: Lease<Exclusive>,
    epoch: u64,
}

impl Lock {
    fn take(path: &Path) -> io::Result<Self> {
        let lease = Lease::wait(path)?;
        let text = String::from_utf8(lease.read()?).map_err(io::Error::other)?;
        Ok(Self { lease, epoch: text.trim().parse().unwrap_or(0) })
    }

    fn count_up(&mut self) -> io::Result<()> {
        self.epoch += 1;
        self.lease.replace(self.epoch.to_string().as_bytes())
    }
}

/// What the kernel says of the machine's memory.
struct Machine(String);

impl Machine {
    fn now() -> Self {
        Self(std::fs::read_to_string("/proc/meminfo").unwrap_or_default())
    }

    /// Whether there is little left. What cannot be read counts as enough: the kernel ends waiting sandboxes first in any
    /// case.
    fn is_short_of_memory(&self) -> bool {
        let figure = |name: &str| -> Option<u64> {
            let mut lines = self.0.lines();
            lines.find_map(|line| line.strip_prefix(name)?.split_whitespace().next()?.parse().ok())
        };
        matches!((figure("MemTotal:"), figure("MemAvailable:")), (Some(all), Some(left)) if left < all / PRESSURE)
    }
}

#[cfg(test)]
#[path = "reserve_tests.rs"]
mod tests;
