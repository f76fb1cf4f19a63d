//! Leases: files that a process holds the kernel's lock on (`flock`) for as long as it lives.
//!
//! Duty: every advisory lock of the host program. A lease is a value: its lock is released when it is
//! dropped, and by the kernel when its process ends in any way. What a dead process held is found free
//! by the next one that asks ([`find`]).
//!
//! What holds for every lease:
//!
//! - The locked file is the one that has the name. A process may remove or rename the file between
//!   another's `open` and `flock`; then the name is opened anew ([`LockFile`] says how).
//! - A link, a folder or a pipe in the place of the file is an error.
//! - `flock` belongs to an open file description. Each opening here makes one of its own, so two leases
//!   of one process exclude each other as those of two processes do. It is closed on `exec`, so no
//!   program that we start keeps a lease alive. There is no way to duplicate a lease.
//! - A signal does not end a wait.
//!
//! Non-goals: deadlines (who needs one polls [`LockFile::try_take`]), locks over a network. Trust
//! boundary: the files are in the caller's own state folder; who can write there is the caller.

use std::fs::{File, OpenOptions};
use std::io;
use std::marker::PhantomData;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

/// Held by many at once, while no process holds an [`Exclusive`] lease.
#[derive(Debug)]
pub enum Shared {}

/// Held by one alone.
#[derive(Debug)]
pub enum Exclusive {}

/// How a lease is held: [`Shared`] or [`Exclusive`].
pub trait Mode: sealed::Operations {}

impl Mode for Shared {}
impl Mode for Exclusive {}

mod sealed {
    use rustix::fs::FlockOperation;

    /// The kernel's words for a mode. Private, so that there are no other modes.
    pub trait Operations {
        const WAIT: FlockOperation;
        const TRY: FlockOperation;
    }

    impl Operations for super::Shared {
        const WAIT: FlockOperation = FlockOperation::LockShared;
        const TRY: FlockOperation = FlockOperation::NonBlockingLockShared;
    }

    impl Operations for super::Exclusive {
        const WAIT: FlockOperation = FlockOperation::LockExclusive;
        const TRY: FlockOperation = FlockOperation::NonBlockingLockExclusive;
    }
}

/// How a file is opened, and opened again if another file has its name by then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Opening {
    /// To read and write; made for the caller alone if it is missing.
    Made,
    /// To read and write, if it is there. Some file systems lock only what may be written.
    Existing,
    /// To read, if it is there.
    ReadOnly,
}

/// A file that is open and not locked by us.
#[derive(Debug)]
pub struct LockFile {
    path: PathBuf,
    file: File,
    opening: Opening,
}

/// A file that is locked by us until this is dropped.
#[derive(Debug)]
#[must_use = "the lock is released when this is dropped"]
pub struct Lease<M: Mode> {
    path: PathBuf,
    file: File,
    mode: PhantomData<M>,
}

/// What came of an attempt that does not wait.
#[derive(Debug)]
pub enum Attempt<M: Mode> {
    /// The lease is ours.
    Taken(Lease<M>),
    /// Another lease excludes it; the file is given back for the next attempt.
    Busy(LockFile),
}

/// What stands at a path where a process may have left its file.
#[derive(Debug)]
pub enum Found {
    /// Nothing.
    Gone,
    /// A file that its owner, which lives, holds a lease on.
    Held(LockFile),
    /// A file without an owner: it was never held, or its owner died. It is ours now.
    Free(Lease<Exclusive>),
}

/// Looks whether the owner of a file lives, without waiting and without making the file.
///
/// # Errors
/// The file cannot be opened or locked.
pub fn find(path: &Path) -> io::Result<Found> {
    let found = LockFile::open_as(path, Opening::Existing).and_then(LockFile::owner);
    match found {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Found::Gone),
        found => found,
    }
}

impl LockFile {
    /// Opens a file, made for the caller alone if it is missing. Its content stays.
    ///
    /// # Errors
    /// It cannot be opened, or is not a regular file.
    pub fn open(path: &Path) -> io::Result<Self> {
        Self::open_as(path, Opening::Made)
    }

    fn open_as(path: &Path, opening: Opening) -> io::Result<Self> {
        // Not blocking: opening a pipe to read it would wait for a writer.
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = OpenOptions::new()
            .read(true)
            .write(opening != Opening::ReadOnly)
            .create(opening == Opening::Made)
            .truncate(false)
            .mode(0o600)
            .custom_flags(flags.bits().cast_signed())
            .open(path)?;
        Ok(Self { path: path.to_owned(), file, opening })
    }

