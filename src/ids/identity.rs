//! Which file or folder something is, by device and inode.

use serde::{Deserialize, Serialize};

/// A file or folder, whatever it is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Identity {
    /// Device number.
    pub dev: u64,
    /// Inode number.
    pub ino: u64,
}

impl Identity {
    /// Of something that a plan only describes, and that was not made.
    pub const UNMADE: Self = Self { dev: 0, ino: 0 };
}
