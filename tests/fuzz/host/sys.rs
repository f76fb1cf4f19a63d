//! Random bytes and file handles, as they are.

#[path = "../../../src/sys/file_handle.rs"]
mod file_handle;
#[path = "../../../src/sys/random.rs"]
mod random;

pub use file_handle::{FileHandle, file_handle};
pub use random::random;
