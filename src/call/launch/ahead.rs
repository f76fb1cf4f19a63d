//! What a call has before its plan: a watchdog, and perhaps a waiting sandbox that was claimed on a guess.

use super::wake::{Answered, WakeError, call};
use super::watchdog::Watchdog;
use crate::engine::Engine;
use crate::latency::run_if_slow;
use crate::pool::Claimed;

/// It becomes the call's sandbox if the plan turns out to be what was guessed.
pub struct Ahead {
    pub(super) watchdog: Watchdog,
    answered: Option<Result<Answered, WakeError>>,
}

impl Ahead {
    /// Without a sandbox.
    #[must_use]
    pub fn new(watchdog: Watchdog) -> Self {
        Self { watchdog, answered: None }
    }

    /// Takes a sandbox that may be the right one, if there is one, and wakes it. `meanwhile` is done while its guest finds
    /// its answer, at once if there is none, and before that if the engine takes long.
    pub async fn wake_claimed(
        &mut self,
        engine: &dyn Engine,
        claim: impl FnOnce() -> Option<Claimed>,
        mut meanwhile: impl FnMut(),
    ) {
        let called = match claim() {
            Some(claimed) => {
                let called = call(engine, claimed, &mut self.watchdog);
                Some(run_if_slow(called, &mut meanwhile).await)
            }
            None => None,
        };
        meanwhile();
        self.answered = match called {
            Some(Ok(called)) => Some(called.answer().await),
            Some(Err(why)) => Some(Err(why)),
            None => None,
        };
    }

    /// What came of it.
    pub(super) fn take_answered(&mut self) -> Option<Result<Answered, WakeError>> {
        self.answered.take()
    }
}
