//! Looks through a workspace for what a plan must hide or protect.
//!
//! Duty: one walk that finds denied and special files, and protected paths that exist in writable folders.
//! Non-goals: covering them (masks) and mounting (mounts). Trust boundary: the tree is the
//! adversary's. A denied name that is a link hides what it leads to; a denied file with a second name
//! hides that name too; sockets, pipes and devices lead out of the sandbox and are always hidden.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use rustix::fs::FileType;

use super::grants::{FileGrants, Writes, could_reach};
use super::plan::{Identity, MaskKind};
use super::protected::{self, Guard};
use super::walk::{Descend, Entry, Step, Visitor, WalkError, walk};
use super::workspace::{Owner, Workspace};

/// What a walk found.
#[derive(Debug, Default)]
pub struct Survey {
    /// What must not be seen, by path below the workspace.
    pub hidden: BTreeMap<PathBuf, Hidden>,
    /// Protected paths that exist in writable folders, outermost only.
    pub protected: BTreeSet<PathBuf>,
    /// Folders in writable ones that may be written into, but not renamed or replaced.
    pub anchored: BTreeSet<PathBuf>,
    /// Protected names that are links: nothing can be mounted over a link.
    pub links: BTreeSet<PathBuf>,
}

/// Something that must not be seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hidden {
    /// What covers it.
    pub kind: MaskKind,
    /// What it was.
    pub identity: Identity,
    /// Why.
    pub why: WhyHidden,
}

/// Why something is hidden.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhyHidden {
    /// A policy denies it, or it is key material.
    Denied,
    /// A denied link leads to it, or it is another name of a denied file.
    SameAsDenied,
    /// A socket, pipe or device.
    Special,
    /// It cannot be looked through.
    Closed,
    /// The policy's read list does not hold it.
    NotReadable,
}

enum Found {
    Hide(PathBuf, MaskKind, WhyHidden),
    DeniedLink(PathBuf),
    Protected(PathBuf),
    Anchored(PathBuf),
    ProtectedLink(PathBuf),
}

struct Look<'a> {
    grants: &'a FileGrants<'a>,
    trees: &'a [PathBuf],
    /// The read list's patterns; `None` where it holds everything.
    read: Option<Vec<String>>,
}

impl Look<'_> {
    fn is_denied(&self, path: &Path) -> bool {
        self.grants.deny.matches(path) || protected::is_key_material(path)
    }

    /// Whether something could be written there.
    fn is_writable(&self, path: &Path) -> bool {
        self.trees.iter().any(|tree| path.starts_with(tree))
    }

    /// Whether the read list leaves it out. What may be written may be seen.
    fn is_unreadable(&self, entry: &Entry<'_>) -> bool {
        let Some(patterns) = &self.read else { return false };
        if self.is_writable(entry.path) {
            return false;
        }
        if entry.kind != FileType::Directory {
            return !self.grants.read.matches(entry.path);
        }
        let above = self.trees.iter().any(|tree| tree.starts_with(entry.path));
        !above && self.grants.read.leaves_out(entry.path) && !could_reach(patterns, entry.path)
    }

    fn hidden(&self, entry: &Entry<'_>) -> Option<Found> {
        let path = || entry.path.to_owned();
        if matches!(entry.kind, FileType::Directory | FileType::RegularFile)
            && self.is_unreadable(entry)
            && !self.is_denied(entry.path)
        {
            let kind = match entry.kind {
                FileType::Directory => MaskKind::Folder,
                _ => MaskKind::File,
            };
            return Some(Found::Hide(path(), kind, WhyHidden::NotReadable));
        }
        match entry.kind {
            FileType::Directory => (self.is_denied(entry.path)
                || self.grants.deny.covers(entry.path))
            .then(|| Found::Hide(path(), MaskKind::Folder, WhyHidden::Denied)),
            FileType::RegularFile => self
                .is_denied(entry.path)
                .then(|| Found::Hide(path(), MaskKind::File, WhyHidden::Denied)),
            FileType::Symlink => self.is_denied(entry.path).then(|| Found::DeniedLink(path())),
            FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Unknown => Some(Found::Hide(path(), MaskKind::File, WhyHidden::Special)),
        }
    }

    /// Whether the policy's own lists keep it from being written. What a list names as a single path
    /// is a folder's name; what is below it is another matter.
    fn is_listed(&self, entry: &Entry<'_>) -> bool {
        let (readonly, write) = (self.grants.readonly, self.grants.write);
        if entry.kind == FileType::Directory {
            readonly.covers(entry.path) || write.leaves_out(entry.path)
        } else {
            readonly.matches(entry.path) || !write.matches(entry.path)
        }
    }

    fn protected(&self, entry: &Entry<'_>) -> Option<Found> {
        if self.grants.writes == Writes::None || !self.is_writable(entry.path) {
            return None;
        }
        let mut guard = protected::guard(entry.path);
        if guard == Guard::Open && self.is_listed(entry) {
            guard = Guard::ReadOnly;
        }
        let path = entry.path.to_owned();
        match (guard, entry.kind) {
            (Guard::Open, _) => None,
            (Guard::Anchored | Guard::ReadOnly, FileType::Symlink) => {
                Some(Found::ProtectedLink(path))
            }
            (Guard::Anchored, FileType::Directory) => Some(Found::Anchored(path)),
            (Guard::Anchored | Guard::ReadOnly, _) => Some(Found::Protected(path)),
        }
    }
}

