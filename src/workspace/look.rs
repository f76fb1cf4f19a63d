//! What a survey sees in each folder of a workspace.
//!
//! Duty: of every entry, whether it is hidden or protected, whether it may be another name of a denied file, and how many
//! names it has where it could be written; all in one walk, and from memory where a folder is as it
//! was. Non-goals: what follows from it (survey). Trust boundary: the tree is the adversary's.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, statat};

use super::find::identity_of;
use super::grants::{FileGrants, Writes, could_reach};
use super::hardlinks::Name;
use super::memory::{Memory, Seen};
use super::names::Names;
use super::protected::{self, Guard};
use super::survey::{Looking, Shown, WhyHidden};
use super::walk::{Descend, Entry, Visitor, Waiting};
use crate::engine::plan::MaskKind;

/// What is of interest about an entry, and follows from its name, kind and inode alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    /// Nobody may see it.
    Hide(MaskKind, WhyHidden),
    /// A link of a denied name.
    DeniedLink,
    /// Read-only in a writable folder.
    Protected,
    /// May be written into, but not replaced.
    Anchored,
    /// A link of a protected name.
    ProtectedLink,
    /// It has an inode that is looked for.
    SecondName,
    /// A repository's `.git`.
    Repository,
}

/// Every mark that can be remembered; its place here is its number.
const MARKS: [Mark; 12] = [
    Mark::Hide(MaskKind::File, WhyHidden::Denied),
    Mark::Hide(MaskKind::Folder, WhyHidden::Denied),
    Mark::Hide(MaskKind::File, WhyHidden::Special),
    Mark::Hide(MaskKind::File, WhyHidden::NotReadable),
    Mark::Hide(MaskKind::Folder, WhyHidden::NotReadable),
    Mark::Hide(MaskKind::Folder, WhyHidden::NotScanned),
    Mark::DeniedLink,
    Mark::Protected,
    Mark::Anchored,
    Mark::ProtectedLink,
    Mark::SecondName,
    Mark::Repository,
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
pub(super) enum Found {
    Marked(Mark, PathBuf),
    /// A file in a writable folder that has several names.
    Several(Name),
}

pub(super) struct Look<'a> {
    root: BorrowedFd<'a>,
    grants: &'a FileGrants<'a>,
    /// Writable folders, and whether all that is below them is in the write list.
    trees: Vec<(&'a Path, Covered)>,
    unscanned: &'a [super::survey::Unscanned],
    /// The read list's patterns; `None` where it holds everything.
    read: Option<Vec<String>>,
    /// Names that could be denied.
    denied: Names,
    /// Names that could be protected.
    guarded: Names,
    /// Inodes of denied files that have several names.
    pub(super) inodes: BTreeSet<u64>,
    pub(super) memory: Option<Memory>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Covered {
    Whole,
    InPart,
}

/// What holds for all entries of one folder.
pub(super) struct Place {
    writable: Option<Covered>,
    /// A writable folder, or one that is not scanned, is directly in it.
    special: bool,
    /// Something below it could be denied, whatever its name.
    denied: bool,
    /// The same for protected.
    guarded: bool,
    seen: Seen,
}

impl<'a> Look<'a> {
    pub(super) fn new(looking: &Looking<'a>, memory: Option<Memory>) -> Self {
        let grants = looking.grants;
        let deny = grants.deny.patterns();
        let readonly = grants.readonly.patterns();
        let guards = protected::patterns();
        let covered = |tree: &Path| {
            if grants.write.covers(tree) { Covered::Whole } else { Covered::InPart }
        };
        Self {
            root: looking.workspace.handle(),
            grants,
            trees: looking.trees.iter().map(|tree| (tree.as_path(), covered(tree))).collect(),
            unscanned: looking.unscanned,
            read: (!grants.read.covers(Path::new(""))).then(|| grants.read.patterns()),
            denied: Names::new(
                deny.iter().map(String::as_str).chain(protected::key_material().iter().copied()),
            ),
            guarded: Names::new(readonly.iter().chain(&guards).map(String::as_str)),
            inodes: memory.iter().flat_map(|memory| memory.inodes()).copied().collect(),
            memory,
        }
    }

    /// Where the walk starts: at the top, and in what is writable below a folder that is not entered.
    pub(super) fn starts(&self) -> Vec<Waiting> {
        let page = self.memory.as_ref().and_then(Memory::root);
        let left_out = |tree: &Path| {
            self.unscanned.iter().any(|one| {
                one.shown == Shown::Everything
                    && tree != one.folder
                    && tree.starts_with(&one.folder)
                    && !self.is_writable(&one.folder)
            })
        };
        let inner = self.trees.iter().filter(|(tree, _)| left_out(tree));
        let inner = inner.map(|(tree, _)| Waiting { path: (*tree).to_owned(), page: None });
        inner.chain([Waiting { path: PathBuf::new(), page }]).collect()
    }

    fn is_denied(&self, path: &Path) -> bool {
        self.grants.deny.matches(path) || protected::is_key_material(path)
    }

    /// Whether something could be written there.
    pub(super) fn is_writable(&self, path: &Path) -> bool {
        self.trees.iter().any(|(tree, _)| path.starts_with(tree))
    }

    /// Whether the read list leaves it out. What may be written may be seen.
    fn is_unreadable(&self, path: &Path, kind: FileType) -> bool {
        let Some(patterns) = &self.read else { return false };
        if self.is_writable(path) {
            return false;
        }
        if kind != FileType::Directory {
            return !self.grants.read.matches(path);
        }
        let above = self.trees.iter().any(|(tree, _)| tree.starts_with(path));
        !above && self.grants.read.leaves_out(path) && !could_reach(patterns, path)
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

    /// Whether the policy's own lists keep it from being written. A read-only folder holds for what is in
    /// it; a folder that the write list does not name may still hold something that it names.
    fn is_listed(&self, path: &Path, kind: FileType) -> bool {
        let (readonly, write) = (self.grants.readonly, self.grants.write);
        if readonly.matches(path) {
            return true;
        }
        if kind == FileType::Directory {
            readonly.covers(path) || write.leaves_out(path)
        } else {
            !write.matches(path)
        }
    }

    fn protected(&self, path: &Path, kind: FileType) -> Option<Mark> {
        if self.grants.writes == Writes::None || !self.is_writable(path) {
            return None;
        }
        let mut guard = protected::guard(path);
        if guard == Guard::Open && self.is_listed(path, kind) {
            guard = Guard::ReadOnly;
        }
        match (guard, kind) {
            (Guard::Open, _) => None,
            (Guard::Anchored | Guard::ReadOnly, FileType::Symlink) => Some(Mark::ProtectedLink),
            (Guard::Anchored, FileType::Directory) => Some(Mark::Anchored),
            (Guard::Anchored | Guard::ReadOnly, _) => Some(Mark::Protected),
        }
    }

    /// How a folder is shown that is not scanned; where something is writable, everything is scanned.
    fn unscanned(&self, path: &Path, kind: FileType) -> Option<Shown> {
        let one = self.unscanned.iter().find(|one| one.folder == path)?;
        let counts = match one.shown {
            Shown::Nothing => true,
            Shown::Everything => !self.is_writable(path),
        };
        (counts && kind == FileType::Directory).then_some(one.shown)
    }
}

impl Visitor<Found> for Look<'_> {
    type Place = Place;

    fn place(&self, folder: &Waiting, handle: BorrowedFd<'_>) -> Place {
        let path = folder.path.as_path();
        let around = self.trees.iter().filter(|(tree, _)| path.starts_with(tree));
        let writable = around
            .map(|(_, covered)| *covered)
            .reduce(|one, other| if one == Covered::Whole { one } else { other });
        let here = |other: &Path| other.parent() == Some(path);
        let parts = || path.iter().map(OsStr::as_bytes);
        Place {
            writable,
            special: self.trees.iter().any(|(tree, _)| here(tree))
                || self.unscanned.iter().any(|one| here(&one.folder)),
            denied: self.denied.is_deep(parts()),
            guarded: writable.is_some() && self.guarded.is_deep(parts()),
            seen: match (&self.memory, writable) {
                (Some(memory), None) => memory.look(handle),
                (Some(_), Some(_)) | (None, _) => Seen::Unkept,
            },
        }
    }

    fn entry(&self, place: &Place, entry: &Entry<'_>, keep: &mut Vec<Found>) -> Descend {
        let (name, kind) = (entry.name.to_bytes(), entry.kind);
        let plain = matches!(kind, FileType::Directory | FileType::RegularFile | FileType::Symlink);
        let may_hide =
            !plain || self.read.is_some() || place.denied || self.denied.could_hold(name);
        let may_guard = match place.writable {
            Some(Covered::Whole) => place.guarded || self.guarded.could_hold(name),
            Some(Covered::InPart) => true,
            None => false,
        };
        if may_hide || may_guard || place.special {
            let path = entry.path();
            if let Some(mark) = self.hidden(&path, kind) {
                keep.push(Found::Marked(mark, path));
                return Descend::Skip;
            }
            match self.unscanned(&path, kind) {
                Some(Shown::Everything) => return Descend::Skip,
                Some(Shown::Nothing) => {
                    let mark = Mark::Hide(MaskKind::Folder, WhyHidden::NotScanned);
                    keep.push(Found::Marked(mark, path));
                    return Descend::Skip;
                }
                None => {}
            }
            if let Some(mark) = self.protected(&path, kind) {
                keep.push(Found::Marked(mark, path));
            }
        }
        if name == b".git" {
            keep.push(Found::Marked(Mark::Repository, entry.path()));
        }
        if kind == FileType::RegularFile {
            if !self.inodes.is_empty() && self.inodes.contains(&entry.ino) {
                keep.push(Found::Marked(Mark::SecondName, entry.path()));
            }
            if place.writable.is_some()
                && let Ok(stat) = statat(entry.handle, entry.name, AtFlags::SYMLINK_NOFOLLOW)
                && stat.st_nlink > 1
            {
                let (identity, links) = (identity_of(&stat), stat.st_nlink);
                keep.push(Found::Several(Name { path: entry.path(), identity, links }));
            }
        }
        Descend::Enter
    }

    fn closed(&self, folder: &Path) -> Option<Found> {
        let mark = Mark::Hide(MaskKind::Folder, WhyHidden::Closed);
        Some(Found::Marked(mark, folder.to_owned()))
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
                Some(mark) => keep.push(Found::Marked(mark, path(name))),
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
        let marks = kept.iter().map(|found| match found {
            Found::Marked(mark, path) => {
                Some((mark.number()?, path.file_name()?.as_bytes().to_vec()))
            }
            Found::Several(_) => None,
        });
        if let Some(marks) = marks.collect() {
            memory.note(folder, place.seen, entries, marks, below);
        }
    }
}
