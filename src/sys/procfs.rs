//! Files that the kernel makes up while they are read.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// Room for most of them.
const ROOM: usize = 8 << 10;

/// Reads one whole. The kernel tells no length, so that whoever believes it reads a few bytes first, and then some more; and
/// each time the kernel makes up the rest anew.
///
/// # Errors
/// It cannot be read.
pub fn read_procfs(path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    let mut text = Vec::with_capacity(ROOM);
    File::open(path)?.read_to_end(&mut text)?;
    Ok(text)
}
