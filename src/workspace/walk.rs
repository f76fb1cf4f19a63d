//! Walks a workspace without following a link, in bounds.
//!
//! Duty: show every entry below a folder to a visitor, on a few threads, and collect what it keeps.
//! Non-goals: deciding what to keep. Trust boundary: the tree is the adversary's and may change under the
//! walk: folders are opened from the workspace's handle by a path in which no part may be a link. What
//! vanishes or turns into something else meanwhile is skipped; what is too much is an error.

use std::ffi::{CStr, OsStr};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, ResolveFlags, openat2, statat};
use rustix::io::Errno;

/// Most entries that a workspace may have: about ten seconds of walking.
pub const MAX_ENTRIES: usize = 4_000_000;

/// Deepest folder that is entered.
const MAX_DEPTH: usize = 256;

/// Folders after which further threads are worth their start.
const WORTH_THREADS: usize = 256;

/// Entries of one folder that are counted at a time: the count is shared by all threads.
const BATCH: usize = 4096;

/// Most folders that a thread takes at once from those that wait.
const SHARE: usize = 32;

/// Most threads; further ones wait for the same disk.
const MAX_THREADS: usize = 4;

/// Why a walk did not end.
#[derive(Debug, thiserror::Error)]
pub enum WalkError {
    /// More entries than [`MAX_ENTRIES`].
    #[error(
        "workspace {0} has more than {MAX_ENTRIES} files, too many to look for denied ones; \
         work in a smaller folder with --workdir"
    )]
    TooMany(PathBuf),
    /// Deeper than is entered.
    #[error(
        "{0} lies more than {MAX_DEPTH} folders deep; remove it, or work in another folder with \
         --workdir"
    )]
    TooDeep(PathBuf),
    /// A folder cannot be read, for another reason than its permissions.
    #[error("cannot read folder {0}: {1}")]
    Read(PathBuf, #[source] io::Error),
    /// What must be hidden cannot be looked at.
    #[error("cannot look at {0}, which must be hidden: {1}")]
    Open(PathBuf, #[source] io::Error),
    /// Names of denied files appear faster than they are found.
    #[error(
        "further names of denied files appear in {0} while it is looked through; try again when nothing else \
         changes it"
    )]
    Restless(PathBuf),
}

/// One entry of a folder.
#[derive(Debug, Clone, Copy)]
pub struct Entry<'a> {
    /// The folder it is in, below the root of the walk.
    pub folder: &'a Path,
    /// The handle on that folder.
    pub handle: BorrowedFd<'a>,
    /// Its name there.
    pub name: &'a CStr,
    /// What it is; a link is a link.
    pub kind: FileType,
    /// Its inode.
    pub ino: u64,
}

impl Entry<'_> {
    /// Its path below the root of the walk. Made on demand: most entries are of no interest.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.folder.join(OsStr::from_bytes(self.name.to_bytes()))
    }
}

/// Whether a folder is entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Descend {
    /// Look into it.
    Enter,
    /// Leave it.
    Skip,
}

/// A folder that has to be looked at.
#[derive(Debug, Default)]
pub struct Waiting {
    /// Below the root of the walk.
    pub path: PathBuf,
    /// Where it stands in what the visitor remembers, if it does.
    pub page: Option<u32>,
}

/// What looks at each entry, and keeps a `T` of some.
pub trait Visitor<T>: Sync {
    /// What holds for all entries of a folder.
    type Place;

