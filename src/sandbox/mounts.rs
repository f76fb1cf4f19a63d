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
//! - Every source is opened without following links, and its identity goes into the plan.
//! - No target is named that does not exist: runc would make it on the host.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Dir, FileType, Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;

use super::claims::Claim;
use super::folders;
use super::grants::{Code, FileGrants, Shape, Writes, shapes};
use super::mountinfo;
use super::plan::{Access, Identity, Mount, MountRole, Note};
use super::protected::{self, Guard};
use super::survey::{Hidden, Survey, survey};
use super::walk::WalkError;
use super::workspace::{Owner, Workspace};

/// Most mounts of one sandbox: a start takes longer with each.
pub const MAX_MOUNTS: usize = 1_024;

/// Whether missing write folders are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// Make them, for a call.
    Make,
    /// Say that they would be made, for `--dry-run`.
    Describe,
}

/// Why a workspace cannot be mounted as granted.
#[derive(Debug)]
pub enum MountError {
    /// No mount can express the pattern, and the rule grants `code`.
    Scattered(String),
    /// A link stands where a writable mount is planned.
    Link(PathBuf),
    /// More than [`MAX_MOUNTS`].
    TooMany,
    /// A missing write folder cannot be made.
    Make(PathBuf, io::Error),
    /// The ledger of claims cannot be kept.
    Claim(PathBuf, io::Error),
    /// A source cannot be opened.
    Open(PathBuf, io::Error),
    /// The place to start from is hidden by the policy.
    StartHidden(PathBuf),
    /// The walk did not end.
    Walk(WalkError),
}

impl fmt::Display for MountError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scattered(pattern) => write!(
                f,
                "no mount can express the write pattern `{pattern}`, and the rule grants code; \
                 name whole folders (`folder/**`) or single files in files.write"
            ),
            Self::Link(path) => write!(
                f,
                "{} is a link, and a writable mount there would lead elsewhere; \
                 replace it by a real folder, or take it out of files.write",
                path.display()
            ),
            Self::TooMany => write!(
                f,
                "the workspace needs more than {MAX_MOUNTS} mounts; name fewer or narrower folders in files.write"
            ),
            Self::Make(path, error) => {
                write!(f, "cannot make the write folder {}: {error}", path.display())
            }
            Self::Claim(path, error) => write!(
                f,
                "cannot keep note of write folders in {}: {error}; check its permissions and free space",
                path.display()
            ),
            Self::Open(path, error) => write!(f, "cannot open {}: {error}", path.display()),
            Self::StartHidden(path) => write!(
                f,
                "the policy hides {}, where the command should start; start it elsewhere in the workspace",
                path.display()
            ),
            Self::Walk(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for MountError {}

impl From<WalkError> for MountError {
    fn from(error: WalkError) -> Self {
        Self::Walk(error)
    }
}

/// The mounts of a workspace.
#[derive(Debug)]
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
    /// What a user should know.
    pub notes: Vec<Note>,
}

/// Plans the mounts of a workspace, with its ledger of claims in the folder `claims`, for a command that runs as `owner`, to whom folders that are made
/// belong.
///
/// # Errors
/// See [`MountError`]. Folders that were made before an error are removed again.
pub fn plan_mounts(
    workspace: &Workspace,
    grants: &FileGrants<'_>,
    missing: Missing,
    owner: Owner,
    claims: &Path,
) -> Result<WorkspaceMounts, MountError> {
    let mut layout = Layout {
        workspace,
        grants,
        survey: Survey::default(),
        roots: Roots::default(),
        sealed: BTreeSet::new(),
        between: BTreeSet::new(),
        out: WorkspaceMounts {
            mounts: Vec::new(),
            hidden: Vec::new(),
            created: Vec::new(),
            claim: None,
            guarded: Vec::new(),
            notes: Vec::new(),
        },
    };
    match layout.run(missing, owner, claims) {
        Ok(()) => Ok(layout.out),
        Err(error) => {
            folders::remove_if_empty(&layout.out.created);
            Err(error)
        }
    }
}

/// Where a policy lets a call write.
#[derive(Debug, Default)]
struct Roots {
    trees: Vec<PathBuf>,
    files: Vec<PathBuf>,
}

struct Layout<'a> {
    workspace: &'a Workspace,
    grants: &'a FileGrants<'a>,
    survey: Survey,
    roots: Roots,
    /// Folders that are read-only, with writable entries.
    sealed: BTreeSet<PathBuf>,
    /// Folders on the way to something that has a mount of its own.
    between: BTreeSet<PathBuf>,
    out: WorkspaceMounts,
}

