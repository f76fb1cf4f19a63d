//! What a call has made itself: it may move that without asking anybody.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// Entries that a call made where nothing was, by their places below the workspace.
#[derive(Debug, Default)]
pub(super) struct Made(Mutex<BTreeSet<String>>);

impl Made {
    /// It made this one.
    pub(super) fn add(&self, path: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_owned());
    }

    /// Whether it did.
    pub(super) fn has(&self, path: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(path)
    }

    /// An entry has another name now, and is whose it was.
    pub(super) fn moved(&self, from: &str, to: &str) {
        let mut made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if made.remove(from) {
            made.insert(to.to_owned());
        } else {
            made.remove(to);
        }
    }

    /// It is not there any more; what gets the name next may be another's.
    pub(super) fn gone(&self, path: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(path);
    }
}
