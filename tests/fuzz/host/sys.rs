//! Random bytes, as they are; and signals, which nobody sends here.

#[path = "../../../src/sys/random.rs"]
mod random;

pub use random::random;

/// No event loop has let go of them.
pub fn catch_signals() {}
