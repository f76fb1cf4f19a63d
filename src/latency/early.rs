//! Work that a front starts before it knows the call: a helper thread, and opening the database in it.
//!
//! Duty: one value, made by the front and passed to its call, which takes over the work. If the value is empty, or is about
//! another folder, the call starts the work itself. Two calls never share one value's work.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::helper::{Beside, Helper};
use crate::store::{Store, StoreError};

/// Started work, until a call takes it. By default there is none.
#[derive(Debug, Clone, Default)]
pub struct Early(Arc<Mutex<Begun>>);

#[derive(Debug, Default)]
enum Begun {
    /// Nothing was started, or all was taken.
    #[default]
    Nothing,
    /// A thread without a task.
    Thread(Helper),
    /// A thread that opens a database.
    Store(Ahead),
}

/// A database that is being opened.
#[derive(Debug)]
struct Ahead {
    folder: PathBuf,
    helper: Helper,
    opened: Beside<Result<Store, StoreError>>,
}

impl Ahead {
    /// Starts opening it. A database that needs a migration is not opened: the command line may turn out to ask for help
    /// only.
    fn begin(folder: PathBuf, helper: Helper) -> Self {
        let opening = folder.clone();
        let opened = helper.ask(move || Store::open_if_ready(&opening));
        Self { folder, helper, opened }
    }
}

impl Early {
    /// Starts a thread.
    #[must_use]
    pub fn start() -> Self {
        let begun = Helper::start().map_or(Begun::Nothing, Begun::Thread);
        Self(Arc::new(Mutex::new(begun)))
    }

    /// Starts opening the database in this folder, while the main thread parses and decides. An error is returned to the call
    /// that takes the database. A missing database is not created: it is not known yet whether a call will be recorded
    /// there.
    pub fn open_store(&self, folder: Option<PathBuf>) {
        let Some(folder) = folder.filter(|folder| Store::is_in(folder)) else { return };
        if let Some(helper) = self.take_thread() {
            *self.lock() = Begun::Store(Ahead::begin(folder, helper));
        }
    }

    /// The thread that was started, or a new one; `None` if there are no more threads.
    fn take_thread(&self) -> Option<Helper> {
        let mut begun = self.lock();
        match std::mem::take(&mut *begun) {
            Begun::Thread(helper) => return Some(helper),
            other => *begun = other,
        }
        drop(begun);
        Helper::start()
    }

    /// The database of this folder, once.
    fn take_store(&self, folder: &Path) -> Option<Ahead> {
        let mut begun = self.lock();
        match std::mem::take(&mut *begun) {
            Begun::Store(ahead) if ahead.folder == folder => Some(ahead),
            other => {
                *begun = other;
                None
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Begun> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store {
    /// The database in `folder`: the one that was opened early, or opened now.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub fn open_early(folder: Option<&Path>, early: &Early) -> Result<Self, StoreError> {
        let begun = folder.and_then(|folder| early.take_store(folder)?.opened.join());
        begun.unwrap_or_else(|| Self::open(folder))
    }

    /// Opens the database in `folder` in another thread, and returns that thread for more tasks.
    #[must_use]
    pub fn open_beside(folder: Option<&Path>, early: &Early) -> (Opening, Option<Helper>) {
        let begin = |folder: &Path| Some(Ahead::begin(folder.to_owned(), early.take_thread()?));
        let begun = folder.and_then(|folder| early.take_store(folder).or_else(|| begin(folder)));
        let (opened, helper) = begun.map(|begun| (begun.opened, begun.helper)).unzip();
        (Opening { folder: folder.map(Path::to_owned), opened }, helper)
    }
}

/// A database that a thread is opening.
#[derive(Debug)]
pub struct Opening {
    folder: Option<PathBuf>,
    opened: Option<Beside<Result<Store, StoreError>>>,
}

impl Opening {
    /// Waits for the database. If no thread could open it, or it must be created or migrated first, that is done here.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub fn join(self) -> Result<Store, StoreError> {
        let folder = self.folder.ok_or(StoreError::NoFolder)?;
        self.opened.and_then(Beside::join).unwrap_or_else(|| Store::open(Some(&folder)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_begun_early_is_used_once_and_for_its_folder() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let [one, other] = [&one, &other].map(|folder| folder.path().join("runner"));
        let early = Early::start();
        early.open_store(Some(one.clone()));
        assert!(!one.exists(), "nothing is made before a call asks");
        assert!(early.take_store(&one).is_none());
        drop(Store::open(Some(&one)).unwrap());
        early.open_store(Some(one.clone()));
        assert!(early.take_store(&other).is_none());
        assert!(Early::default().take_store(&one).is_none(), "it is not another call's");
        assert!(matches!(*early.lock(), Begun::Store(_)));
        assert_eq!(Store::open_early(Some(&one), &early).unwrap().folder(), one);
        assert!(early.take_store(&one).is_none());
        // Where nothing was begun it is opened now, as where there is none.
        for folder in [&one, &other] {
            let (opening, helper) = Store::open_beside(Some(folder), &early);
            assert!(opening.join().unwrap().folder() == folder && helper.is_some());
        }
        let (none, helper) = Store::open_beside(None, &early);
        assert!(matches!(none.join(), Err(StoreError::NoFolder)) && helper.is_none());
    }
}
