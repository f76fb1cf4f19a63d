//! What of a workspace is mounted, and how.
//!
//! Duty: from grants and a survey to a list of mounts in which exactly the policy's write set is writable.
//! Non-goals: covering hidden files (masks), system folders (toolchain). Trust boundary: the tree is the
//! adversary's, before and during the call. Hence these rules:
//!
//! - Without a write effect there is one mount, read-only.
//! - A protected path below a writable one is mounted read-only over itself. Every folder between the two is
//!   mounted over itself too: a mount point cannot be renamed, so nobody can move the folder away and
//!   make a new one.
//! - Where the whole workspace is writable, each protected name that does not exist in its root is *held* by
//!   an empty folder, mounted read-only, that goes when the call ends. Otherwise nothing new could be
//!   made there.
//! - Where another protected name does not exist, its folder is *sealed*: read-only, with each existing
//!   entry mounted writable by itself. Only a git folder cannot be sealed (git makes its lock files
//!   there): what must not appear there is *guarded*, looked for when the call ends.
//! - A file in a writable folder that has another name elsewhere (a hard link) stops the plan.
//! - Every source is opened without following links, and its identity goes into the plan.
//! - No target is named that does not exist: runc would make it on the host.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Dir, FileType};
use rustix::io::Errno;

pub use super::mount_error::MountError;
use super::mount_error::link_or;
pub use super::write_roots::Missing;
use super::write_roots::WriteRoots;
use crate::engine::plan::{Access, Mount, MountRole, Note};
use crate::ids::Identity;
use crate::workspace::claims::Claim;
use crate::workspace::grants::{FileGrants, Shape, shapes};
use crate::workspace::hardlinks;
use crate::workspace::mountinfo::MountPoints;
use crate::workspace::protected::{self, Guard};
use crate::workspace::survey::{Hidden, Looking, Survey, Unscanned, WhyHidden, survey};
use crate::workspace::{Owner, Workspace};

/// Most mounts of one sandbox: a start takes longer with each.
pub const MAX_MOUNTS: usize = 1_024;

/// The mounts of a workspace.
#[derive(Debug, Default)]
pub struct WorkspaceMounts {
    /// In mount order.
    pub mounts: Vec<Mount>,
    /// What is to be covered, by path below the workspace.
    pub hidden: Vec<(PathBuf, Hidden)>,
    /// Folders and files that were made, absolute, outermost first.
    pub created: Vec<PathBuf>,
    /// The claim on what may be written.
    pub claim: Option<Claim>,
    /// Protected paths that must not appear, absolute.
    pub guarded: Vec<PathBuf>,
    /// Folders that were not looked through and can be seen.
    pub not_scanned: Vec<PathBuf>,
    /// The `.git` of each repository in the workspace.
    pub repositories: BTreeSet<PathBuf>,
    /// What a user should know.
    pub notes: Vec<Note>,
}

/// How a workspace is looked through, and where what has to outlive the plan is kept.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    /// The folder of the ledger of claims.
    pub claims: &'a Path,
    /// The folder of what surveys remember; `None` where nothing is to be remembered.
    pub memory: Option<&'a Path>,
    /// Folders that are not looked through.
    pub unscanned: &'a [Unscanned],
    /// What is mounted on the host.
    pub points: &'a MountPoints,
}

