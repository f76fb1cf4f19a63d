//! The compiler that this program was built with, made something that can be started.
//!
//! Duty: the embedded bytes in a file of memory, sealed: what is started is what was built, whatever is on disk,
//! and nothing has to be written, found again, compared or cleaned up. It is made when something is compiled for the
//! first time, once in a process.

use std::io::{self, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::PathBuf;
use std::sync::OnceLock;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::io::Errno;

/// The executable. The build script makes it from `src/compiler`.
pub static BYTES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/runner-compiler"));

/// The digest of [`BYTES`].
pub const DIGEST: &str = env!("RUNNER_COMPILER_DIGEST");

/// How often sealing is tried.
const SEALINGS: u32 = 10;

/// What is started to compile.
#[derive(Debug, Clone)]
pub enum Program {
    /// Our own.
    Own,
    /// Another one.
    At(PathBuf),
}

impl Program {
    /// Where it is, for children of this process.
    pub fn path(&self) -> io::Result<PathBuf> {
        static OWN: OnceLock<OwnedFd> = OnceLock::new();
        match self {
            Self::At(path) => Ok(path.clone()),
            Self::Own => {
                let own = match OWN.get() {
                    Some(own) => own,
                    None => {
                        let made = in_memory()?;
                        OWN.get_or_init(|| made)
                    }
                };
                Ok(PathBuf::from(format!("/proc/self/fd/{}", own.as_raw_fd())))
            }
        }
    }
}

/// The bytes as a file in memory, which is in no folder and cannot be changed.
fn in_memory() -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = match memfd_create("runner-compiler", flags | MemfdFlags::EXEC) {
        // Kernels before 6.3 do not know the word, and need none.
        Err(Errno::INVAL) => memfd_create("runner-compiler", flags)?,
        made => made?,
    };
    let mut file = std::fs::File::from(file);
    file.write_all(BYTES)?;
    let seals = SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE;
    let mut tries = 1;
    loop {
        match fcntl_add_seals(&file, seals) {
            Ok(()) => return Ok(file.into()),
            // A page may be in use, also by the kernel itself; each try waits for it a fraction of a second.
            Err(Errno::BUSY) if tries < SEALINGS => tries += 1,
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_started_is_what_was_built_and_nobody_can_change_it() {
        let path = Program::Own.path().unwrap();
        assert_eq!(Program::Own.path().unwrap(), path, "it is made once");
        let found = std::fs::read(&path).unwrap();
        assert_eq!(blake3::hash(&found).to_hex().as_str(), DIGEST);
        let mut file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        assert!(file.write_all(b"x").is_err());
        assert!(file.set_len(0).is_err());
    }
}
