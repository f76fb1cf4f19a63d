//! The overlay of a workspace: what a command sees of the caller's tree.
//!
//! Duty: survey the workspace, make the layer of covers, and name what the host has mounted below the
//! workspace, which an overlay does not take along. Non-goals: what is written (a stage takes it, and
//! [`crate::stage`] judges it).

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::{Path, PathBuf};

use rustix::fs::FileType;

use super::certificates;
use super::covers::{Content, Cover, Covering, layer};
use super::hidden_index::{self, Hiding};
use super::materials::Missing;
use super::mount_error::MountError;
use crate::engine::plan::{
    MaskKind, Mount, MountRole, Note, Overlay, OverlayRole, OverlayWrites, WorkTree,
};
use crate::workspace::grants::{FileGrants, Writes};
use crate::workspace::mountinfo::MountPoints;
use crate::workspace::protected;
use crate::workspace::survey::{Hidden, Looking, Unscanned, WhyHidden, survey};
use crate::workspace::{Owner, Workspace};

/// Most file systems that may be mounted below a workspace.
const MAX_BELOW: usize = 256;

/// What a command sees of a workspace.
#[derive(Debug)]
pub struct View {
    /// The overlay.
    pub overlay: Overlay,
    /// What the host has mounted below it, read-only.
    pub below: Vec<Mount>,
    /// The same where something in it is hidden: a bind would lie over the covers.
    pub below_covered: Vec<Overlay>,
    /// What is covered, by path below the workspace.
    pub covered: BTreeSet<PathBuf>,
    /// Folders that were not looked through and can be seen.
    pub not_scanned: Vec<PathBuf>,
    /// The `.git` of each repository in the workspace.
    pub repositories: BTreeSet<PathBuf>,
    /// Symlinks in the workspace that stand where the host runs something, or could.
    pub links: BTreeSet<PathBuf>,
    /// The working trees of git in the workspace.
    pub trees: Vec<WorkTree>,
    /// What a user should know.
    pub notes: Vec<Note>,
}

/// How a workspace is looked through, and where what has to outlive the plan is kept.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    /// The caller's state folder.
    pub state: &'a Path,
    /// The folder of what surveys remember; `None` where nothing is to be remembered.
    pub memory: Option<&'a Path>,
    /// Folders that are not looked through.
    pub unscanned: &'a [Unscanned],
    /// What is mounted on the host.
    pub points: &'a MountPoints,
    /// Whether to make what is missing.
    pub missing: Missing,
}

/// Plans what a command that runs as `owner` sees of a workspace.
///
/// # Errors
/// See [`MountError`].
pub fn view(
    workspace: &Workspace,
    grants: &FileGrants<'_>,
    owner: Owner,
    around: Surroundings<'_>,
) -> Result<View, MountError> {
    let survey = survey(&Looking {
        workspace,
        grants,
        memory: around.memory,
        unscanned: around.unscanned,
        mounted_below: around.points.below(workspace.root()).next().is_some(),
    })?;
    let start = workspace.cwd().strip_prefix(workspace.root()).unwrap_or(Path::new(""));
    if survey.is_hidden(start) {
        return Err(MountError::StartHidden(workspace.cwd().to_owned()));
    }
    let mut notes: Vec<Note> =
        survey.not_scanned.iter().map(|folder| not_scanned(folder, SEEN)).collect();
    let unseen = survey.hidden.iter().filter(|(_, it)| it.why == WhyHidden::NotScanned);
    notes.extend(unseen.map(|(folder, _)| not_scanned(folder, COVERED)));
    let public =
        certificates::public(workspace, grants, &survey.hidden, around.state, around.missing);
    let secret = survey.hidden.iter().filter(|(path, _)| !public.contains_key(*path));
    let covers: BTreeMap<PathBuf, Cover> =
        secret.map(|(path, hidden)| (path.clone(), cover(path, hidden))).collect();
    let covered: BTreeSet<PathBuf> = covers.keys().cloned().collect();
    let mut trees = hidden_index::trees(workspace, &survey.repositories);
    trees.retain(|tree| {
        let git = tree.git.strip_prefix(workspace.root()).unwrap_or(&tree.git);
        !survey.is_hidden(&git.join("index"))
    });
    let hiding = Hiding { covered: &covered, state: around.state, missing: around.missing };
    let folder = (workspace.handle(), workspace.root());
    let mut contents = hidden_index::contents(folder, &trees, hiding, &mut notes);
    contents.extend(public);
    let covers_layer = layer(&Covering {
        over: workspace.handle(),
        identity: workspace.identity(),
        covers: &covers,
        contents: &contents,
        owner,
        state: around.state,
        missing: around.missing,
    })?;
    let git = |folder: (BorrowedFd<'_>, &Path)| {
        hidden_index::contents(folder, &trees, hiding, &mut notes)
    };
    let (below, below_covered) = below(workspace, (&covers, git), owner, around)?;
    if grants.writes == Writes::Some {
        let binds = below.iter().map(|mount| mount.target.as_path());
        let targets = binds.chain(below_covered.iter().map(|overlay| overlay.target.as_path()));
        notes.extend(targets.map(|target| Note {
            code: "mounted_below",
            text: format!(
                "`{}` is another file system, and is read-only for commands",
                target.display()
            ),
        }));
    }
    Ok(View {
        overlay: Overlay {
            target: workspace.root().to_owned(),
            identity: workspace.identity(),
            covers: covers_layer,
            writes: match grants.writes {
                Writes::Some => OverlayWrites::Staged,
                Writes::None => OverlayWrites::Refused,
            },
            role: OverlayRole::Workspace,
        },
        below,
        below_covered,
        covered,
        trees,
        not_scanned: survey.not_scanned.into_iter().collect(),
        repositories: survey.repositories,
        links: survey.links,
        notes,
    })
}