/// Plans the mounts of a workspace for a command that runs as `owner`, to whom folders that are made
/// belong.
///
/// # Errors
/// See [`MountError`]. Folders that were made before an error are removed again.
pub fn plan_mounts(
    workspace: &Workspace,
    grants: &FileGrants<'_>,
    missing: Missing,
    owner: Owner,
    around: Surroundings<'_>,
) -> Result<WorkspaceMounts, MountError> {
    let mut roots = WriteRoots::prepare(workspace, grants, missing, owner, around.claims)?;
    let mut survey = survey(&Looking {
        workspace,
        grants,
        trees: &roots.trees,
        user: owner,
        memory: around.memory,
        unscanned: around.unscanned,
    })?;
    roots.notes.extend(survey.not_scanned.iter().map(|folder| not_scanned(folder, SEEN)));
    let covered = survey.hidden.iter().filter(|(_, it)| it.why == WhyHidden::NotScanned);
    roots.notes.extend(covered.map(|(folder, _)| not_scanned(folder, COVERED)));
    hardlinks::close(workspace, &roots.trees, &mut survey)?;
    let mut layout = Layout {
        workspace,
        grants,
        survey,
        roots,
        sealed: BTreeSet::new(),
        between: BTreeSet::new(),
        mounts: Vec::new(),
        guarded: Vec::new(),
    };
    layout.run(around.claims, around.points)?;
    let Layout { survey, mut roots, mut mounts, guarded, .. } = layout;
    let mut created = std::mem::take(&mut roots.created);
    created.append(&mut roots.held);
    mounts.sort_by(|a, b| {
        depth(&a.target).cmp(&depth(&b.target)).then_with(|| a.target.cmp(&b.target))
    });
    Ok(WorkspaceMounts {
        mounts,
        hidden: survey.hidden.into_iter().collect(),
        not_scanned: survey.not_scanned.into_iter().collect(),
        repositories: survey.repositories,
        created,
        claim: roots.claim.take(),
        guarded,
        notes: std::mem::take(&mut roots.notes),
    })
}

/// What a command sees of a folder that is not looked through.
const SEEN: &str = "denied files in it can be seen";
const COVERED: &str = "it is covered as a whole";

fn not_scanned(folder: &Path, so: &str) -> Note {
    let text = format!("`{}` is not looked through, as configured: {so}", folder.display());
    Note { code: "not_scanned", text }
}

struct Layout<'a> {
    workspace: &'a Workspace,
    grants: &'a FileGrants<'a>,
    survey: Survey,
    roots: WriteRoots<'a>,
    /// Folders that are read-only, with writable entries.
    sealed: BTreeSet<PathBuf>,
    /// Folders on the way to something that has a mount of its own.
    between: BTreeSet<PathBuf>,
    mounts: Vec<Mount>,
    /// Protected paths that must not appear, absolute.
    guarded: Vec<PathBuf>,
}

