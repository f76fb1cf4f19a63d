//! Where a policy lets a call write, and making what is missing there.
//!
//! Duty: from the patterns of a write list to folders and files of the workspace; those that are missing are
//! made, under a claim, and removed again if they stay empty. Non-goals: mounting them. Trust boundary:
//! the workspace is the adversary's: a link where something writable is planned stops the plan.

use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::FileType;

use super::mount_error::{MountError, link_or};
use crate::engine::plan::Note;
use crate::workspace::claims::{Claim, Making};
use crate::workspace::folders;
use crate::workspace::grants::{Code, FileGrants, Shape, Writes, shapes};
use crate::workspace::protected::{self, Guard};
use crate::workspace::{Owner, Workspace};

/// Whether missing write folders are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// Make them, for a call.
    Make,
    /// Say that they would be made, for `--dry-run`.
    Describe,
}

/// Where a call may write.
pub(super) struct WriteRoots<'a> {
    workspace: &'a Workspace,
    grants: &'a FileGrants<'a>,
    missing: Missing,
    owner: Owner,
    /// Folders, with everything below them.
    pub(super) trees: Vec<PathBuf>,
    /// Single files.
    pub(super) files: Vec<PathBuf>,
    /// What was made, absolute, outermost first.
    pub(super) created: Vec<PathBuf>,
    /// Folders that only hold a protected name.
    pub(super) held: Vec<PathBuf>,
    /// The claim on all of it.
    pub(super) claim: Option<Claim>,
    /// What a user should know.
    pub(super) notes: Vec<Note>,
}

impl<'a> WriteRoots<'a> {
    /// Finds where a call may write and makes what is missing; what is made belongs to `owner`.
    ///
    /// # Errors
    /// See [`MountError`]. What was made before an error is removed again.
    pub(super) fn prepare(
        workspace: &'a Workspace,
        grants: &'a FileGrants<'a>,
        missing: Missing,
        owner: Owner,
        claims: &Path,
    ) -> Result<Self, MountError> {
        let mut roots = Self {
            workspace,
            grants,
            missing,
            owner,
            trees: Vec::new(),
            files: Vec::new(),
            created: Vec::new(),
            held: Vec::new(),
            claim: None,
            notes: Vec::new(),
        };
        if grants.writes == Writes::Some {
            roots.find_roots()?;
            if let Err(error) = roots.make(claims) {
                if missing == Missing::Make {
                    folders::remove_if_empty(&roots.created);
                    folders::remove_if_empty(&roots.held);
                }
                return Err(error);
            }
        }
        Ok(roots)
    }

    /// Reads the write list: folders, single files, and what no mount can express.
    fn find_roots(&mut self) -> Result<(), MountError> {
        for pattern in self.grants.write.patterns().iter().filter(|text| !text.starts_with('!')) {
            for shape in shapes(pattern) {
                match shape {
                    Shape::Tree(folder) => self.trees.push(folder),
                    Shape::Exact(path) => self.files.push(path),
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
        self.trees.sort();
        self.trees.dedup();
        // What is only made stays closed where something is: it is another's work. An empty file is
        // nothing yet; a call beside this one may have made it a moment ago.
        for companion in self.grants.create {
            let nothing_yet = match self.workspace.open(&companion.file) {
                Ok(found) => found.kind == FileType::RegularFile && found.size == 0,
                Err(error) => error.kind() == io::ErrorKind::NotFound,
            };
            let wanted = self
                .workspace
                .open(&companion.beside)
                .is_ok_and(|found| found.kind == FileType::RegularFile);
            if wanted && nothing_yet && !self.files.contains(&companion.file) {
                self.files.push(companion.file.clone());
            }
        }
        Ok(())
    }

    /// Makes what is missing, under a claim that keeps it there while somebody uses it.
    fn make(&mut self, claims: &Path) -> Result<(), MountError> {
        let making = match self.missing {
            Missing::Describe => None,
            Missing::Make => {
                let begun = Claim::begin(claims, self.workspace.identity());
                Some(begun.map_err(|error| MountError::Claim(claims.to_owned(), error))?)
            }
        };
        let announce = |path: &Path| making.as_ref().map_or(Ok(()), |making| making.announce(path));
        let aside = making.as_ref().map(Making::aside);
        let how =
            folders::Making { owner: self.owner, announce: &announce, aside: aside.as_deref() };
        self.make_roots(&how)?;
        self.make_files(&how)?;
        if self.in_tree(Path::new("")) {
            self.hold_names(&how)?;
        }
        self.claim = making.map(Making::finish);
        Ok(())
    }

    /// Makes missing write folders; keeps those that nobody protects.
    fn make_roots(&mut self, how: &folders::Making<'_>) -> Result<(), MountError> {
        let mut trees = Vec::new();
        for tree in std::mem::take(&mut self.trees) {
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
                Ok(_) => self.files.push(tree),
                Err(error) if error.kind() == io::ErrorKind::NotFound => match self.missing {
                    Missing::Describe => {
                        self.note("would_make", format!("`{}` would be made", tree.display()));
                        self.created.push(absolute);
                    }
                    Missing::Make => {
                        folders::make(self.workspace, &tree, how, &mut self.created)
                            .map_err(|error| link_or(absolute, error, MountError::Make))?;
                        trees.push(tree);
                    }
                },
                Err(error) => return Err(link_or(absolute, error, MountError::Open)),
            }
        }
        self.trees = trees;
        Ok(())
    }

    /// Holds each missing protected name of the root by an empty folder.
    fn hold_names(&mut self, how: &folders::Making<'_>) -> Result<(), MountError> {
        for name in protected::in_root() {
            let absent = self
                .workspace
                .open(&name)
                .is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
            if absent && self.missing == Missing::Make {
                folders::make(self.workspace, &name, how, &mut self.held).map_err(|error| {
                    link_or(self.workspace.root().join(&name), error, MountError::Make)
                })?;
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
    fn make_files(&mut self, how: &folders::Making<'_>) -> Result<(), MountError> {
        for file in self.files.clone() {
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
            match self.missing {
                Missing::Describe => {
                    self.note("would_make", format!("`{}` would be made", file.display()));
                    self.created.push(absolute);
                }
                Missing::Make => {
                    folders::make_file(self.workspace, &file, how, &mut self.created)
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

    pub(super) fn in_tree(&self, path: &Path) -> bool {
        self.trees.iter().any(|tree| path.starts_with(tree))
    }

    fn note(&mut self, code: &'static str, text: String) {
        self.notes.push(Note { code, text });
    }
}
