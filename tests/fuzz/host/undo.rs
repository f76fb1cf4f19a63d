//! What the broker tells before and after each change, and walks of trees, as they are. The journal is
//! left out: nothing is kept.
#![allow(dead_code, unused_imports, reason = "not everything is used here")]

#[path = "../../../src/undo/keep.rs"]
mod keep;
#[path = "../../../src/undo/trees.rs"]
pub(crate) mod trees;

pub use keep::{Change, Keep, KeepNothing, NotKept, What};
