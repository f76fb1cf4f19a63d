//! What a call has before its plan: somebody who watches it, and perhaps a sandbox that was taken on a guess.

use super::wake::{Roused, Unwoken, rouse};
use super::watchdog::Watchdog;
use crate::engine::Engine;
use crate::pool::Claimed;

/// It becomes the call's sandbox if the plan turns out to be what was guessed.
pub struct Ahead {
    pub(super) watchdog: Watchdog,
    roused: Option<Result<Roused, Unwoken>>,
}

impl Ahead {
    /// Without a sandbox.
    #[must_use]
    pub fn new(watchdog: Watchdog) -> Self {
        Self { watchdog, roused: None }
    }

    /// Takes a sandbox that may be the right one, if there is one, and wakes it; meanwhile a plan can be made.
    pub async fn rouse(&mut self, engine: &dyn Engine, claim: impl FnOnce() -> Option<Claimed>) {
        if let Some(claimed) = claim() {
            self.roused = Some(rouse(engine, claimed, &mut self.watchdog).await);
        }
    }

    /// What came of it.
    pub(super) fn take_roused(&mut self) -> Option<Result<Roused, Unwoken>> {
        self.roused.take()
    }
}
