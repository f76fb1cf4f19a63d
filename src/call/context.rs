//! What a front passes to each of its calls.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use super::launch::run::this_program;
use crate::caller::Caller;
use crate::environment::Environment;
use crate::latency::Early;

/// On whose behalf calls run, with which environment, and what was begun for them. A clone is the same caller.
#[derive(Debug, Clone)]
pub struct Context {
    /// On whose behalf.
    pub caller: Caller,
    /// The caller's variables.
    pub environment: Environment,
    /// What the front began before it knew the call.
    pub early: Early,
    /// The program that is started as a call's watchdog: `runner` itself, whatever process hosts the call.
    pub watchdog: PathBuf,
    /// What the caller should know about the machine, whatever becomes of the call.
    pub notices: Notices,
}

/// Sentences for a front to show once. A clone is the same list.
#[derive(Debug, Clone, Default)]
pub struct Notices(Arc<Mutex<Vec<String>>>);

impl Notices {
    /// Adds one.
    pub fn say(&self, text: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(text);
    }

    /// Takes all of them.
    #[must_use]
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Context {
    /// For a process that is `runner`, and has begun nothing.
    #[must_use]
    pub fn new(caller: Caller, environment: Environment) -> Self {
        Self {
            caller,
            environment,
            early: Early::default(),
            watchdog: this_program(),
            notices: Notices::default(),
        }
    }
}
