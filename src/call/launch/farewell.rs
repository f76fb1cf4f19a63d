//! The end of a sandbox whose guest has told its end: nothing runs in it any more, and it waits to be let go.

use std::fmt;

use super::watchdog::Watchdog;
use crate::sandbox::wire::Wire;

/// Lets go of a sandbox when it is dropped. Removing a container, and making the next one, cost more than most calls, on
/// the same processors: so a front keeps this until it has given its answer. If this process dies before that, the sandbox is
/// removed as well; and the guest waits for it a second at most.
pub struct Farewell {
    /// The guest ends when this closes.
    _wire: Wire,
    /// It sees to the rest when this closes.
    _watchdog: Watchdog,
}

impl Farewell {
    /// Of a sandbox on this wire.
    pub(super) fn new(wire: Wire, mut watchdog: Watchdog) -> Self {
        watchdog.ended();
        Self { _wire: wire, _watchdog: watchdog }
    }

    /// Lets go when this process ends, which is about to: the kernel closes what we hold, last of all.
    pub fn with_us(self) {
        std::mem::forget(self);
    }
}

impl fmt::Debug for Farewell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Farewell")
    }
}
