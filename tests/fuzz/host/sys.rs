//! Random bytes, as they are.

#[path = "../../../src/sys/random.rs"]
mod random;

pub use random::random;
