//! Git folders under any name, and the files that their configurations lead git to.
//!
//! Duty: say of a changed path whether it lies in a git folder that the host has, or helps to make
//! one; find the places in the workspace that `core.hooksPath`, `include.path` and configured
//! commands name. Non-goals: deciding. Trust boundary: git takes any folder with `HEAD`, `objects`
//! and `refs` (or `commondir`) for a repository as soon as somebody runs git in it. So every folder
//! above a change is looked at, as it is and as it would be.
//!
//! An entry of mode 160000 in an index or a tree is data. The repository that it stands for is what
//! counts.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::change::{Change, Host, RootKind, What};
use super::leads::{Leads, UnknownLeads};
use super::led::Led;
use super::merged::Merged;
use super::worktree::Worktree;
use crate::workspace::protected::table::is_same_name;

/// Where a path lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// In no git folder.
    Plain,
    /// In a git folder that the host has; the empty path is the folder itself.
    InGit {
        /// The git folder, below the root.
        folder: PathBuf,
        /// The rest of the path.
        below: PathBuf,
    },
    /// At or below a `.git` that the host does not have as a repository.
    NewGit,
    /// A part by which a folder becomes a repository.
    Completes {
        /// The folder that becomes one.
        folder: PathBuf,
    },
}

/// What a folder is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Plain,
    /// A repository on the host.
    Git,
    /// None on the host, and one with some of the changes.
    Becomes,
}

/// What makes a folder a repository. `commondir` stands for the last two.
const PARTS: [&str; 4] = ["HEAD", "commondir", "objects", "refs"];

/// Most configuration files that are followed.
const MAX_CONFIGS: usize = 4096;

/// The repositories around changes.
pub struct Repositories<'a> {
    merged: &'a Merged<'a>,
    kind: RootKind,
    /// The caller's home, for which `~` stands in a configuration.
    home: Option<&'a Path>,
    states: RefCell<HashMap<PathBuf, State>>,
}

impl<'a> Repositories<'a> {
    /// Repositories in a tree.
    #[must_use]
    pub fn new(merged: &'a Merged<'a>, kind: RootKind, home: Option<&'a Path>) -> Self {
        Self { merged, kind, home, states: RefCell::new(HashMap::new()) }
    }

    /// Where a changed path lies.
    #[must_use]
    pub fn place(&self, change: &Change) -> Place {
        let names: Vec<&OsStr> = change.path.iter().collect();
        // Only a folder can be a repository; most changes are files.
        let is_folder = matches!(change.what, What::Folder { .. })
            || matches!(change.host, Host::Folder(_) | Host::Other(_));
        let mut folder = PathBuf::new();
        let mut git: Option<usize> = None;
        for depth in 0..=names.len() {
            if let Some(name) = depth.checked_sub(1).and_then(|at| names.get(at)) {
                folder.push(name);
                if is_same_name(name.as_bytes(), b".git") && self.state(&folder) != State::Git {
                    return Place::NewGit;
                }
            }
            if depth == names.len() && !is_folder {
                break;
            }
            match self.state(&folder) {
                State::Git => git = Some(depth),
                State::Becomes => {
                    let next = names.get(depth).map(|name| name.as_bytes());
                    let part =
                        |part: &&str| next.is_some_and(|next| is_same_name(next, part.as_bytes()));
                    if PARTS.iter().any(part) {
                        return Place::Completes { folder };
                    }
                }
                State::Plain => {}
            }
        }
        match git {
            Some(depth) => Place::InGit {
                folder: names[..depth].iter().collect(),
                below: names[depth..].iter().collect(),
            },
            None => Place::Plain,
        }
    }

    /// Whether the host has a repository's git folder here.
    #[must_use]
    pub fn is_git_on_host(&self, folder: &Path) -> bool {
        self.state(folder) == State::Git
    }

    fn state(&self, folder: &Path) -> State {
        if folder.as_os_str().is_empty() && self.kind == RootKind::GitFolder {
            return State::Git;
        }
        if let Some(state) = self.states.borrow().get(folder) {
            return *state;
        }
        let state = self.look(folder);
        self.states.borrow_mut().insert(folder.to_owned(), state);
        state
    }

    fn look(&self, folder: &Path) -> State {
        // A removal may be held or meet a conflict, so what the host has counts as staying.
        let either = |name: &str| {
            let path = folder.join(name);
            self.merged.is_left(&path) || self.merged.on_host(&path) != Host::Absent
        };
        if !either("HEAD") {
            return State::Plain;
        }
        let on_host = |name: &str| self.merged.on_host(&folder.join(name)) != Host::Absent;
        let is_git = |has: &dyn Fn(&str) -> bool| {
            has("HEAD") && (has("commondir") || (has("objects") && has("refs")))
        };
        if is_git(&on_host) {
            State::Git
        } else if is_git(&either) {
            State::Becomes
        } else {
            State::Plain
        }
    }

    /// The places that the host's repositories lead git to: those around the changed paths, by their
    /// configurations and what these include. The git folder of one may lie outside. New worktrees are
    /// led by the configuration of their repository.
    ///
    /// # Errors
    /// Not all of them could be followed.
    pub fn led<'p>(
        &self,
        paths: impl Iterator<Item = &'p Path>,
        worktrees: &[Worktree],
    ) -> Result<Vec<Led>, UnknownLeads> {
        let root = self.merged.root();
        let mut leads = Leads::within(self.merged, self.home, MAX_CONFIGS);
        let mut seen: HashSet<&Path> = HashSet::new();
        for folder in paths.flat_map(Path::ancestors) {
            if !seen.insert(folder) {
                continue;
            }
            // A worktree's configurations; for a git folder that is none's `.git`, its own.
            let dot_git = folder.join(".git");
            let top = root.join(folder);
            let gits = match self.merged.on_host(&dot_git) {
                Host::Folder(_) => vec![root.join(dot_git)],
                Host::File(_) => self.ends(&leads, folder, self.pointer(&dot_git)),
                Host::Link { target, .. } => self.ends(&leads, folder, Some(target)),
                Host::Absent | Host::Other(_) if self.state(folder) == State::Git => {
                    vec![top.clone()]
                }
                Host::Absent | Host::Other(_) => Vec::new(),
            };
            for git in gits {
                leads.repository(&git, &top)?;
            }
        }
        for worktree in worktrees {
            leads.repository(&root.join(&worktree.git), &root.join(&worktree.folder))?;
        }
        Ok(leads.found())
    }

    /// The git folders that a `.git` with this target leads to: as the host has it, and as it would be
    /// with every change.
    fn ends(&self, leads: &Leads<'_>, folder: &Path, target: Option<OsString>) -> Vec<PathBuf> {
        let root = self.merged.root();
        let afterwards = target.and_then(|target| self.merged.resolve(folder, &target));
        let mut ends: Vec<PathBuf> = leads.git_of(&root.join(folder)).into_iter().collect();
        ends.extend(afterwards.map(|git| root.join(git)));
        ends.dedup();
        ends
    }

    /// Where a `.git` file leads.
    fn pointer(&self, file: &Path) -> Option<OsString> {
        let text = self.merged.read_host(file, None, 8 * 1024)?;
        let target = text.strip_prefix(b"gitdir:")?.trim_ascii();
        Some(OsStr::from_bytes(target).to_owned())
    }
}
