//! What a survey remembers of folders, so that those that did not change need not be read again.
//!
//! Duty: say whether a folder is as it was when it was last read, and what was found in it then; note what is read
//! now; write that down where it is worth it. Non-goals: what is of interest in a folder (look), the
//! layout of the file (pages).
//!
//! Trust boundary: the workspace is the adversary's, the memory is not. It lies in a folder of the caller's that
//! no other user can enter, a workspace that holds it is refused, and no sandbox sees it; a process that can write there is
//! the caller. It is bound to the workspace's device and inode, to every list that a survey goes
//! by, to the caller's ids and to the very program that wrote it.
//!
//! Why a folder that looks unchanged is unchanged:
//!
//! - What a survey takes from a folder are the names, kinds and inodes in it. Each change of these sets the
//!   folder's ctime to the present, and no program can set a ctime to anything else. That holds for
//!   the file systems of [`TRUSTED`], on which the caller's own kernel keeps the time; it does
//!   not hold for network and user-space ones, nor for overlays, whose lower layers have times of their own.
//! - A folder counts only if its ctime was [`SETTLED`] before the walk that read it: a change after that reading has
//!   a later time, however coarse the clock or the file system's times are.
//! - Nor may the clock be set back to a time that was. The wall clock's distance from the clock that runs since
//!   the machine started is remembered; if it has moved, or the machine was started anew, nothing counts.
//! - A folder is found by its path, and compared by inode. Its parent was compared before it, so
//!   the name leads to the same folder; what is mounted over it is another one, and only folders on the
//!   workspace's own device are remembered.
//! - What can change without its folder changing is never taken from memory: where a link leads, who may enter
//!   a folder, a folder that could not be read. Nor is the number of links of a hidden file, which
//!   need not be known: the inodes of hidden files are remembered and looked for in every folder that is read. A file
//!   had one name when its inode was first noted, or every folder was read anew to look for it; a name
//!   that was added later changed the folder it is in.
//! - Something mounted over a hidden file does not change the folder. Where the host has mounted anything
//!   below the workspace, every hidden file is looked at, and what is remembered of it then is another memory.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;

use rustix::fs::{AtFlags, FileType, Stat, fstat, fstatfs, statat};

use super::Workspace;
use super::memory_file;
use super::pages::{Binding, MAX_FILE, Page, Pages, Stamp, Writer};
use super::walk::Waiting;

/// File systems whose folders' times tell of every change: ext2 to ext4, XFS, Btrfs, tmpfs.
const TRUSTED: [i128; 4] = [0xEF53, 0x5846_5342, 0x9123_683E, 0x0102_1994];

/// Seconds that a folder must have been as it is. Twice the coarsest time that a trusted file system keeps.
const SETTLED: i64 = 2;

/// How far two readings of the clocks' distance may lie apart: a process may be interrupted between them.
const SAME_CLOCK: i64 = 100_000_000;

/// Folders that are worth a memory: reading fewer takes no longer than reading the memory.
const WORTH: usize = 32;

/// Folders that were read anew, after which a memory is written again.
const WORTH_AGAIN: usize = 16;

/// The memory of one survey.
pub(super) struct Memory {
    folder: PathBuf,
    binding: Binding,
    dev: u64,
    /// The wall clock at the start of the survey, in seconds.
    begun: i64,
    /// Where the wall clock stood when the machine started.
    clock: i64,
    old: Option<Pages>,
    fresh: Mutex<Vec<Fresh>>,
    /// Folders that must have been read for this to be written.
    worth: usize,
}

/// A folder at the moment before it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seen {
    /// It is none of the memory's business.
    Unkept,
    /// It changed a moment ago: only which folders are in it is kept.
    Unsettled,
    /// It can be told apart from any later state.
    Settled(Stamp),
}

/// A folder that was read.
pub(super) struct Fresh {
    path: PathBuf,
    stamp: Option<Stamp>,
    entries: u32,
    marks: Vec<(u8, Vec<u8>)>,
    below: Vec<(Option<u32>, PathBuf)>,
}

