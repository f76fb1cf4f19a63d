//! Opening the database beside something else.
//!
//! Duty: a thread that opens it before anybody asked, and then does the first thing that is to be done with it: a call's
//! start is written while its sandbox is found. What comes later is done by who has the database then.

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

    /// Opens the database in `folder` in another thread, and does there what is to be done with it. The thread can be
    /// told more.
    pub fn open_beside<T: Send + 'static>(
        folder: Option<&Path>,
        work: impl FnOnce(Result<Self, StoreError>) -> T + Send + 'static,
    ) -> (Beside<T>, Option<Helper>) {
        let Some(folder) = folder else {
            return (Beside::done(work(Err(StoreError::NoFolder))), None);
        };
        match Ahead::take(folder).or_else(|| Ahead::begin(folder.to_owned())) {
            Some(Ahead { folder, helper, opened }) => {
                let open = move || opened.join().unwrap_or_else(|| Self::open_now(&folder));
                (helper.ask(|| Some(work(open()))), Some(helper))
            }
            // There are no more threads: then it takes a moment longer.
            None => (Beside::done(work(Self::open_now(folder))), None),
        }
    }

    /// The one in this folder that was opened ahead.
    pub(super) fn taken(folder: &Path) -> Option<Result<Self, StoreError>> {
        Ahead::take(folder)?.opened.join()
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
            let (opened, helper) = Store::open_beside(Some(folder), |opened| opened.map(|_| 7));
            assert!(opened.join().unwrap().unwrap() == 7 && helper.is_some());
        }
        let (none, helper) = Store::open_beside(None, |opened| opened.map(drop));
        assert!(matches!(none.join(), Some(Err(StoreError::NoFolder))) && helper.is_none());
        let (dead, _) = Store::open_beside(Some(&one), |_| -> u8 { panic!("as a bug would") });
        assert_eq!(dead.join(), None);
    }
}