    /// A folder was opened; nothing of it was read yet.
    fn place(&self, folder: &Waiting, handle: BorrowedFd<'_>) -> Self::Place;

    /// An entry was found.
    fn entry(&self, place: &Self::Place, entry: &Entry<'_>, keep: &mut Vec<T>) -> Descend;

    /// A folder cannot be read for lack of permission.
    fn closed(&self, folder: &Path) -> Option<T>;

    /// What is known of a folder without reading it: what to keep of it, the folders in it that are to be
    /// entered, and how many entries it has.
    fn recall(
        &self,
        _folder: &Waiting,
        _keep: &mut Vec<T>,
        _below: &mut Vec<Waiting>,
    ) -> Option<usize> {
        None
    }

    /// A folder was read to its end: this was kept of it, and these are entered next.
    fn leave(
        &self,
        _place: Self::Place,
        _folder: &Waiting,
        _entries: usize,
        _kept: &[T],
        _below: &mut [Waiting],
    ) {
    }
}

struct Queue {
    waiting: Vec<Waiting>,
    /// Threads that are looking, and may find more.
    busy: usize,
    failed: Option<WalkError>,
}

struct Walk<'a, V> {
    root: BorrowedFd<'a>,
    name: &'a Path,
    visitor: &'a V,
    queue: Mutex<Queue>,
    more: Condvar,
    /// Threads that have nothing to do.
    idle: AtomicUsize,
    failed: AtomicBool,
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
    walk_from(root, name, visitor, vec![Waiting::default()])
}

/// The same, from these folders on.
///
/// # Errors
/// See [`WalkError`].
pub fn walk_from<T: Send, V: Visitor<T>>(
    root: BorrowedFd<'_>,
    name: &Path,
    visitor: &V,
    mut starts: Vec<Waiting>,
) -> Result<Vec<T>, WalkError> {
    let walk = Walk {
        root,
        name,
        visitor,
        queue: Mutex::new(Queue { waiting: Vec::new(), busy: 0, failed: None }),
        more: Condvar::new(),
        idle: AtomicUsize::new(0),
        failed: AtomicBool::new(false),
        seen: AtomicUsize::new(0),
    };
    // Most workspaces are small: one thread, until it is clear that more are worth it.
    let mut found = Vec::new();
    walk.run(&mut starts, &mut found, WORTH_THREADS);
    if !starts.is_empty() && !walk.failed.load(Ordering::Relaxed) {
        let threads = std::thread::available_parallelism().map_or(2, usize::from).min(MAX_THREADS);
        walk.lock().waiting = starts;
        walk.lock().busy = threads;
        std::thread::scope(|scope| {
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(|| walk.work())).collect();
            found.extend(walk.work());
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

    /// Works beside other threads, until nothing is left.
    fn work<T>(&self) -> Vec<T>
    where
        V: Visitor<T>,
    {
        let (mut own, mut found) = (Vec::new(), Vec::new());
        while self.take(&mut own) {
            self.run(&mut own, &mut found, usize::MAX);
        }
        found
    }

    /// Takes some of the folders that wait; waits for them while others are still looking.
    fn take(&self, own: &mut Vec<Waiting>) -> bool {
        let mut queue = self.lock();
        queue.busy -= 1;
        self.idle.fetch_add(1, Ordering::Relaxed);
        loop {
            if queue.failed.is_some() {
                return false;
            }
            if !queue.waiting.is_empty() {
                let share = queue.waiting.len().div_ceil(2).min(SHARE);
                let from = queue.waiting.len() - share;
                own.extend(queue.waiting.drain(from..));
                queue.busy += 1;
                self.idle.fetch_sub(1, Ordering::Relaxed);
                return true;
            }
            if queue.busy == 0 {
                self.more.notify_all();
                return false;
            }
            queue = self.more.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Works until nothing of its own is left, `most` folders were seen, or something failed.
    fn run<T>(&self, own: &mut Vec<Waiting>, found: &mut Vec<T>, most: usize)
    where
        V: Visitor<T>,
    {
        let mut buffer = Vec::with_capacity(64 * 1024);
        for _ in 0..most {
            let Some(folder) = own.pop() else { return };
            if self.failed.load(Ordering::Relaxed) {
                return;
            }
            if let Err(error) = self.folder(&folder, &mut buffer, found, own) {
                self.failed.store(true, Ordering::Relaxed);
                self.lock().failed.get_or_insert(error);
                self.more.notify_all();
                return;
            }
            if own.len() > 1 && self.idle.load(Ordering::Relaxed) > 0 {
                // The oldest lie highest in the tree, and have most below them.
                let half = own.len() / 2;
                self.lock().waiting.extend(own.drain(..half));
                self.more.notify_all();
            }
        }
    }

    /// Counts entries.
    fn count(&self, entries: usize) -> Result<(), WalkError> {
        if self.seen.fetch_add(entries, Ordering::Relaxed) + entries > MAX_ENTRIES {
            return Err(WalkError::TooMany(self.name.to_owned()));
        }
        Ok(())
    }

    /// Looks at one folder; the folders to enter next are added to `below`.
    fn folder<T>(
        &self,
        folder: &Waiting,
        buffer: &mut Vec<u8>,
        found: &mut Vec<T>,
        below: &mut Vec<Waiting>,
    ) -> Result<(), WalkError>
    where
        V: Visitor<T>,
    {
        if let Some(entries) = self.visitor.recall(folder, found, below) {
            return self.count(entries);
        }
        let at = folder.path.as_path();
        if at.components().count() > MAX_DEPTH {
            return Err(WalkError::TooDeep(self.name.join(at)));
        }
        let path: &OsStr = if at.as_os_str().is_empty() { ".".as_ref() } else { at.as_os_str() };
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
                found.extend(self.visitor.closed(at));
                return Ok(());
            }
            // Gone, or something else by now.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV) => return Ok(()),
            Err(error) => return Err(WalkError::Read(self.name.join(at), error.into())),
        };
        let place = self.visitor.place(folder, handle.as_fd());
        let (kept, waiting) = (found.len(), below.len());
        let mut count = 0;
        buffer.clear();
        let spare: &mut [MaybeUninit<u8>] = buffer.spare_capacity_mut();
        let mut entries = RawDir::new(&handle, spare);
        while let Some(entry) = entries.next() {
            let entry = entry.map_err(|error| WalkError::Read(self.name.join(at), error.into()))?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            count += 1;
            if count % BATCH == 0 {
                self.count(BATCH)?;
            }
            let kind = match entry.file_type() {
                FileType::Unknown => match statat(&handle, name, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(stat) => FileType::from_raw_mode(stat.st_mode),
                    Err(_) => continue,
                },
                kind => kind,
            };
            let entry = Entry { folder: at, handle: handle.as_fd(), name, kind, ino: entry.ino() };
            let descend = self.visitor.entry(&place, &entry, found);
            if kind == FileType::Directory && descend == Descend::Enter {
                below.push(Waiting { path: entry.path(), page: None });
            }
        }
        self.count(count % BATCH)?;
        self.visitor.leave(place, folder, count, &found[kept..], &mut below[waiting..]);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    struct Names;

    impl Visitor<PathBuf> for Names {
        type Place = ();

        fn place(&self, _: &Waiting, _: BorrowedFd<'_>) {}

        fn entry(&self, (): &(), entry: &Entry<'_>, keep: &mut Vec<PathBuf>) -> Descend {
            let path = entry.path();
            let skip = path.ends_with("skipped");
            keep.push(path);
            if skip { Descend::Skip } else { Descend::Enter }
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