impl Memory {
    /// What is remembered in `folder` about a workspace; `None` where nothing can be.
    pub(super) fn open(folder: &Path, workspace: &Workspace, binding: Binding) -> Option<Self> {
        if folder.starts_with(workspace.root()) {
            return None;
        }
        let kind = i128::from(fstatfs(workspace.handle()).ok()?.f_type);
        if !TRUSTED.contains(&kind) {
            return None;
        }
        let (wall, clock) = crate::sys::clocks()?;
        let old = memory_file::read(folder, binding, MAX_FILE)?
            .and_then(|bytes| Pages::read(bytes, binding))
            .filter(|pages| pages.clock.abs_diff(clock) <= SAME_CLOCK.unsigned_abs());
        Some(Self {
            folder: folder.to_owned(),
            binding,
            dev: workspace.identity().dev,
            begun: wall,
            // The first reading counts on: small steps must not add up.
            clock: old.as_ref().map_or(clock, |pages| pages.clock),
            worth: if old.is_some() { WORTH_AGAIN } else { WORTH },
            old,
            fresh: Mutex::default(),
        })
    }

    /// Inodes of hidden files: further names of them are marked in every remembered folder.
    pub(super) fn inodes(&self) -> &[u64] {
        self.old.as_ref().map_or(&[], |pages| &pages.inodes)
    }

    /// Where the workspace's own folder stands.
    pub(super) fn root(&self) -> Option<u32> {
        self.old.as_ref()?.root
    }

    /// Starts over: something else is looked for in every folder.
    pub(super) fn forget(&mut self) {
        self.old = None;
        self.fresh = Mutex::default();
    }

    /// What was found in a folder, if it is as it was then.
    pub(super) fn recall(&self, root: BorrowedFd<'_>, folder: &Waiting) -> Option<Page<'_>> {
        let page = self.page(folder.page)?;
        let stat = if folder.path.as_os_str().is_empty() {
            fstat(root)
        } else {
            statat(root, &folder.path, AtFlags::SYMLINK_NOFOLLOW)
        };
        let stat = stat.ok()?;
        let same = stat.st_dev == self.dev
            && FileType::from_raw_mode(stat.st_mode) == FileType::Directory
            && stamp(&stat) == page.stamp;
        same.then_some(page)
    }

    fn page(&self, page: Option<u32>) -> Option<Page<'_>> {
        self.old.as_ref()?.page(page?)
    }

    /// Looks at a folder before it is read.
    pub(super) fn look(&self, folder: BorrowedFd<'_>) -> Seen {
        match fstat(folder) {
            Ok(stat) if stat.st_dev == self.dev => {
                let stamp = stamp(&stat);
                // No file has inode 0: that is what an unsettled folder is written with.
                if stamp.ino != 0 && stamp.changed.0.saturating_add(SETTLED) < self.begun {
                    Seen::Settled(stamp)
                } else {
                    Seen::Unsettled
                }
            }
            Ok(_) | Err(_) => Seen::Unkept,
        }
    }

    /// Tells the folders in one that was read where they stood, if they were in it before.
    pub(super) fn find(&self, folder: &Waiting, below: &mut [Waiting]) {
        let Some(page) = self.page(folder.page) else { return };
        let mut known: HashMap<&[u8], u32> = HashMap::new();
        let own = folder.page.unwrap_or(0);
        let whole = page.read(
            |_, _| {},
            |page, name| {
                if let Some(page) = page.filter(|page| *page < own) {
                    known.insert(name, page);
                }
            },
        );
        if whole.is_some() {
            for waiting in below {
                let name = waiting.path.file_name().map(OsStr::as_bytes);
                waiting.page = name.and_then(|name| known.get(name).copied());
            }
        }
    }

