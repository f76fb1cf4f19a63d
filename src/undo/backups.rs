//! Contents by digest, each once, in the caller's own folder.
//!
//! A content is copied under a name of chance while it is digested, and gets its own inside the database's write
//! transaction that refers to it; whoever removes one does so inside such a transaction too. So no
//! row loses its content to another process, and a death leaves at most a content without a row.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

/// The folder in the state folder.
const FOLDER: &str = "backups";
/// How names begin that are no digests yet.
const NEW: &str = ".new-";
/// Bytes that are copied at once.
const PIECE: usize = 128 * 1024;

/// The backups of a caller.
#[derive(Debug)]
pub(crate) struct Backups {
    folder: PathBuf,
}

/// A content that has no name of its own yet. Without one it goes.
#[derive(Debug)]
pub(super) struct Copied {
    place: PathBuf,
    /// Its digest.
    pub digest: blake3::Hash,
    /// Its length.
    pub size: u64,
}

impl Drop for Copied {
    fn drop(&mut self) {
        // Gone already if it was named.
        let _ = fs::remove_file(&self.place);
    }
}

impl Backups {
    /// Those below a state folder.
    pub(crate) fn open(state: &Path) -> io::Result<Self> {
        let folder = state.join(FOLDER);
        DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        if !fs::symlink_metadata(&folder)?.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Ok(Self { folder })
    }

    /// Copies a content; `None` if it is longer than `most`.
    pub(super) fn copy(&self, mut from: impl Read, most: u64) -> io::Result<Option<Copied>> {
        let chance: [u8; 12] = crate::sys::random()?;
        let digits: String = chance.iter().map(|byte| format!("{byte:02x}")).collect();
        let place = self.folder.join(format!("{NEW}{digits}"));
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&place)?;
        let mut copied = Copied { place, digest: blake3::hash(b""), size: 0 };
        let mut hasher = blake3::Hasher::new();
        let mut piece = vec![0; PIECE];
        loop {
            let length = match from.read(&mut piece) {
                Ok(0) => break,
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            copied.size += length as u64;
            if copied.size > most {
                return Ok(None);
            }
            hasher.update(&piece[..length]);
            file.write_all(&piece[..length])?;
        }
        copied.digest = hasher.finalize();
        Ok(Some(copied))
    }

    /// Gives a content its name. Only inside a write transaction. Whatever has that name already is the same.
    pub(super) fn name(&self, copied: &Copied) -> io::Result<()> {
        fs::rename(&copied.place, self.folder.join(copied.digest.to_hex().as_str()))
    }

    /// A content, to be read.
    pub(super) fn read(&self, digest: &str) -> io::Result<File> {
        if !is_digest(digest) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        OpenOptions::new()
            .read(true)
            .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
            .open(self.folder.join(digest))
    }

    /// Removes every content that is not wanted. Only inside a write transaction.
    pub(super) fn retain(&self, wanted: impl Fn(&str) -> bool) -> io::Result<u64> {
        let mut removed = 0;
        for entry in fs::read_dir(&self.folder)?.flatten() {
            let Ok(name) = entry.file_name().into_string() else { continue };
            // One without a name of its own is being copied, or its process died: then it is old.
            let goes = match is_digest(&name) {
                true => !wanted(&name),
                false => name.starts_with(NEW) && is_old(&entry),
            };
            if goes && fs::remove_file(entry.path()).is_ok() {
                removed += 1;
            }
        }
        Ok(removed)
    }
}

fn is_digest(name: &str) -> bool {
    name.len() == 64 && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Whether nobody can be copying it any more: no call's limit is as long.
fn is_old(entry: &fs::DirEntry) -> bool {
    let changed = entry.metadata().and_then(|metadata| metadata.modified());
    changed.is_ok_and(|at| at.elapsed().is_ok_and(|age| age.as_secs() > 24 * 3600))
}
