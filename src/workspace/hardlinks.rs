//! Files in writable folders that have another name elsewhere.
//!
//! Duty: find them before anything is mounted. A hard link is the file itself: whoever writes it changes
//! the other name too, be that a source that the policy keeps read-only or a file outside the workspace,
//! and no mount can tell. Non-goals: reading; a name in the workspace may be read as such. Trust boundary: the
//! tree is the adversary's; what is linked after this look was linked by someone on the host.
//!
//! Names that all lie in writable folders are harmless, and builds make many of them. Git's objects are
//! shared between local clones by design and never rewritten: they are made read-only instead of refused.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, statat};

use super::Workspace;
use super::find::identity_of;
use super::survey::Survey;
use super::walk::{Descend, Entry, Visitor, Waiting, WalkError, walk};
use crate::ids::Identity;

/// How often a file must look shared: a build beside this call makes and removes names under the walk.
const LOOKS: usize = 3;

/// Why it is not known that every name of a writable file is writable.
#[derive(Debug)]
pub(crate) enum LinkError {
    /// A file that would be writable has another name elsewhere.
    Shared(PathBuf),
    /// A writable folder cannot be opened.
    Open(PathBuf, io::Error),
    /// The walk did not end.
    Walk(WalkError),
}

impl From<WalkError> for LinkError {
    fn from(error: WalkError) -> Self {
        Self::Walk(error)
    }
}

/// A file with several names, and one of them.
#[derive(Debug)]
pub(super) struct Name {
    pub(super) path: PathBuf,
    pub(super) identity: Identity,
    pub(super) links: u64,
}

struct Several<'a> {
    tree: &'a Path,
}

impl Visitor<Name> for Several<'_> {
    type Place = ();

    fn place(&self, _: &Waiting, _: BorrowedFd<'_>) {}

    fn entry(&self, (): &(), entry: &Entry<'_>, keep: &mut Vec<Name>) -> Descend {
        if entry.kind == FileType::RegularFile
            && let Ok(stat) = statat(entry.handle, entry.name, AtFlags::SYMLINK_NOFOLLOW)
            && stat.st_nlink > 1
        {
            let (identity, links) = (identity_of(&stat), stat.st_nlink);
            keep.push(Name { path: self.tree.join(entry.path()), identity, links });
        }
        Descend::Enter
    }

    fn closed(&self, _: &Path) -> Option<Name> {
        None
    }
}

/// Refuses a file in a writable folder that has a name elsewhere; closes git's shared objects.
/// The survey has looked once; who looks shared is looked at again.
///
/// # Errors
/// [`LinkError::Shared`], or the walk did not end.
pub(crate) fn close(
    workspace: &Workspace,
    trees: &[PathBuf],
    survey: &mut Survey,
) -> Result<(), LinkError> {
    for tree in outermost(trees) {
        open(workspace, tree)?;
    }
    let mut suspects = shared(std::mem::take(&mut survey.several), survey);
    for _ in 1..LOOKS {
        if suspects.is_empty() {
            return Ok(());
        }
        let again = shared(look(workspace, trees)?, survey);
        suspects.retain(|identity, _| again.contains_key(identity));
    }
    for path in suspects.into_values().flatten() {
        if survey.anchored.iter().any(|git| path.starts_with(git.join("objects"))) {
            survey.protected.insert(path);
        } else {
            return Err(LinkError::Shared(workspace.root().join(path)));
        }
    }
    Ok(())
}

fn open(workspace: &Workspace, tree: &Path) -> Result<OwnedFd, LinkError> {
    let failed = |error| LinkError::Open(workspace.root().join(tree), error);
    workspace.open_folder(tree).map_err(failed)
}

/// Files with several names in writable folders.
fn look(workspace: &Workspace, trees: &[PathBuf]) -> Result<Vec<Name>, LinkError> {
    let mut names = Vec::new();
    for tree in outermost(trees) {
        let handle = open(workspace, tree)?;
        let absolute = workspace.root().join(tree);
        names.extend(walk(handle.as_fd(), &absolute, &Several { tree })?);
    }
    Ok(names)
}

/// Files of which a name was seen in a writable folder, and fewer than there are.
fn shared(names: Vec<Name>, survey: &Survey) -> BTreeMap<Identity, Vec<PathBuf>> {
    let mut files: BTreeMap<Identity, (u64, Vec<PathBuf>)> = BTreeMap::new();
    for name in names {
        // A name that is covered or read-only is as good as one elsewhere.
        if !survey.is_closed(&name.path) {
            let (_, names) = files.entry(name.identity).or_insert((name.links, Vec::new()));
            names.push(name.path);
        }
    }
    let fewer =
        |names: &[PathBuf], links| u64::try_from(names.len()).is_ok_and(|seen| seen < links);
    files
        .into_iter()
        .filter(|(_, (links, names))| fewer(names, *links))
        .map(|(identity, (_, mut names))| {
            names.sort();
            (identity, names)
        })
        .collect()
}

fn outermost(trees: &[PathBuf]) -> impl Iterator<Item = &Path> {
    let inner = |tree: &PathBuf| trees.iter().any(|other| other != tree && tree.starts_with(other));
    trees.iter().filter(move |tree| !inner(tree)).map(PathBuf::as_path)
}
