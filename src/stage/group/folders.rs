//! Which git folder a path lies in.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, statat};

use super::{Part, part_of_rest};
use crate::stage::change::RootKind;
use crate::stage::handles::open_folder;

/// The git folders of a root. Those of submodules and of linked worktrees inside a git folder are git
/// folders of their own, whatever their names are: the host has a repository there.
pub struct GitFolders<'a> {
    kind: RootKind,
    host: BorrowedFd<'a>,
    known: RefCell<HashMap<PathBuf, bool>>,
}

impl<'a> GitFolders<'a> {
    /// Those of the root behind a handle.
    #[must_use]
    pub fn new(kind: RootKind, host: BorrowedFd<'a>) -> Self {
        Self { kind, host, known: RefCell::default() }
    }

    /// The git folder that a path lies in, and the rest of the path.
    #[must_use]
    pub fn of(&self, path: &Path) -> Option<(PathBuf, PathBuf)> {
        let names: Vec<&OsStr> = path.iter().collect();
        let mut git = (self.kind == RootKind::GitFolder).then_some(0);
        let mut folder = PathBuf::new();
        for (at, name) in names.iter().enumerate().take(names.len().saturating_sub(1)) {
            folder.push(name);
            let depth = at + 1;
            // A worktree or repository that is new has nothing on the host.
            let by_name = (self.kind == RootKind::Workspace && *name == ".git")
                || (depth > 1 && git == Some(depth - 2) && names[at - 1] == "worktrees");
            if by_name || self.is_git(&folder) {
                git = Some(depth);
            }
        }
        git.map(|at| (names[..at].iter().collect(), names[at..].iter().collect()))
    }

    /// What a path in a git folder is; `None` outside of git folders.
    #[must_use]
    pub fn part(&self, path: &Path) -> Option<Part> {
        self.of(path).map(|(_, rest)| part_of_rest(&rest))
    }

    /// Whether the host has a repository's git folder here.
    fn is_git(&self, folder: &Path) -> bool {
        if let Some(known) = self.known.borrow().get(folder) {
            return *known;
        }
        let found = open_folder(self.host, folder).is_ok_and(|folder| {
            let is = |name: &str, kind| {
                statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)
                    .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == kind)
            };
            let (file, folder) = (FileType::RegularFile, FileType::Directory);
            let head = is("HEAD", file) || is("HEAD", FileType::Symlink);
            head && (is("commondir", file) || (is("objects", folder) && is("refs", folder)))
        });
        self.known.borrow_mut().insert(folder.to_owned(), found);
        found
    }
}
