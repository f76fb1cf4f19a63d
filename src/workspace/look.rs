//! What a survey sees in each folder of a workspace.
//!
//! Duty: of every entry, whether it is hidden, and whether it may be another name of a denied file; all in
//! one walk, and from memory where a folder is as it was. Non-goals: what follows from it (survey).
//! Trust boundary: the tree is the adversary's.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, statat};

use super::grants::{FileGrants, Writes, could_reach};
use super::memory::{Memory, Seen};
use super::names::Names;
use super::protected;
use super::survey::{Looking, Shown, WhyHidden};
use super::walk::{Descend, Entry, Visitor, Waiting};
use crate::engine::plan::MaskKind;
use crate::ids::Identity;

/// What is of interest about an entry, and follows from its name, kind and inode alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    /// It is hidden.
    Hide(MaskKind, WhyHidden),
    /// A link of a denied name.
    DeniedLink,
    /// It has an inode that is looked for.
    SecondName,
    /// A repository's `.git`.
    Repository,
    /// A symlink that stands where the host runs something, or could.
    Link,
}

/// Every mark that can be remembered; its place here is its number.
const MARKS: [Mark; 10] = [
    Mark::Hide(MaskKind::File, WhyHidden::Denied),
    Mark::Hide(MaskKind::Folder, WhyHidden::Denied),
    Mark::Hide(MaskKind::File, WhyHidden::Special),
    Mark::Hide(MaskKind::File, WhyHidden::NotReadable),
    Mark::Hide(MaskKind::Folder, WhyHidden::NotReadable),
    Mark::Hide(MaskKind::Folder, WhyHidden::NotScanned),
    Mark::DeniedLink,
    Mark::SecondName,
    Mark::Repository,
    Mark::Link,
];

impl Mark {
    fn number(self) -> Option<u8> {
        MARKS.iter().position(|mark| *mark == self).and_then(|at| u8::try_from(at).ok())
    }

    fn of(number: u8) -> Option<Self> {
        MARKS.get(usize::from(number)).copied()
    }
}

/// What was found, by path below the workspace.
pub(super) struct Found {
    pub mark: Mark,
    pub path: PathBuf,
    /// It is there, and a second name of it would be found: its inode is looked for in every folder, and was when
    /// those were read that are remembered.
    pub known: bool,
    /// What it was when its name was read, if it was looked at.
    pub facts: Option<FileFacts>,
}

/// Which file it is, and how many names it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileFacts {
    pub identity: Identity,
    pub links: u64,
}

impl FileFacts {
    /// Looks at a name in its folder: a path from the top costs several times as much.
    fn of(entry: &Entry<'_>) -> Option<Self> {
        let stat = statat(entry.handle, entry.name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        let identity = Identity { dev: stat.st_dev, ino: stat.st_ino };
        Some(Self { identity, links: stat.st_nlink })
    }
}

impl Found {
    fn new(mark: Mark, path: PathBuf) -> Self {
        Self { mark, path, known: false, facts: None }
    }
}

pub(super) struct Look<'a> {
    root: BorrowedFd<'a>,
    grants: &'a FileGrants<'a>,
    unscanned: &'a [super::survey::Unscanned],
    /// The patterns of the read list, and of the write list for a call that writes; `None` where the read
    /// list holds everything.
    read: Option<Vec<String>>,
    /// Names that could be denied.
    denied: Names,
    /// Inodes of denied files, whose names are looked for in every folder.
    pub(super) inodes: BTreeSet<u64>,
    /// Whether an inode in a folder is that of the file: something can be mounted over it.
    bare: bool,
    pub(super) memory: Option<Memory>,
}

/// What holds for all entries of one folder.
pub(super) struct Place {
    /// A folder that is not scanned is directly in it.
    special: bool,
    /// Something below it could be denied, whatever its name.
    denied: bool,
    seen: Seen,
}

impl<'a> Look<'a> {
    pub(super) fn new(looking: &Looking<'a>, memory: Option<Memory>) -> Self {
        let grants = looking.grants;
        let deny = grants.deny.patterns();
        let shown = || {
            let mut shown = grants.read.patterns();
            if grants.writes == Writes::Some {
                shown.extend(grants.write.patterns());
            }
            shown
        };
        Self {
            root: looking.workspace.handle(),
            grants,
            unscanned: looking.unscanned,
            read: (!grants.read.covers(Path::new(""))).then(shown),
            denied: Names::new(
                deny.iter().map(String::as_str).chain(protected::key_material().iter().copied()),
            ),
            inodes: memory.iter().flat_map(|memory| memory.inodes()).copied().collect(),
            bare: !looking.mounted_below,
            memory,
        }
    }

    /// Forgets what is remembered, and looks for these inodes.
    pub(super) fn start_over(&mut self, inodes: BTreeSet<u64>) {
        self.inodes = inodes;
        self.memory.iter_mut().for_each(Memory::forget);
    }

    /// Where the walk starts: at the top.
    pub(super) fn starts(&self) -> Vec<Waiting> {
        let page = self.memory.as_ref().and_then(Memory::root);
        vec![Waiting { path: PathBuf::new(), page }]
    }

    fn is_denied(&self, path: &Path) -> bool {
        self.grants.deny.matches(path) || protected::is_key_material(path)
    }

