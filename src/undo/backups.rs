//! Contents by digest, each once, in the caller's own folder.
//!
//! A content is copied under a name of chance while it is digested, and gets its own inside the database's write
//! transaction that refers to it; a process that removes one does so inside such a transaction too. So no
//! row loses its content to another process, and a death leaves at most a content without a row.
//!
//! What a command's changes took away is an *image*: the very file or folder, moved here under a name that
//! its row has from the beginning. It has no digest, so that nothing needs to be read.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::BorrowedFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, OFlags, RenameFlags, renameat_with, statat, unlinkat};
use rustix::io::Errno;

use super::trees::remove_all;
use crate::ids::CallId;

/// The folder in the state folder.
const FOLDER: &str = "backups";
/// How names begin that are no digests yet.
const NEW: &str = ".new-";
/// How names begin of what was taken as it was, without a digest.
const IMAGE: &str = "image-";
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

    /// Takes a file or folder that was moved out of its place as an image, under a name that a row refers
    /// to already. It is moved where that is possible; a file that has further names is copied, because
    /// what is written through those would change the image.
    pub(crate) fn adopt(
        &self,
        folder: BorrowedFd<'_>,
        name: &OsStr,
        image: &str,
    ) -> io::Result<()> {
        if !is_image(image) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let place = self.folder.join(image);
        let found = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let is_folder = FileType::from_raw_mode(found.st_mode) == FileType::Directory;
        if is_folder || found.st_nlink == 1 {
            match renameat_with(folder, name, CWD, &place, RenameFlags::NOREPLACE) {
                // It was taken already, and something else has the old name since.
                Err(Errno::EXIST) => return Ok(()),
                Err(Errno::XDEV) if !is_folder => {}
                moved => return Ok(moved?),
            }
        }
        let copied = self.copy(super::state::open_file(folder, name)?, u64::MAX)?;
        if let Some(copied) = copied {
            fs::rename(&copied.place, place)?;
        }
        Ok(unlinkat(folder, name, AtFlags::empty())?)
    }

    /// Moves a folder that was kept as an image back to a name that nothing has.
    pub(super) fn give_back(
        &self,
        image: &str,
        folder: BorrowedFd<'_>,
        name: &OsStr,
    ) -> io::Result<()> {
        if !is_image(image) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let place = self.folder.join(image);
        Ok(renameat_with(CWD, place, folder, name, RenameFlags::NOREPLACE)?)
    }

    /// A content, to be read.
    pub(super) fn read(&self, digest: &str) -> io::Result<File> {
        if !is_digest(digest) && !is_image(digest) {
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
        let handle = File::open(&self.folder)?;
        for entry in fs::read_dir(&self.folder)?.flatten() {
            let Ok(name) = entry.file_name().into_string() else { continue };
            // One without a name of its own is being copied, or its process died: then it is old.
            let goes = match is_digest(&name) || is_image(&name) {
                true => !wanted(&name),
                false => name.starts_with(NEW) && is_old(&entry),
            };
            if goes && remove_all(&handle, OsStr::new(&name)).is_ok() {
                removed += 1;
            }
        }
        Ok(removed)
    }
}

/// The name of an image: the call that took it, and a number.
pub(crate) fn image_name(call: &CallId, number: usize) -> String {
    format!("{IMAGE}{call}-{number}")
}

fn is_image(name: &str) -> bool {
    let safe = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    name.strip_prefix(IMAGE).is_some_and(|rest| rest.len() < 128 && rest.bytes().all(safe))
}

/// Whether a backup is kept under its digest, so that its content can be proved.
pub(super) fn is_digest(name: &str) -> bool {
    name.len() == 64 && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Whether no call can be copying it any more: no call's time limit is as long.
fn is_old(entry: &fs::DirEntry) -> bool {
    let changed = entry.metadata().and_then(|metadata| metadata.modified());
    changed.is_ok_and(|at| at.elapsed().is_ok_and(|age| age.as_secs() > 24 * 3600))
}
