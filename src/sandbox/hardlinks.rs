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
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, statat};

use super::mount_error::{MountError, link_or};
use super::plan::Identity;
use super::survey::Survey;
use super::walk::{Descend, Entry, Step, Visitor, walk};
use super::workspace::{Workspace, identity_of};

/// How often a file must look shared: a build beside this call makes and removes names under the walk.
const LOOKS: usize = 3;

/// A file with several names, and one of them.
struct Name {
    path: PathBuf,
    identity: Identity,
    links: u64,
}

struct Several<'a> {
    workspace: &'a Workspace,
    tree: &'a Path,
}

impl Visitor<Name> for Several<'_> {
    fn entry(&self, entry: Entry<'_>) -> Step<Name> {
        let keep = (entry.kind == FileType::RegularFile)
            .then(|| self.tree.join(entry.path))
            .and_then(|path| {
                let handle = self.workspace.handle();
                let stat = statat(handle, &path, AtFlags::SYMLINK_NOFOLLOW).ok()?;
                let links = stat.st_nlink;
                (links > 1).then(|| Name { identity: identity_of(&stat), links, path })
            });
        Step { keep, descend: Descend::Enter }
    }

    fn closed(&self, _: &Path) -> Option<Name> {
        None
    }
}

/// Refuses a file in a writable folder that has a name elsewhere; closes git's shared objects.
///
/// # Errors
/// [`MountError::Shared`], or the walk did not end.
pub(super) fn close(
    workspace: &Workspace,
    trees: &[PathBuf],
    survey: &mut Survey,
) -> Result<(), MountError> {
    let mut suspects = shared(workspace, trees, survey)?;
    for _ in 1..LOOKS {
        if suspects.is_empty() {
            return Ok(());
        }
        let again = shared(workspace, trees, survey)?;
        suspects.retain(|identity, _| again.contains_key(identity));
    }
    for path in suspects.into_values().flatten() {
        if survey.anchored.iter().any(|git| path.starts_with(git.join("objects"))) {
            survey.protected.insert(path);
        } else {
            return Err(MountError::Shared(workspace.root().join(path)));
        }
    }
    Ok(())
}

/// Files of which a name was seen in a writable folder, and fewer than there are.
fn shared(
    workspace: &Workspace,
    trees: &[PathBuf],
    survey: &Survey,
) -> Result<BTreeMap<Identity, Vec<PathBuf>>, MountError> {
    let mut files: BTreeMap<Identity, (u64, Vec<PathBuf>)> = BTreeMap::new();
    for tree in outermost(trees) {
        let absolute = workspace.root().join(tree);
        let found = workspace
            .open_folder(tree)
            .map_err(|error| link_or(absolute.clone(), error, MountError::Open))?;
        let handle = std::os::fd::AsFd::as_fd(&found);
        for name in walk(handle, &absolute, &Several { workspace, tree })? {
            // A name that is covered or read-only is as good as one elsewhere.
            if !survey.is_closed(&name.path) {
                let (_, names) = files.entry(name.identity).or_insert((name.links, Vec::new()));
                names.push(name.path);
            }
        }
    }
    let fewer =
        |names: &[PathBuf], links| u64::try_from(names.len()).is_ok_and(|seen| seen < links);
    Ok(files
        .into_iter()
        .filter(|(_, (links, names))| fewer(names, *links))
        .map(|(identity, (_, mut names))| {
            names.sort();
            (identity, names)
        })
        .collect())
}

fn outermost(trees: &[PathBuf]) -> impl Iterator<Item = &Path> {
    let inner = |tree: &PathBuf| trees.iter().any(|other| other != tree && tree.starts_with(other));
    trees.iter().filter(move |tree| !inner(tree)).map(PathBuf::as_path)
}