    /// Waits until the lease is ours. The kernel serves those that wait for a file in the order in
    /// which they came. Blocks the thread.
    ///
    /// # Errors
    /// The file cannot be locked.
    pub fn wait<M: Mode>(mut self) -> io::Result<Lease<M>> {
        loop {
            lock(&self.file, M::WAIT)?;
            if self.has_its_name()? {
                return Ok(self.into_lease());
            }
            self = Self::open_as(&self.path, self.opening)?;
        }
    }

    /// Takes the lease if no other excludes it.
    ///
    /// # Errors
    /// The file cannot be locked.
    pub fn try_take<M: Mode>(mut self) -> io::Result<Attempt<M>> {
        loop {
            match lock(&self.file, M::TRY) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Ok(Attempt::Busy(self));
                }
                locked => locked?,
            }
            if self.has_its_name()? {
                return Ok(Attempt::Taken(self.into_lease()));
            }
            self = Self::open_as(&self.path, self.opening)?;
        }
    }

    fn owner(self) -> io::Result<Found> {
        Ok(match self.try_take()? {
            Attempt::Taken(lease) => Found::Free(lease),
            Attempt::Busy(file) => Found::Held(file),
        })
    }

    /// The content, which the owner may change meanwhile.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read(&self) -> io::Result<Vec<u8>> {
        read(&self.file)
    }

    /// Whether the open file is the one at its path. One that is removed or renamed is not.
    fn has_its_name(&self) -> io::Result<bool> {
        let open = self.file.metadata()?;
        if !open.is_file() {
            let path = self.path.display();
            return Err(io::Error::other(format!("{path} is not a regular file")));
        }
        match self.path.symlink_metadata() {
            Ok(named) => Ok((open.dev(), open.ino()) == (named.dev(), named.ino())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn into_lease<M: Mode>(self) -> Lease<M> {
        Lease { path: self.path, file: self.file, mode: PhantomData }
    }
}

impl<M: Mode> Lease<M> {
    /// Waits for a lease on a file, made for the caller alone if it is missing. Blocks the thread.
    ///
    /// # Errors
    /// The file cannot be opened or locked.
    pub fn wait(path: &Path) -> io::Result<Self> {
        LockFile::open(path)?.wait()
    }

    /// Takes a lease on a file, made for the caller alone if it is missing, unless another excludes it.
    ///
    /// # Errors
    /// The file cannot be opened or locked.
    pub fn try_take(path: &Path) -> io::Result<Option<Self>> {
        Ok(match LockFile::open(path)?.try_take()? {
            Attempt::Taken(lease) => Some(lease),
            Attempt::Busy(_) => None,
        })
    }

    /// The file's path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The file, to read and write it. Closing it is the lease's alone.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// The whole content.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read(&self) -> io::Result<Vec<u8>> {
        read(&self.file)
    }
}

impl Lease<Shared> {
    /// Waits for a shared lease on a file that is there, only to read it. Blocks the thread.
    ///
    /// # Errors
    /// The file is missing, or cannot be opened or locked.
    pub fn wait_to_read(path: &Path) -> io::Result<Self> {
        LockFile::open_as(path, Opening::ReadOnly)?.wait()
    }
}

impl Lease<Exclusive> {
    /// Takes a lease on a file that says something about its owner, and writes that down.
    ///
    /// # Errors
    /// Another process holds it, or it cannot be written.
    pub fn with_content(path: &Path, content: &[u8]) -> io::Result<Self> {
        let lease = Self::try_take(path)?.ok_or(Errno::WOULDBLOCK)?;
        lease.replace(content)?;
        Ok(lease)
    }

    /// Replaces the content. A death in between leaves an empty file or the beginning of the content.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn replace(&self, content: &[u8]) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.write_all_at(content, 0)
    }

    /// Removes the file and releases the lease, in this order: no other finds the file free.
    ///
    /// # Errors
    /// It cannot be removed; the lease is released.
    pub fn remove(self) -> io::Result<()> {
        std::fs::remove_file(&self.path)
    }

    /// Gives the file another name, in place of any file that has it. The lease goes on.
    ///
    /// # Errors
    /// It cannot be renamed.
    pub fn rename(self, to: &Path) -> io::Result<Self> {
        std::fs::rename(&self.path, to)?;
        Ok(Self { path: to.to_owned(), ..self })
    }
}

fn lock(file: &File, operation: FlockOperation) -> io::Result<()> {
    loop {
        match flock(file, operation) {
            Err(Errno::INTR) => {}
            result => return result.map_err(io::Error::from),
        }
    }
}

/// Reads from the beginning, wherever others have read to.
fn read(file: &File) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    let mut piece = [0; 4096];
    loop {
        match file.read_at(&mut piece, content.len() as u64) {
            Ok(0) => return Ok(content),
            Ok(length) => content.extend_from_slice(&piece[..length]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
#[path = "lease_tests.rs"]
mod tests;
