//! Files of procfs, whose content the kernel generates while they are read.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// Large enough for most of them.
const ROOM: usize = 8 << 10;

/// Reads a whole file. The kernel reports no length, so `std::fs::read` would begin with a small buffer; for each further
/// read the kernel generates the rest again.
///
/// # Errors
/// It cannot be read.
pub fn read_procfs(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    let mut text = Vec::with_capacity(ROOM);
    File::open(path)?.read_to_end(&mut text)?;
    Ok(text)
}
