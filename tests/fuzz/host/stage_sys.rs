//! File handles, as they are.

#[path = "../../../src/sys/file_handle.rs"]
mod file_handle;

pub use file_handle::{FileHandle, file_handle};