impl Visitor<Found> for Look<'_> {
    fn entry(&self, entry: Entry<'_>) -> Step<Found> {
        if let Some(hidden) = self.hidden(&entry) {
            return Step { keep: Some(hidden), descend: Descend::Skip };
        }
        Step { keep: self.protected(&entry), descend: Descend::Enter }
    }

    fn closed(&self, folder: &Path) -> Option<Found> {
        Some(Found::Hide(folder.to_owned(), MaskKind::Folder, WhyHidden::Closed))
    }
}

/// Looks through a workspace for a command that runs as `user`. `trees` are the folders that will be
/// writable.
///
/// # Errors
/// The workspace is too large, too deep or unreadable.
pub fn survey(
    workspace: &Workspace,
    grants: &FileGrants<'_>,
    trees: &[PathBuf],
    user: Owner,
) -> Result<Survey, WalkError> {
    let read = (!grants.read.covers(Path::new(""))).then(|| grants.read.patterns());
    let look = Look { grants, trees, read };
    let mut survey = Survey::default();
    let mut denied_links = Vec::new();
    for found in walk(workspace.handle(), workspace.root(), &look)? {
        match found {
            Found::Hide(path, kind, why) => survey.hide(workspace, path, kind, why),
            Found::DeniedLink(path) => denied_links.push(path),
            Found::Protected(path) => drop(survey.protected.insert(path)),
            // A git folder without a HEAD is none yet: it may be one that only holds the name.
            Found::Anchored(path) => drop(match workspace.open(&path.join("HEAD")) {
                Ok(_) => survey.anchored.insert(path),
                Err(_) => survey.protected.insert(path),
            }),
            Found::ProtectedLink(path) => drop(survey.links.insert(path)),
        }
    }
    for link in denied_links {
        if let Some((path, kind)) = leads_to(workspace, &link) {
            survey.hide(workspace, path, kind, WhyHidden::SameAsDenied);
        }
    }
    hide_second_names(workspace, &mut survey)?;
    survey.close_unreachable(workspace, user);
    survey.outermost();
    Ok(survey)
}

impl Survey {
    fn hide(&mut self, workspace: &Workspace, path: PathBuf, kind: MaskKind, why: WhyHidden) {
        // What is gone by now needs no cover.
        if path.as_os_str().is_empty() {
            return;
        }
        if let Ok(found) = workspace.open(&path) {
            self.hidden.entry(path).or_insert(Hidden { kind, identity: found.identity, why });
        }
    }

