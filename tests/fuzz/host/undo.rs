//! What the broker tells before and after each change, as it is. The journal is left out: nothing is kept.
#![allow(dead_code, reason = "not everything is used here")]

#[path = "../../../src/undo/keep.rs"]
mod keep;

pub use keep::{Change, Keep, KeepNothing, NotKept, What};
