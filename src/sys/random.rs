//! Random bytes from the kernel.

use std::io;

use rustix::rand::{GetRandomFlags, getrandom};

/// As many random bytes as asked for.
///
/// # Errors
/// The kernel gives none.
pub fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    let mut filled = 0;
    while filled < N {
        filled += getrandom(&mut bytes[filled..], GetRandomFlags::empty())?;
    }
    Ok(bytes)
}