impl Layout<'_> {
    fn run(&mut self, claims: &Path, points: &MountPoints) -> Result<(), MountError> {
        let start =
            self.workspace.cwd().strip_prefix(self.workspace.root()).unwrap_or(Path::new(""));
        if self.survey.is_hidden(start) {
            return Err(MountError::StartHidden(self.workspace.cwd().to_owned()));
        }
        self.seal();
        if let Some(claim) = &self.roots.claim {
            claim
                .guard(&self.guarded)
                .map_err(|error| MountError::Claim(claims.to_owned(), error))?;
        }
        self.find_between();
        if self.roots.trees.iter().any(|tree| tree.as_os_str().is_empty()) {
            self.open_tree(Path::new(""), MountRole::Workspace)?;
        } else {
            self.push(Path::new(""), Access::ReadOnly, MountRole::Workspace)?;
            self.open_roots()?;
        }
        self.add_submounts(points)
    }

    /// Finds the folders that a missing protected name would be made in.
    fn seal(&mut self) {
        let mut names: Vec<PathBuf> = Vec::new();
        for folder in &self.survey.anchored {
            names.extend(protected::in_git(folder));
        }
        let readonly = self.grants.readonly.patterns();
        let subtracted = self.grants.write.patterns();
        let subtracted = subtracted.iter().filter_map(|text| text.strip_prefix('!'));
        for pattern in readonly
            .iter()
            .filter(|text| !text.starts_with('!'))
            .map(String::as_str)
            .chain(subtracted)
        {
            for shape in shapes(pattern) {
                match shape {
                    Shape::Tree(path) | Shape::Exact(path) => names.push(path),
                    Shape::Scattered(_) | Shape::Elsewhere(_) => {}
                }
            }
        }
        for name in names {
            self.seal_for(&name);
        }
        for link in self.survey.links.clone() {
            self.sealed.insert(link.parent().unwrap_or(Path::new("")).to_owned());
        }
        if self.sealed.contains(Path::new("")) {
            self.note(
                "sealed",
                "a protected name in the workspace's root is missing or a link, so nothing new can be made \
                 directly in it"
                    .to_owned(),
            );
        }
    }

    fn seal_for(&mut self, name: &Path) {
        let mut missing = name;
        for above in name.ancestors() {
            match self.workspace.open(above) {
                Ok(_) if above == name => return,
                Ok(found) if found.kind == FileType::Directory => {
                    if !self.roots.in_tree(above) || self.is_closed(above) {
                        return;
                    }
                    if self.survey.anchored.contains(above) {
                        self.guarded.push(self.workspace.root().join(missing));
                    } else {
                        self.sealed.insert(above.to_owned());
                    }
                    return;
                }
                Ok(_) => return,
                Err(_) => missing = above,
            }
        }
    }

    /// Whether the path is read-only or hidden as part of something larger.
    fn is_closed(&self, path: &Path) -> bool {
        self.survey.is_closed(path)
    }

    fn find_between(&mut self) {
        let targets = self
            .survey
            .protected
            .iter()
            .chain(&self.survey.anchored)
            .chain(self.survey.hidden.keys())
            .chain(&self.sealed);
        let mut between: BTreeSet<PathBuf> =
            targets.flat_map(|path| path.ancestors().skip(1)).map(Path::to_owned).collect();
        between.extend(self.sealed.iter().cloned());
        between.extend(self.survey.anchored.iter().cloned());
        self.between = between;
    }

    /// Mounts what is writable below a workspace that is not.
    fn open_roots(&mut self) -> Result<(), MountError> {
        let trees = self.roots.trees.clone();
        for tree in &trees {
            let inner = trees.iter().any(|other| other != tree && tree.starts_with(other));
            if !inner && !self.survey.is_hidden(tree) {
                self.open_tree(tree, MountRole::Write)?;
            }
        }
        for file in std::mem::take(&mut self.roots.files) {
            let promised = self.roots.created.contains(&self.workspace.root().join(&file))
                && self.workspace.open(&file).is_err();
            if self.roots.in_tree(&file) || self.survey.is_hidden(&file) || promised {
                continue;
            }
            if protected::guard(&file) != Guard::Open || self.grants.readonly.matches(&file) {
                self.note(
                    "write_protected",
                    format!("`{}` is protected, and stays closed", file.display()),
                );
                continue;
            }
            match self.workspace.open(&file) {
                Ok(found) if found.kind == FileType::RegularFile && found.links > 1 => {
                    return Err(MountError::Shared(self.workspace.root().join(file)));
                }
                Ok(found) if found.kind == FileType::RegularFile => {
                    self.push(&file, Access::ReadWrite, MountRole::Write)?;
                }
                Ok(found) if found.kind == FileType::Symlink => {
                    return Err(MountError::Link(self.workspace.root().join(file)));
                }
                Ok(_) => self.note(
                    "write_pattern",
                    format!(
                        "`{0}` names a folder, not what is in it; write `{0}/**`",
                        file.display()
                    ),
                ),
                Err(_) => self.note(
                    "write_missing",
                    format!("`{}` does not exist, nor does its folder", file.display()),
                ),
            }
        }
        Ok(())
    }

    /// Mounts a writable folder, and all that has to be a mount of its own in it.
    fn open_tree(&mut self, folder: &Path, role: MountRole) -> Result<(), MountError> {
        let sealed = self.sealed.contains(folder);
        self.push(folder, if sealed { Access::ReadOnly } else { Access::ReadWrite }, role)?;
        if sealed {
            return self.open_sealed(folder);
        }
        let below = |path: &&PathBuf| path.parent() == Some(folder) && !path.as_os_str().is_empty();
        let protected: Vec<PathBuf> = self.survey.protected.iter().filter(below).cloned().collect();
        let between: Vec<PathBuf> = self.between.iter().filter(below).cloned().collect();
        for path in protected {
            self.push(&path, Access::ReadOnly, MountRole::Protected)?;
        }
        for path in between {
            if !self.survey.protected.contains(&path) && !self.survey.hidden.contains_key(&path) {
                self.open_tree(&path, MountRole::Anchor)?;
            }
        }
        Ok(())
    }

    /// Mounts each entry of a sealed folder that is not protected.
    fn open_sealed(&mut self, folder: &Path) -> Result<(), MountError> {
        for (name, kind) in self.entries(folder)? {
            let path = folder.join(name);
            if self.survey.protected.contains(&path) || self.survey.hidden.contains_key(&path) {
                continue;
            }
            match kind {
                FileType::Directory if self.survey.anchored.contains(&path) => {
                    self.open_tree(&path, MountRole::Anchor)?;
                }
                FileType::Directory => self.open_tree(&path, MountRole::Write)?,
                FileType::RegularFile => self.push(&path, Access::ReadWrite, MountRole::Write)?,
                // A link cannot be mounted over; in a read-only folder it cannot be changed either.
                _ => {}
            }
        }
        Ok(())
    }

    fn entries(&self, folder: &Path) -> Result<Vec<(OsString, FileType)>, MountError> {
        let fail =
            |error: Errno| MountError::Open(self.workspace.root().join(folder), error.into());
        let handle = self
            .workspace
            .open_folder(folder)
            .map_err(|error| MountError::Open(self.workspace.root().join(folder), error))?;
        let mut entries = Vec::new();
        for entry in Dir::read_from(&handle).map_err(fail)? {
            let entry = entry.map_err(fail)?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                let name = std::ffi::OsStr::from_bytes(name).to_owned();
                // Asked anew: not every file system tells the kind in its listing.
                if let Ok(found) = self.workspace.open(&folder.join(&name)) {
                    entries.push((name, found.kind));
                }
            }
        }
        entries.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(entries)
    }

    /// File systems of the host that are mounted below the workspace: a bind does not take them along.
    fn add_submounts(&mut self, points: &MountPoints) -> Result<(), MountError> {
        let root = self.workspace.root();
        for point in points.below(root) {
            let Ok(relative) = point.strip_prefix(root).map(Path::to_owned) else {
                continue;
            };
            let taken = self.mounts.iter().any(|mount| mount.target == point);
            if taken || self.survey.is_hidden(&relative) {
                continue;
            }
            let above = self
                .mounts
                .iter()
                .filter(|mount| point.starts_with(&mount.target))
                .max_by_key(|mount| depth(&mount.target));
            let access = above.map_or(Access::ReadOnly, |mount| mount.access);
            self.push(&relative, access, MountRole::Workspace)?;
        }
        Ok(())
    }

    fn push(&mut self, path: &Path, access: Access, role: MountRole) -> Result<(), MountError> {
        if self.mounts.len() >= MAX_MOUNTS {
            return Err(MountError::TooMany);
        }
        let absolute: PathBuf = self.workspace.root().join(path).components().collect();
        let found = self
            .workspace
            .open(path)
            .map_err(|error| link_or(absolute.clone(), error, MountError::Open))?;
        if found.kind == FileType::Symlink {
            return Err(MountError::Link(absolute));
        }
        let identity: Identity = found.identity;
        self.mounts.push(Mount {
            source: absolute.clone(),
            target: absolute,
            access,
            identity,
            role,
        });
        Ok(())
    }

    fn note(&mut self, code: &'static str, text: String) {
        self.roots.notes.push(Note { code, text });
    }
}

fn depth(path: &Path) -> usize {
    path.components().count()
}

#[cfg(test)]
#[path = "mounts_tests.rs"]
mod tests;
