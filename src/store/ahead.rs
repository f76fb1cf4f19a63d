//! Opening the database beside something else.
//!
//! Duty: a thread that opens it before anybody asked. What is written is written by who has the database then.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::open::{FILE, Store, StoreError};
use crate::helper::{Beside, Helper};

/// One that is being opened before anybody asked.
static AHEAD: Mutex<Option<Ahead>> = Mutex::new(None);

fn ahead() -> MutexGuard<'static, Option<Ahead>> {
    AHEAD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A database that is being opened.
#[derive(Debug)]
struct Ahead {
    folder: PathBuf,
    helper: Helper,
    opened: Beside<Result<Store, StoreError>>,
}

impl Ahead {
    /// Begins to; `None` if there is nobody to help. What has to be brought up to date first is not opened: the words of the
    /// call may turn out to be a question for help.
    fn begin(folder: PathBuf) -> Option<Self> {
        let helper = Helper::start()?;
        let opening = folder.clone();
        let opened = helper.ask(move || Store::open_if_ready(&opening));
        Some(Self { folder, helper, opened })
    }

    /// The one that was begun for this folder, once.
    fn take(folder: &Path) -> Option<Self> {
        ahead().take_if(|ahead| ahead.folder == folder)
    }
}

impl Store {
    /// Begins to open it in a thread of its own, for the next who does: it takes as long as finding out what to do, on a
    /// processor that has nothing else to do then. What goes wrong is told to who opens it. Where there is none yet,
    /// nothing is made: whether a call may be recorded there is still to be found out.
    pub fn open_ahead(folder: Option<PathBuf>) {
        if let Some(folder) = folder.filter(|folder| folder.join(FILE).is_file()) {
            *ahead() = Ahead::begin(folder);
        }
    }

    /// Opens the database in `folder` in another thread, which can be told more.
    #[must_use]
    pub fn open_beside(folder: Option<&Path>) -> (Opening, Option<Helper>) {
        let begun = folder
            .and_then(|folder| Ahead::take(folder).or_else(|| Ahead::begin(folder.to_owned())));
        let (opened, helper) = begun.map(|begun| (begun.opened, begun.helper)).unzip();
        (Opening { folder: folder.map(Path::to_owned), opened }, helper)
    }

    /// The one in this folder that was opened ahead.
    pub(super) fn taken(folder: &Path) -> Option<Result<Self, StoreError>> {
        Ahead::take(folder)?.opened.join()
    }
}

/// A database that somebody will want, and that a thread is opening meanwhile.
#[derive(Debug)]
pub struct Opening {
    folder: Option<PathBuf>,
    opened: Option<Beside<Result<Store, StoreError>>>,
}

impl Opening {
    /// The database, once it is open. Where no thread could open it, or it has to be made or brought up to date first, that
    /// is done here.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub fn join(self) -> Result<Store, StoreError> {
        let folder = self.folder.ok_or(StoreError::NoFolder)?;
        self.opened.and_then(Beside::join).unwrap_or_else(|| Store::open_now(&folder))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_opened_ahead_is_used_once_and_by_who_asks_for_its_folder() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let [one, other] = [&one, &other].map(|folder| folder.path().join("runner"));
        Store::open_ahead(Some(one.clone()));
        assert!(
            !one.exists() && Ahead::take(&one).is_none(),
            "nothing is made before anybody asks"
        );
        drop(Store::open(Some(&one)).unwrap());
        Store::open_ahead(Some(one.clone()));
        assert!(Store::taken(&other).is_none());
        assert_eq!(Store::taken(&one).unwrap().unwrap().folder(), one);
        assert!(Store::taken(&one).is_none());
        // Where nothing was opened ahead it is opened now, as where there is none.
        for folder in [&one, &other] {
            let (opening, helper) = Store::open_beside(Some(folder));
            assert!(opening.join().unwrap().folder() == folder && helper.is_some());
        }
        let (none, helper) = Store::open_beside(None);
        assert!(matches!(none.join(), Err(StoreError::NoFolder)) && helper.is_none());
    }
}