    /// Whether the read list leaves it out. What may be written may be seen.
    fn is_unreadable(&self, path: &Path, kind: FileType) -> bool {
        let Some(patterns) = &self.read else { return false };
        let (read, write) = (self.grants.read, self.grants.write);
        let writes = self.grants.writes == Writes::Some;
        if kind != FileType::Directory {
            return !(read.matches(path) || writes && write.matches(path));
        }
        let left_out = read.leaves_out(path) && (!writes || write.leaves_out(path));
        left_out && !could_reach(patterns, path)
    }

    fn hidden(&self, path: &Path, kind: FileType) -> Option<Mark> {
        let cover = match kind {
            FileType::Directory => MaskKind::Folder,
            _ => MaskKind::File,
        };
        if matches!(kind, FileType::Directory | FileType::RegularFile)
            && self.is_unreadable(path, kind)
            && !self.is_denied(path)
        {
            return Some(Mark::Hide(cover, WhyHidden::NotReadable));
        }
        match kind {
            FileType::Directory => (self.is_denied(path) || self.grants.deny.covers(path))
                .then_some(Mark::Hide(cover, WhyHidden::Denied)),
            FileType::RegularFile => {
                self.is_denied(path).then_some(Mark::Hide(cover, WhyHidden::Denied))
            }
            FileType::Symlink => self.is_denied(path).then_some(Mark::DeniedLink),
            FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Unknown => Some(Mark::Hide(cover, WhyHidden::Special)),
        }
    }

    /// How a folder is shown that is not scanned.
    fn unscanned(&self, path: &Path, kind: FileType) -> Option<Shown> {
        let one = self.unscanned.iter().find(|one| one.folder == path)?;
        (kind == FileType::Directory).then_some(one.shown)
    }
}

impl Visitor<Found> for Look<'_> {
    type Place = Place;

    fn place(&self, folder: &Waiting, handle: BorrowedFd<'_>) -> Place {
        let path = folder.path.as_path();
        let here = |other: &Path| other.parent() == Some(path);
        let parts = || path.iter().map(OsStr::as_bytes);
        Place {
            special: self.unscanned.iter().any(|one| here(&one.folder)),
            denied: self.denied.is_deep(parts()),
            seen: self.memory.as_ref().map_or(Seen::Unkept, |memory| memory.look(handle)),
        }
    }

    fn entry(&self, place: &Place, entry: &Entry<'_>, keep: &mut Vec<Found>) -> Descend {
        let (name, kind) = (entry.name.to_bytes(), entry.kind);
        let plain = matches!(kind, FileType::Directory | FileType::RegularFile | FileType::Symlink);
        let may_hide =
            !plain || self.read.is_some() || place.denied || self.denied.could_hold(name);
        if may_hide || place.special {
            let path = entry.path();
            if let Some(mark) = self.hidden(&path, kind) {
                let is_file = matches!(mark, Mark::Hide(MaskKind::File, _));
                let known = self.bare && is_file && self.inodes.contains(&entry.ino);
                let look = is_file && !known;
                let facts = if look { FileFacts::of(entry) } else { None };
                keep.push(Found { mark, path, known, facts });
                return Descend::Skip;
            }
            match self.unscanned(&path, kind) {
                Some(Shown::Everything) => return Descend::Skip,
                Some(Shown::Nothing) => {
                    let mark = Mark::Hide(MaskKind::Folder, WhyHidden::NotScanned);
                    keep.push(Found::new(mark, path));
                    return Descend::Skip;
                }
                None => {}
            }
        }
        if name == b".git" {
            keep.push(Found::new(Mark::Repository, entry.path()));
        }
        if kind == FileType::Symlink && protected::table::could_be_run_through(&entry.path()) {
            keep.push(Found::new(Mark::Link, entry.path()));
        }
        if kind == FileType::RegularFile && self.inodes.contains(&entry.ino) {
            keep.push(Found::new(Mark::SecondName, entry.path()));
        }
        Descend::Enter
    }

    fn closed(&self, folder: &Path) -> Option<Found> {
        let mark = Mark::Hide(MaskKind::Folder, WhyHidden::Closed);
        Some(Found::new(mark, folder.to_owned()))
    }

    fn recall(
        &self,
        folder: &Waiting,
        keep: &mut Vec<Found>,
        below: &mut Vec<Waiting>,
    ) -> Option<usize> {
        let page = self.memory.as_ref()?.recall(self.root, folder)?;
        let (kept, waiting, entries) = (keep.len(), below.len(), page.entries);
        let path = |name: &[u8]| folder.path.join(OsStr::from_bytes(name));
        let mut known = true;
        let whole = page.read(
            |number, name| match Mark::of(number) {
                Some(mark) => {
                    keep.push(Found { known: self.bare, ..Found::new(mark, path(name)) });
                }
                None => known = false,
            },
            // A page stands behind those of the folders in it: no page leads back to itself.
            |page, name| {
                let page = page.filter(|page| Some(*page) < folder.page);
                below.push(Waiting { path: path(name), page });
            },
        );
        if whole.is_none() || !known {
            keep.truncate(kept);
            below.truncate(waiting);
            return None;
        }
        usize::try_from(entries).ok()
    }

    fn leave(
        &self,
        place: Place,
        folder: &Waiting,
        entries: usize,
        kept: &[Found],
        below: &mut [Waiting],
    ) {
        let Some(memory) = self.memory.as_ref().filter(|_| place.seen != Seen::Unkept) else {
            return;
        };
        memory.find(folder, below);
        let marks = kept
            .iter()
            .map(|it| Some((it.mark.number()?, it.path.file_name()?.as_bytes().to_vec())));
        if let Some(marks) = marks.collect() {
            memory.note(folder, place.seen, entries, marks, below);
        }
    }
}
