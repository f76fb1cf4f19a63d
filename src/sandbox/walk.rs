//! Walks a workspace without following a link, in bounds.
//!
//! Duty: show every entry below a folder to a visitor, on a few threads, and collect what it keeps.
//! Non-goals: deciding what to keep. Trust boundary: the tree is the adversary's and may change under the
//! walk: folders are opened from the workspace's handle by a path in which no part may be a link. What
//! vanishes or turns into something else meanwhile is skipped; what is too much is an error.

use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, ResolveFlags, openat2, statat};
use rustix::io::Errno;

/// Most entries that a workspace may have: about ten seconds of walking.
pub const MAX_ENTRIES: usize = 4_000_000;

/// Deepest folder that is entered.
const MAX_DEPTH: usize = 256;

/// Folders that are waiting before further threads are worth their start.
const WORTH_THREADS: usize = 64;

/// Most threads; further ones wait for the same disk.
const MAX_THREADS: usize = 4;

/// Why a walk did not end.
#[derive(Debug)]
pub enum WalkError {
    /// More entries than [`MAX_ENTRIES`].
    TooMany(PathBuf),
    /// Deeper than is entered.
    TooDeep(PathBuf),
    /// A folder cannot be read, for another reason than its permissions.
    Read(PathBuf, io::Error),
}

impl fmt::Display for WalkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooMany(root) => write!(
                f,
                "workspace {} has more than {MAX_ENTRIES} files, too many to look for denied ones; \
                 work in a smaller folder with --workdir",
                root.display()
            ),
            Self::TooDeep(path) => write!(
                f,
                "{} lies more than {MAX_DEPTH} folders deep; remove it, or work in another folder with --workdir",
                path.display()
            ),
            Self::Read(path, error) => write!(f, "cannot read folder {}: {error}", path.display()),
        }
    }
}

impl std::error::Error for WalkError {}

/// One entry of a folder.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    /// Path below the root of the walk.
    pub path: &'a Path,
    /// What it is; a link is a link.
    pub kind: FileType,
    /// Its inode.
    pub ino: u64,
}

/// What a visitor says about an entry.
pub struct Step<T> {
    /// What to keep of it.
    pub keep: Option<T>,
    /// Whether to look into it, if it is a folder.
    pub descend: Descend,
}

/// Whether a folder is entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Descend {
    /// Look into it.
    Enter,
    /// Leave it.
    Skip,
}

/// What looks at each entry.
pub trait Visitor<T>: Sync {
    /// An entry was found.
    fn entry(&self, entry: Entry<'_>) -> Step<T>;
    /// A folder cannot be read for lack of permission.
    fn closed(&self, folder: &Path) -> Option<T>;
}

struct Queue {
    folders: Vec<PathBuf>,
    busy: usize,
    failed: Option<WalkError>,
}

struct Walk<'a, V> {
    root: BorrowedFd<'a>,
    name: &'a Path,
    visitor: &'a V,
    queue: Mutex<Queue>,
    more: Condvar,
    seen: AtomicUsize,
}

