//! Files that runner makes and mounts: covers for hidden paths, and synthetic files.
//!
//! Duty: keep them in one folder of the caller's, by content, so that parallel calls share them and a waiting
//! sandbox keeps its own. Non-goals: what is in them. Trust boundary: the folder is the caller's
//! own, closed to others; still, what is found there is used only if it is exactly what it should
//! be, and is made anew otherwise.

use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use crate::engine::plan::MaskKind;
use crate::ids::Identity;

/// Tells apart what several threads of one process make at once.
static COUNTER: AtomicU64 = AtomicU64::new(0);

/// Whether files and folders of ours that are missing are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// They are, for a call.
    Make,
    /// They are not: a plan is only described (`--dry-run`).
    Describe,
}

/// A folder for covers and synthetic files.
#[derive(Debug, Clone)]
pub struct Materials {
    folder: PathBuf,
    missing: Missing,
}

/// Why a file of ours could not be placed.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot write {path}: {error}; check its permissions and free space, or set XDG_CACHE_HOME \
     to another folder"
)]
pub struct MaterialError {
    /// Where.
    pub path: PathBuf,
    /// What the system said.
    #[source]
    pub error: io::Error,
}

impl Materials {
    /// Keeps files in this folder, which is made if it is missing. With [`Missing::Describe`] nothing is
    /// made, and what would be has no identity.
    #[must_use]
    pub fn new(folder: &Path, missing: Missing) -> Self {
        Self { folder: folder.to_owned(), missing }
    }

    /// An empty, unreadable file or folder.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn cover(&self, kind: MaskKind) -> Result<(PathBuf, Identity), MaterialError> {
        let path = self.folder.join(match kind {
            MaskKind::File => "unreadable-file",
            MaskKind::Folder => "unreadable-folder",
        });
        self.place(
            path,
            |path| is_cover(path, kind),
            |path| match kind {
                MaskKind::File => std::fs::OpenOptions::new()
                    .write(true)
                    .create_new(true)
                    .mode(0o000)
                    .open(path)
                    .map(drop),
                MaskKind::Folder => std::fs::DirBuilder::new().mode(0o000).create(path),
            },
        )
    }

    /// A file with this content, readable by all.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn file(&self, content: &[u8]) -> Result<(PathBuf, Identity), MaterialError> {
        let path = self.folder.join(format!("file-{}", name_of(content)));
        self.place(
            path,
            |path| is_file(path, content),
            |path| {
                use std::io::Write;
                let mut file = std::fs::OpenOptions::new()
                    .write(true)
                    .create_new(true)
                    .mode(0o644)
                    .open(path)?;
                file.write_all(content)?;
                // Not left to the caller's umask: the command's user may be another.
                file.set_permissions(std::fs::Permissions::from_mode(0o444))
            },
        )
    }

    fn place(
        &self,
        path: PathBuf,
        is_right: impl Fn(&Path) -> bool,
        make: impl Fn(&Path) -> io::Result<()>,
    ) -> Result<(PathBuf, Identity), MaterialError> {
        if !is_right(&path) {
            if self.missing == Missing::Describe {
                return Ok((path, Identity::UNMADE));
            }
            self.replace(&path, &is_right, make)
                .map_err(|error| MaterialError { path: path.clone(), error })?;
        }
        match path.symlink_metadata() {
            Ok(found) => Ok((path, Identity { dev: found.dev(), ino: found.ino() })),
            Err(error) => Err(MaterialError { path, error }),
        }
    }

    /// Makes it under a name of its own and renames it into place: another call sees all or nothing. What
    /// another call has put there meanwhile stays, or that call's mount would not be what it planned.
    fn replace(
        &self,
        path: &Path,
        is_right: impl Fn(&Path) -> bool,
        make: impl Fn(&Path) -> io::Result<()>,
    ) -> io::Result<()> {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        let mut temporary = path.as_os_str().to_owned();
        temporary.push(format!(
            ".{}-{}",
            std::process::id(),
            COUNTER.fetch_add(1, Ordering::Relaxed)
        ));
        let temporary = PathBuf::from(temporary);
        discard(&temporary);
        make(&temporary)?;
        let placed = match renameat_with(CWD, &temporary, CWD, path, RenameFlags::NOREPLACE) {
            Err(Errno::EXIST) if is_right(path) => Ok(()),
            // Something else stands there; an empty folder of ours replaces nothing but a folder.
            Err(Errno::EXIST) => {
                discard(path);
                std::fs::rename(&temporary, path)
            }
            result => result.map_err(io::Error::from),
        };
        discard(&temporary);
        placed
    }
}

