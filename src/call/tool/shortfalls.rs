//! What the sandboxes of a tool's commands kept from them, for the tool's own result.

use std::sync::{Arc, Mutex, PoisonError};

use crate::call::shortfall::Shortfall;

/// Most entries that are kept of all commands of a tool.
const MAX: usize = 16;

/// A list that the commands of one attempt share. A clone is the same list.
#[derive(Debug, Clone, Default)]
pub(super) struct Shortfalls(Arc<Mutex<Vec<Shortfall>>>);

impl Shortfalls {
    /// Adds those of one command, each once.
    pub(super) fn add(&self, entries: &[Shortfall]) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for entry in entries {
            if all.len() < MAX && !all.contains(entry) {
                all.push(entry.clone());
            }
        }
    }

    /// Takes all of them.
    pub(super) fn take(&self) -> Vec<Shortfall> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