/// What a command sees of a folder that is not looked through.
const SEEN: &str = "denied files in it can be seen";
const COVERED: &str = "it is covered as a whole";

fn not_scanned(folder: &Path, so: &str) -> Note {
    let text = format!("`{}` is not looked through, as configured: {so}", folder.display());
    Note { code: "not_scanned", text }
}

/// What lies over something hidden: programs can open a denied file and find it empty; what must never
/// be touched answers that it cannot be.
fn cover(path: &Path, hidden: &Hidden) -> Cover {
    let closed = match hidden.why {
        WhyHidden::Special | WhyHidden::Closed => true,
        WhyHidden::Denied
        | WhyHidden::SameAsDenied
        | WhyHidden::NotReadable
        | WhyHidden::NotScanned => protected::is_key_material(path),
    };
    match (hidden.kind, closed) {
        (MaskKind::File, false) => Cover::EmptyFile,
        (MaskKind::File, true) => Cover::ClosedFile,
        (MaskKind::Folder, false) => Cover::EmptyFolder,
        (MaskKind::Folder, true) => Cover::ClosedFolder,
    }
}

/// File systems of the host that are mounted below the workspace: as binds, and as overlays where
/// they hold something hidden.
fn below(
    workspace: &Workspace,
    (covers, mut indexes): (
        &BTreeMap<PathBuf, Cover>,
        impl FnMut((BorrowedFd<'_>, &Path)) -> BTreeMap<PathBuf, Content>,
    ),
    owner: Owner,
    around: Surroundings<'_>,
) -> Result<(Vec<Mount>, Vec<Overlay>), MountError> {
    let root = workspace.root();
    let (mut mounts, mut overlays) = (Vec::new(), Vec::new());
    for point in around.points.below(root) {
        let Ok(relative) = point.strip_prefix(root) else { continue };
        if relative.ancestors().any(|above| covers.contains_key(above)) {
            continue;
        }
        let found =
            workspace.open(relative).map_err(|error| MountError::Open(point.to_owned(), error))?;
        if !matches!(found.kind, FileType::Directory | FileType::RegularFile) {
            continue;
        }
        if mounts.len() + overlays.len() == MAX_BELOW {
            return Err(MountError::TooMany(MAX_BELOW));
        }
        let inside = |(path, cover): (&PathBuf, &Cover)| {
            Some((path.strip_prefix(relative).ok()?.to_owned(), *cover))
        };
        let covers: BTreeMap<PathBuf, Cover> = covers.iter().filter_map(inside).collect();
        let (target, identity) = (point.to_owned(), found.identity);
        if covers.is_empty() {
            mounts.push(Mount { source: target.clone(), target, identity, role: MountRole::Below });
            continue;
        }
        let covers = layer(&Covering {
            over: found.handle.as_fd(),
            identity,
            covers: &covers,
            contents: &indexes((found.handle.as_fd(), point)),
            owner,
            state: around.state,
            missing: around.missing,
        })?;
        let (writes, role) = (OverlayWrites::Refused, OverlayRole::Below);
        overlays.push(Overlay { target, identity, covers, writes, role });
    }
    Ok((mounts, overlays))
}

#[cfg(test)]
#[path = "overlay_tests.rs"]
mod tests;
