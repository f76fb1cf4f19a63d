//! What a call has moved, counted where it moves.

use std::sync::atomic::{AtomicU64, Ordering};

use runner_policy::limits::Limit;

use super::Refusal;

use crate::codes::Code;

/// Bytes in both directions, against one limit.
#[derive(Debug)]
pub(super) struct Meter {
    limit: u64,
    bytes_in: AtomicU64,
    bytes_out: AtomicU64,
}

impl Meter {
    pub(super) fn new(limit: u64) -> Self {
        Self { limit, bytes_in: AtomicU64::new(0), bytes_out: AtomicU64::new(0) }
    }

    /// Counts bytes from the tool, whether they are wanted or not.
    pub(super) fn came(&self, bytes: usize) {
        self.bytes_in.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Counts bytes to the tool before they are sent.
    ///
    /// # Errors
    /// They are more than the call may still move.
    pub(super) fn send(&self, bytes: usize) -> Result<(), Refusal> {
        self.bytes_out.fetch_add(bytes as u64, Ordering::Relaxed);
        self.check()
    }

    /// Whether the call may still move bytes.
    ///
    /// # Errors
    /// It may not.
    pub(super) fn check(&self) -> Result<(), Refusal> {
        if self.total() <= self.limit { Ok(()) } else { Err(self.refusal()) }
    }

    /// How far the call is beyond its limit.
    pub(super) fn excess(&self) -> u64 {
        self.total().saturating_sub(self.limit)
    }

    pub(super) fn bytes_in(&self) -> u64 {
        self.bytes_in.load(Ordering::Relaxed)
    }

    pub(super) fn bytes_out(&self) -> u64 {
        self.bytes_out.load(Ordering::Relaxed)
    }

    fn total(&self) -> u64 {
        self.bytes_in().saturating_add(self.bytes_out())
    }

    fn refusal(&self) -> Refusal {
        let row = Limit::BrokerBytes.row();
        let message = format!("the call has moved its {}", row.unit.show(self.limit));
        Refusal::new(Code::LimitReached, message)
            .hint(format!("raise `limits.{}` in the policy", row.key))
    }
}
