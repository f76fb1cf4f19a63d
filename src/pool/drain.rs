//! The pool as a person sees and ends it: what waits now, and the end of all that waits.

use std::path::Path;
use std::time::Duration;

use super::discard::discard;
use super::entry::{Entry, Pool, PoolError};
use super::held::Trace;
use crate::engine::EngineError;
use crate::ids::PERMISSIONS;
use crate::sys::now;

/// What a pool holds now.
#[derive(Debug, Clone)]
pub struct Status {
    /// The sandboxes that wait.
    pub waiting: Vec<Entry>,
    /// How many are being made.
    pub being_made: usize,
}

/// What came of ending all that waits.
#[derive(Debug)]
pub struct Drained {
    /// How many sandboxes were ended.
    pub ended: usize,
    /// Those that could not be ended, each with the reason. They were put back.
    pub left: Vec<(Trace, EngineError)>,
}

impl Pool {
    /// What waits, and how many are being made.
    ///
    /// # Errors
    /// The folder cannot be used.
    pub fn status(&self) -> Result<Status, PoolError> {
        let waiting = self.entries().into_iter().filter(|entry| !entry.is_over()).collect();
        Ok(Status { waiting, being_made: self.being_made()? })
    }
}

/// Ends all that waits in the pool of this state folder.
///
/// # Errors
/// The pool's folder cannot be used. A sandbox that cannot be ended is no error: [`Drained::left`] has it.
pub async fn drain(state: &Path) -> Result<Drained, PoolError> {
    let (mut ended, mut left) = (0, Vec::new());
    for held in Pool::new(state).drain()? {
        let trace = held.trace().clone();
        match discard(held).await {
            Ok(count) => ended += count,
            Err(error) => left.push((trace, error)),
        }
    }
    Ok(Drained { ended, left })
}

impl Entry {
    /// The tool whose permissions it stays within.
    #[must_use]
    pub fn tool(&self) -> Option<&str> {
        self.within.iter().find_map(|name| name.strip_prefix(PERMISSIONS))
    }

    /// How long it has waited.
    #[must_use]
    pub fn waited(&self) -> Duration {
        now().saturating_sub(self.made)
    }

    /// How long it will still wait.
    #[must_use]
    pub fn left(&self) -> Duration {
        self.expires.saturating_sub(now())
    }
}