/// Walks everything below `root`, which is called `name` in errors. The order of results is not defined.
///
/// # Errors
/// See [`WalkError`].
pub fn walk<T: Send, V: Visitor<T>>(
    root: BorrowedFd<'_>,
    name: &Path,
    visitor: &V,
) -> Result<Vec<T>, WalkError> {
    let walk = Walk {
        root,
        name,
        visitor,
        queue: Mutex::new(Queue { folders: vec![PathBuf::new()], busy: 0, failed: None }),
        more: Condvar::new(),
        seen: AtomicUsize::new(0),
    };
    // Most workspaces are small: one thread, until it is clear that more are worth it.
    let mut found = walk.run(WORTH_THREADS);
    if !walk.lock().folders.is_empty() {
        let threads = std::thread::available_parallelism().map_or(2, usize::from).min(MAX_THREADS);
        std::thread::scope(|scope| {
            let others: Vec<_> =
                (1..threads).map(|_| scope.spawn(|| walk.run(usize::MAX))).collect();
            found.extend(walk.run(usize::MAX));
            for other in others {
                match other.join() {
                    Ok(more) => found.extend(more),
                    // Nothing in here panics; if it does, the panic goes on in the caller.
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
        });
    }
    match walk.lock().failed.take() {
        Some(error) => Err(error),
        None => Ok(found),
    }
}

impl<V> Walk<'_, V> {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Works until nothing is left, more than `until` folders wait, or something failed.
    fn run<T>(&self, until: usize) -> Vec<T>
    where
        V: Visitor<T>,
    {
        let mut found = Vec::new();
        let mut buffer = Vec::with_capacity(64 * 1024);
        while let Some(folder) = self.next(until) {
            let result = self.folder(&folder, &mut buffer, &mut found);
            let mut queue = self.lock();
            queue.busy -= 1;
            match result {
                Ok(below) => queue.folders.extend(below),
                Err(error) => queue.failed = Some(error),
            }
            drop(queue);
            self.more.notify_all();
        }
        found
    }

    /// The next folder; waits for one while others are still looking.
    fn next(&self, until: usize) -> Option<PathBuf> {
        let mut queue = self.lock();
        loop {
            if queue.failed.is_some() || queue.folders.len() > until {
                return None;
            }
            if let Some(folder) = queue.folders.pop() {
                queue.busy += 1;
                return Some(folder);
            }
            if queue.busy == 0 {
                return None;
            }
            queue = self.more.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Shows one folder's entries to the visitor; the folders to enter next.
    fn folder<T>(
        &self,
        folder: &Path,
        buffer: &mut Vec<u8>,
        found: &mut Vec<T>,
    ) -> Result<Vec<PathBuf>, WalkError>
    where
        V: Visitor<T>,
    {
        if folder.components().count() > MAX_DEPTH {
            return Err(WalkError::TooDeep(self.name.join(folder)));
        }
        let path: &OsStr =
            if folder.as_os_str().is_empty() { ".".as_ref() } else { folder.as_os_str() };
        let opened = openat2(
            self.root,
            path,
            OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
            Mode::empty(),
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS,
        );
        let handle = match opened {
            Ok(handle) => handle,
            Err(Errno::ACCESS | Errno::PERM) => {
                found.extend(self.visitor.closed(folder));
                return Ok(Vec::new());
            }
            // Gone, or something else by now.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV) => return Ok(Vec::new()),
            Err(error) => return Err(WalkError::Read(self.name.join(folder), error.into())),
        };
        buffer.clear();
        let spare: &mut [MaybeUninit<u8>] = buffer.spare_capacity_mut();
        let mut entries = RawDir::new(&handle, spare);
        let mut below = Vec::new();
        while let Some(entry) = entries.next() {
            let entry =
                entry.map_err(|error| WalkError::Read(self.name.join(folder), error.into()))?;
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            if self.seen.fetch_add(1, Ordering::Relaxed) >= MAX_ENTRIES {
                return Err(WalkError::TooMany(self.name.to_owned()));
            }
            let kind = match entry.file_type() {
                FileType::Unknown => {
                    match statat(&handle, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW) {
                        Ok(stat) => FileType::from_raw_mode(stat.st_mode),
                        Err(_) => continue,
                    }
                }
                kind => kind,
            };
            let path = folder.join(OsStr::from_bytes(name));
            let step = self.visitor.entry(Entry { path: &path, kind, ino: entry.ino() });
            found.extend(step.keep);
            if kind == FileType::Directory && step.descend == Descend::Enter {
                below.push(path);
            }
        }
        Ok(below)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;
    use std::os::unix::fs::symlink;

    struct Names;

    impl Visitor<PathBuf> for Names {
        fn entry(&self, entry: Entry<'_>) -> Step<PathBuf> {
            let skip = entry.path.ends_with("skipped");
            Step {
                keep: Some(entry.path.to_owned()),
                descend: if skip { Descend::Skip } else { Descend::Enter },
            }
        }

        fn closed(&self, _: &Path) -> Option<PathBuf> {
            None
        }
    }

    fn names(root: &Path) -> Result<Vec<PathBuf>, WalkError> {
        let handle = std::fs::File::open(root).unwrap();
        let mut found = walk(handle.as_fd(), root, &Names)?;
        found.sort();
        Ok(found)
    }

    #[test]
    fn everything_is_seen_and_no_link_is_followed() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("a/b")).unwrap();
        std::fs::create_dir_all(dir.path().join("skipped/x")).unwrap();
        std::fs::write(dir.path().join("a/b/f"), "").unwrap();
        symlink("/etc", dir.path().join("out")).unwrap();
        symlink("a", dir.path().join("in")).unwrap();
        let expected: Vec<PathBuf> =
            ["a", "a/b", "a/b/f", "in", "out", "skipped"].iter().map(PathBuf::from).collect();
        assert_eq!(names(dir.path()).unwrap(), expected);
    }

    #[test]
    fn many_folders_are_seen_once_each_by_several_threads() {
        let dir = tempfile::tempdir().unwrap();
        for top in 0..100 {
            for below in 0..5 {
                std::fs::create_dir_all(dir.path().join(format!("{top}/{below}"))).unwrap();
            }
        }
        let found = names(dir.path()).unwrap();
        assert_eq!(found.len(), 600);
        assert!(found.windows(2).all(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn a_very_deep_folder_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let deep: PathBuf = std::iter::repeat_n("d", MAX_DEPTH + 1).collect();
        std::fs::create_dir_all(dir.path().join(deep)).unwrap();
        assert!(matches!(names(dir.path()), Err(WalkError::TooDeep(_))));
    }
}