impl Layout<'_> {
    fn run(&mut self, missing: Missing, owner: Owner, claims: &Path) -> Result<(), MountError> {
        if self.grants.writes == Writes::Some {
            self.find_roots()?;
            self.make(missing, owner, claims)?;
        }
        self.survey = survey(self.workspace, self.grants, &self.roots.trees, owner)?;
        let start =
            self.workspace.cwd().strip_prefix(self.workspace.root()).unwrap_or(Path::new(""));
        if self.survey.is_hidden(start) {
            return Err(MountError::StartHidden(self.workspace.cwd().to_owned()));
        }
        self.seal();
        if let Some(claim) = &self.out.claim {
            claim
                .guard(&self.out.guarded)
                .map_err(|error| MountError::Claim(claims.to_owned(), error))?;
        }
        self.find_between();
        if self.roots.trees.iter().any(|tree| tree.as_os_str().is_empty()) {
            self.open_tree(Path::new(""), MountRole::Workspace)?;
        } else {
            self.push(Path::new(""), Access::ReadOnly, MountRole::Workspace)?;
            self.open_roots()?;
        }
        self.add_submounts()?;
        self.out.mounts.sort_by(|a, b| {
            depth(&a.target).cmp(&depth(&b.target)).then_with(|| a.target.cmp(&b.target))
        });
        self.out.hidden =
            self.survey.hidden.iter().map(|(path, hidden)| (path.clone(), *hidden)).collect();
        Ok(())
    }

    fn find_roots(&mut self) -> Result<(), MountError> {
        for pattern in self.grants.write.patterns().iter().filter(|text| !text.starts_with('!')) {
            for shape in shapes(pattern) {
                match shape {
                    Shape::Tree(folder) => self.roots.trees.push(folder),
                    Shape::Exact(path) => self.roots.files.push(path),
                    Shape::Scattered(text) => match self.grants.code {
                        Code::Granted => return Err(MountError::Scattered(text)),
                        Code::NotGranted => self.note(
                            "write_pattern",
                            format!("no mount can express the write pattern `{text}`; nothing is writable through it"),
                        ),
                    },
                    // Scratch is always there; nothing else outside the workspace is.
                    Shape::Elsewhere(text) if text.starts_with("/tmp/") => {}
                    Shape::Elsewhere(text) => self.note(
                        "write_outside",
                        format!("the write pattern `{text}` names nothing in the workspace, and is not mounted"),
                    ),
                }
            }
        }
        self.roots.trees.sort();
        self.roots.trees.dedup();
        Ok(())
    }

    /// Makes what is missing, under a claim that keeps it there while somebody uses it.
    fn make(&mut self, missing: Missing, owner: Owner, claims: &Path) -> Result<(), MountError> {
        let making = match missing {
            Missing::Describe => None,
            Missing::Make => {
                let begun = Claim::begin(claims, self.workspace.identity());
                Some(begun.map_err(|error| MountError::Claim(claims.to_owned(), error))?)
            }
        };
        self.make_roots(missing, owner)?;
        self.make_files(missing, owner)?;
        let mut made = self.out.created.clone();
        if self.in_tree(Path::new("")) {
            self.hold_names(missing, owner, &mut made)?;
        }
        if let Some(making) = making {
            let claim = making.finish(&made);
            self.out.claim =
                Some(claim.map_err(|error| MountError::Claim(claims.to_owned(), error))?);
        }
        Ok(())
    }

    /// Makes missing write folders; keeps those that nobody protects.
    fn make_roots(&mut self, missing: Missing, owner: Owner) -> Result<(), MountError> {
        let mut trees = Vec::new();
        for tree in std::mem::take(&mut self.roots.trees) {
            if protected::guard(&tree) == Guard::ReadOnly || self.is_denied(&tree) {
                self.note(
                    "write_protected",
                    format!("`{}` is protected, and stays closed", tree.display()),
                );
                continue;
            }
            let absolute = self.workspace.root().join(&tree);
            match self.workspace.open(&tree) {
                Ok(found) if found.kind == FileType::Directory => trees.push(tree),
                Ok(found) if found.kind == FileType::Symlink => {
                    return Err(MountError::Link(absolute));
                }
                Ok(_) => self.roots.files.push(tree),
                Err(error) if error.kind() == io::ErrorKind::NotFound => match missing {
                    Missing::Describe => {
                        self.note("would_make", format!("`{}` would be made", tree.display()));
                        self.out.created.push(absolute);
                    }
                    Missing::Make => {
                        folders::make(self.workspace, &tree, owner, &mut self.out.created)
                            .map_err(|error| link_or(absolute, error, MountError::Make))?;
                        trees.push(tree);
                    }
                },
                Err(error) => return Err(link_or(absolute, error, MountError::Open)),
            }
        }
        self.roots.trees = trees;
        Ok(())
    }

    /// Holds each missing protected name of the root by an empty folder.
    fn hold_names(
        &mut self,
        missing: Missing,
        owner: Owner,
        made: &mut Vec<PathBuf>,
    ) -> Result<(), MountError> {
        let before = made.len();
        for name in protected::in_root() {
            let absent = self
                .workspace
                .open(&name)
                .is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
            if absent && missing == Missing::Make {
                let made_so_far = made.len();
                if let Err(error) = folders::make(self.workspace, &name, owner, made) {
                    folders::remove_if_empty(made.get(before..).unwrap_or_default());
                    return Err(link_or(self.workspace.root().join(name), error, MountError::Make));
                }
                debug_assert_eq!(made.len(), made_so_far + 1);
            }
        }
        self.note(
            "held_names",
            "protected names that do not exist in the workspace's root are held by empty folders until the \
             call ends"
                .to_owned(),
        );
        Ok(())
    }

    /// Makes missing files that are named exactly, in folders that exist and are not writable by
    /// themselves.
    fn make_files(&mut self, missing: Missing, owner: Owner) -> Result<(), MountError> {
        for file in self.roots.files.clone() {
            let absolute = self.workspace.root().join(&file);
            let parent = file.parent().unwrap_or(Path::new(""));
            let wanted = protected::guard(&file) == Guard::Open
                && !self.grants.readonly.matches(&file)
                && !self.is_denied(&file)
                && !self.in_tree(&file);
            let possible =
                self.workspace.open(parent).is_ok_and(|found| found.kind == FileType::Directory);
            let absent = self
                .workspace
                .open(&file)
                .is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
            if !(wanted && possible && absent) {
                continue;
            }
            match missing {
                Missing::Describe => {
                    self.note("would_make", format!("`{}` would be made", file.display()));
                    self.out.created.push(absolute);
                }
                Missing::Make => {
                    folders::make_file(self.workspace, &file, owner, &mut self.out.created)
                        .map_err(|error| link_or(absolute, error, MountError::Make))?;
                }
            }
        }
        Ok(())
    }

    fn is_denied(&self, path: &Path) -> bool {
        path.ancestors().any(|above| {
            !above.as_os_str().is_empty()
                && (self.grants.deny.matches(above) || protected::is_key_material(above))
        })
    }

    fn in_tree(&self, path: &Path) -> bool {
        self.roots.trees.iter().any(|tree| path.starts_with(tree))
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
                    if !self.in_tree(above) || self.is_closed(above) {
                        return;
                    }
                    if self.survey.anchored.contains(above) {
                        self.out.guarded.push(self.workspace.root().join(missing));
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
        self.survey.is_hidden(path)
            || path.ancestors().any(|above| self.survey.protected.contains(above))
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
            if self.in_tree(&file) || self.survey.is_hidden(&file) {
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
        let path: &Path = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let handle = openat2(
            self.workspace.handle(),
            path,
            OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
            Mode::empty(),
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS,
        )
        .map_err(fail)?;
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
    fn add_submounts(&mut self) -> Result<(), MountError> {
        for point in mountinfo::below(self.workspace.root()) {
            let Ok(relative) = point.strip_prefix(self.workspace.root()).map(Path::to_owned) else {
                continue;
            };
            let taken = self.out.mounts.iter().any(|mount| mount.target == point);
            if taken || self.survey.is_hidden(&relative) {
                continue;
            }
            let above = self
                .out
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
        if self.out.mounts.len() >= MAX_MOUNTS {
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
        self.out.mounts.push(Mount {
            source: absolute.clone(),
            target: absolute,
            access,
            identity,
            role,
        });
        Ok(())
    }

    fn note(&mut self, code: &'static str, text: String) {
        self.out.notes.push(Note { code, text });
    }
}

fn depth(path: &Path) -> usize {
    path.components().count()
}

fn link_or(
    path: PathBuf,
    error: io::Error,
    other: impl FnOnce(PathBuf, io::Error) -> MountError,
) -> MountError {
    if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) {
        MountError::Link(path)
    } else {
        other(path, error)
    }
}

#[cfg(test)]
#[path = "mounts_tests.rs"]
mod tests;