/// Removes a file or an empty folder, if it is there.
fn discard(path: &Path) {
    drop(std::fs::remove_file(path));
    drop(std::fs::remove_dir(path));
}

fn is_cover(path: &Path, kind: MaskKind) -> bool {
    path.symlink_metadata().is_ok_and(|found| {
        let right_kind = match kind {
            MaskKind::File => found.is_file() && found.len() == 0,
            // Two names: itself and its `.`; a folder in it would be a third.
            MaskKind::Folder => found.is_dir() && found.nlink() <= 2,
        };
        right_kind && found.mode() & 0o7777 == 0
    })
}

fn is_file(path: &Path, content: &[u8]) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.is_file() && found.mode() & 0o7777 == 0o444)
        && std::fs::read(path).is_ok_and(|found| found == content)
}

/// A short name for a content. It need not resist an attacker: content is compared before use.
fn name_of(content: &[u8]) -> String {
    use std::hash::Hasher;

    // Two different starting points make a name of 128 bits out of a hash of 64.
    let mut names = String::new();
    for seed in [0u8, 1] {
        let mut hasher = std::hash::DefaultHasher::new();
        hasher.write_u8(seed);
        hasher.write(content);
        names.push_str(&format!("{:016x}", hasher.finish()));
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn materials() -> (tempfile::TempDir, Materials) {
        let dir = tempfile::tempdir().unwrap();
        let materials = Materials::new(&dir.path().join("made/below"), Missing::Make);
        (dir, materials)
    }

    #[test]
    fn covers_are_empty_unreadable_and_shared() {
        let (_dir, materials) = materials();
        let (file, identity) = materials.cover(MaskKind::File).unwrap();
        assert_eq!(materials.cover(MaskKind::File).unwrap(), (file.clone(), identity));
        let found = file.metadata().unwrap();
        assert_eq!((found.mode() & 0o7777, found.len()), (0, 0));
        let (folder, _) = materials.cover(MaskKind::Folder).unwrap();
        assert_eq!(folder.metadata().unwrap().mode() & 0o7777, 0);
    }

    #[test]
    fn what_is_not_as_it_should_be_is_made_anew() {
        let (_dir, materials) = materials();
        let (file, identity) = materials.cover(MaskKind::File).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert_ne!(materials.cover(MaskKind::File).unwrap().1, identity);
        let (path, identity) = materials.file(b"one").unwrap();
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "two").unwrap();
        assert_ne!(materials.file(b"one").unwrap().1, identity);
        assert_eq!(std::fs::read(&path).unwrap(), b"one");
    }

    #[test]
    fn calls_at_once_get_the_same_file() {
        let (_dir, materials) = materials();
        let identities: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..16)
                .map(|_| {
                    scope.spawn(|| {
                        (
                            materials.file(b"one").unwrap(),
                            materials.cover(MaskKind::Folder).unwrap(),
                        )
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(identities.windows(2).all(|pair| pair[0] == pair[1]), "{identities:?}");
        let left = std::fs::read_dir(&materials.folder).unwrap().count();
        assert_eq!(left, 2, "nothing temporary is left");
    }

    #[test]
    fn a_description_makes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let materials = Materials::new(&dir.path().join("x"), Missing::Describe);
        assert_eq!(materials.cover(MaskKind::File).unwrap().1, Identity::UNMADE);
        assert_eq!(materials.file(b"one").unwrap().1, Identity::UNMADE);
        assert!(!dir.path().join("x").exists());
    }
}