    /// Whether the path is hidden, or lies in something hidden.
    #[must_use]
    pub fn is_hidden(&self, path: &Path) -> bool {
        path.ancestors().any(|above| self.hidden.contains_key(above))
    }

    /// Whether the path is read-only or hidden, by itself or as part of something larger.
    #[must_use]
    pub fn is_closed(&self, path: &Path) -> bool {
        self.is_hidden(path) || path.ancestors().any(|above| self.protected.contains(above))
    }

    /// Hides folders that the command's user cannot enter, where something below them is of interest: what
    /// stands there could not be compared from inside.
    fn close_unreachable(&mut self, workspace: &Workspace, user: Owner) {
        let of_interest: BTreeSet<PathBuf> = self
            .hidden
            .keys()
            .chain(&self.protected)
            .chain(&self.anchored)
            .flat_map(|path| path.ancestors().skip(1))
            .filter(|above| !above.as_os_str().is_empty())
            .map(Path::to_owned)
            .collect();
        for folder in of_interest {
            if workspace.open(&folder).is_ok_and(|found| !found.lets_in(user)) {
                self.hide(workspace, folder, MaskKind::Folder, WhyHidden::Closed);
            }
        }
    }

    /// Drops what lies below something that is hidden or protected as a whole.
    fn outermost(&mut self) {
        let hidden: BTreeSet<PathBuf> = self.hidden.keys().cloned().collect();
        let below = |set: &BTreeSet<PathBuf>, path: &Path| {
            path.ancestors().skip(1).any(|above| set.contains(above))
        };
        self.hidden.retain(|path, _| !below(&hidden, path));
        let protected = self.protected.clone();
        self.protected.retain(|path| !below(&protected, path) && !below(&hidden, path));
        self.anchored.retain(|path| !below(&protected, path) && !below(&hidden, path));
        self.links.retain(|path| !below(&protected, path) && !below(&hidden, path));
    }
}

/// What a link in the workspace leads to, if that lies in the workspace.
fn leads_to(workspace: &Workspace, link: &Path) -> Option<(PathBuf, MaskKind)> {
    let real = workspace.root().join(link).canonicalize().ok()?;
    let path = real.strip_prefix(workspace.root()).ok()?.to_owned();
    let kind = match workspace.open(&path).ok()?.kind {
        FileType::Directory => MaskKind::Folder,
        _ => MaskKind::File,
    };
    (!path.as_os_str().is_empty()).then_some((path, kind))
}

/// A denied file with several names is hidden under all of them.
fn hide_second_names(workspace: &Workspace, survey: &mut Survey) -> Result<(), WalkError> {
    struct Names<'a>(&'a BTreeSet<u64>);

    impl Visitor<PathBuf> for Names<'_> {
        fn entry(&self, entry: Entry<'_>) -> Step<PathBuf> {
            let same = entry.kind == FileType::RegularFile && self.0.contains(&entry.ino);
            Step { keep: same.then(|| entry.path.to_owned()), descend: Descend::Enter }
        }

        fn closed(&self, _: &Path) -> Option<PathBuf> {
            None
        }
    }

    let mut several = BTreeSet::new();
    let mut inodes = BTreeSet::new();
    for (path, hidden) in &survey.hidden {
        if hidden.kind == MaskKind::File && workspace.open(path).is_ok_and(|found| found.links > 1)
        {
            several.insert(hidden.identity);
            inodes.insert(hidden.identity.ino);
        }
    }
    if inodes.is_empty() {
        return Ok(());
    }
    for path in walk(workspace.handle(), workspace.root(), &Names(&inodes))? {
        if workspace.open(&path).is_ok_and(|found| several.contains(&found.identity)) {
            survey.hide(workspace, path, MaskKind::File, WhyHidden::SameAsDenied);
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "survey_tests.rs"]
mod tests;
