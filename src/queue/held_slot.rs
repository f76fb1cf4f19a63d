//! A slot of a queue, held by a lock on a file.

use std::time::Duration;

use crate::sys::lease::{Exclusive, Lease};

/// The slot of a running call. It is free again when this is dropped, or when the process ends.
#[derive(Debug)]
#[must_use = "the slot is free again when this is dropped"]
pub struct HeldSlot {
    _slot: Lease<Exclusive>,
    queued: Duration,
}

impl HeldSlot {
    pub(super) fn new(slot: Lease<Exclusive>, queued: Duration) -> Self {
        Self { _slot: slot, queued }
    }

    /// How long the call waited for it.
    #[must_use]
    pub fn queued(&self) -> Duration {
        self.queued
    }
}