    /// Notes what was found in a folder.
    pub(super) fn note(
        &self,
        folder: &Waiting,
        seen: Seen,
        entries: usize,
        marks: Vec<(u8, Vec<u8>)>,
        below: &[Waiting],
    ) {
        let stamp = match seen {
            Seen::Unkept => return,
            Seen::Unsettled => None,
            Seen::Settled(stamp) => Some(stamp),
        };
        let below = below.iter().map(|waiting| (waiting.page, waiting.path.clone())).collect();
        let entries = u32::try_from(entries).unwrap_or(u32::MAX);
        let fresh = Fresh { path: folder.path.clone(), stamp, entries, marks, below };
        self.fresh.lock().unwrap_or_else(PoisonError::into_inner).push(fresh);
    }

    /// Writes down what was found, if that is worth it, behind the caller's back: the answer does not wait,
    /// and nothing is lost but time if the process ends before that. `inodes` are those whose names are marked.
    pub(super) fn keep(self, inodes: Vec<u64>) -> Option<JoinHandle<()>> {
        let fresh = self.fresh.into_inner().unwrap_or_else(PoisonError::into_inner);
        let settled = fresh.iter().filter(|folder| folder.stamp.is_some()).count();
        if settled < self.worth {
            return None;
        }
        let (folder, binding, old) = (self.folder, self.binding, self.old);
        let writer = Writer::new(binding, self.clock, &inodes);
        let work = move || {
            if let Some(bytes) = compose(writer, old.as_ref(), fresh) {
                memory_file::write(&folder, binding, &bytes);
            }
        };
        std::thread::Builder::new().name("remember".to_owned()).spawn(work).ok()
    }
}

fn stamp(stat: &Stat) -> Stamp {
    let nanoseconds = |value| u32::try_from(value).unwrap_or(u32::MAX);
    Stamp {
        ino: stat.st_ino,
        changed: (stat.st_ctime, nanoseconds(stat.st_ctime_nsec)),
        modified: (stat.st_mtime, nanoseconds(stat.st_mtime_nsec)),
    }
}

/// One file of what was found now, and what was remembered and still holds.
fn compose(mut writer: Writer, old: Option<&Pages>, fresh: Vec<Fresh>) -> Option<Vec<u8>> {
    let mut fresh: HashMap<PathBuf, Fresh> =
        fresh.into_iter().map(|folder| (folder.path.clone(), folder)).collect();
    let root = old.and_then(|pages| pages.root);
    let root = add(&mut writer, old, &mut fresh, Path::new(""), root).ok()??;
    Some(writer.finish(root))
}

/// The file would be too large.
struct TooLarge;

/// Adds a folder's page behind those of the folders in it; `None` for a folder of which nothing is known.
fn add(
    writer: &mut Writer,
    old: Option<&Pages>,
    fresh: &mut HashMap<PathBuf, Fresh>,
    path: &Path,
    page: Option<u32>,
) -> Result<Option<u32>, TooLarge> {
    let (mut marks, mut folders) = (Vec::new(), Vec::new());
    let own = fresh.remove(path);
    let (stamp, entries) = if let Some(own) = &own {
        for (page, below) in &own.below {
            let name = below.file_name().unwrap_or_default().as_bytes();
            folders.push((add(writer, old, fresh, below, *page)?, name));
        }
        marks.extend(own.marks.iter().map(|(kind, name)| (*kind, name.as_slice())));
        (own.stamp.unwrap_or_default(), own.entries)
    } else {
        let Some((at, known)) = page.and_then(|page| Some((page, old?.page(page)?))) else {
            return Ok(None);
        };
        let (stamp, entries) = (known.stamp, known.entries);
        let mut below = Vec::new();
        let whole = known.read(
            |kind, name| marks.push((kind, name)),
            |page, name| below.push((page.filter(|page| *page < at), name)),
        );
        if whole.is_none() {
            return Ok(None);
        }
        for (page, name) in below {
            let inner = path.join(OsStr::from_bytes(name));
            folders.push((add(writer, old, fresh, &inner, page)?, name));
        }
        (stamp, entries)
    };
    writer.page(stamp, entries, &marks, &folders).map(Some).ok_or(TooLarge)
}

#[cfg(test)]
#[path = "memory_tests.rs"]
pub(super) mod tests;
