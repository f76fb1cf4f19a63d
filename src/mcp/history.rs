//! Which calls each client made here, for the records that it may see.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

/// Calls of one client that are remembered.
const MOST: usize = 50;
/// Clients that are remembered.
const CLIENTS: usize = 256;

/// Ids of calls by client.
#[derive(Debug, Default)]
pub struct History(Mutex<HashMap<String, VecDeque<String>>>);

impl History {
    /// Remembers a call.
    pub fn add(&self, owner: &str, call: &str) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= CLIENTS && !all.contains_key(owner) {
            all.clear();
        }
        let own = all.entry(owner.to_owned()).or_default();
        if own.len() == MOST {
            own.pop_front();
        }
        own.push_back(call.to_owned());
    }

    /// The calls of a client, the newest last.
    pub fn of(&self, owner: &str) -> Vec<String> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(owner).into_iter().flatten().cloned().collect()
    }
}
