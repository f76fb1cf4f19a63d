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
use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::change::{Change, Host, RootKind, What};
use super::gitconfig::{self, Config};
use super::led::{Led, Reach};
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

/// Hooks that git knows. Where `core.hooksPath` is the root itself, only these names are meant.
const HOOKS: &[&str] = &[
    "applypatch-msg",
    "pre-applypatch",
    "post-applypatch",
    "pre-commit",
    "pre-merge-commit",
    "prepare-commit-msg",
    "commit-msg",
    "post-commit",
    "pre-rebase",
    "post-checkout",
    "post-merge",
    "pre-push",
    "pre-receive",
    "update",
    "proc-receive",
    "post-receive",
    "post-update",
    "reference-transaction",
    "push-to-checkout",
    "pre-auto-gc",
    "post-rewrite",
    "sendemail-validate",
    "fsmonitor-watchman",
    "p4-changelist",
    "p4-prepare-changelist",
    "p4-post-changelist",
    "p4-pre-submit",
    "post-index-change",
];

/// Most configuration files that are followed.
const MAX_CONFIGS: usize = 4096;

/// There are more configurations than are followed, so that it is not known where git is led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooManyConfigs;

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

    /// The places that the host's repositories lead git to: those around the changed paths, and
    /// those that their configurations include. New worktrees are led by the configuration of their
    /// repository.
    ///
    /// # Errors
    /// There are too many to follow.
    pub fn led<'p>(
        &self,
        paths: impl Iterator<Item = &'p Path>,
        worktrees: &[Worktree],
    ) -> Result<Vec<Led>, TooManyConfigs> {
        let mut seen: HashMap<PathBuf, ()> = HashMap::new();
        let mut found = Vec::new();
        let mut configs = 0;
        for folder in paths.flat_map(Path::ancestors) {
            if seen.insert(folder.to_owned(), ()).is_some() {
                continue;
            }
            // A worktree's configurations; for a git folder that is none's `.git`, its own.
            let dot_git = folder.join(".git");
            let git = match self.merged.on_host(&dot_git) {
                Host::Folder(_) => Some(dot_git),
                Host::File(_) => self.pointer(&dot_git),
                Host::Link { target, .. } => self.merged.resolve(folder, &target),
                Host::Absent | Host::Other(_) => {
                    (self.state(folder) == State::Git).then(|| folder.to_owned())
                }
            };
            let Some(git) = git else { continue };
            let mut read = self.leading(&mut found, &mut configs);
            for name in ["config", "config.worktree"] {
                read.config(&git.join(name), folder);
            }
            if let Some(common) = self.common(&git) {
                read.config(&common.join("config"), folder);
            }
        }
        let mut read = self.leading(&mut found, &mut configs);
        for worktree in worktrees {
            read.config(&worktree.git.join("config"), &worktree.folder);
        }
        if configs > MAX_CONFIGS { Err(TooManyConfigs) } else { Ok(found) }
    }

    fn leading<'l>(&'l self, found: &'l mut Vec<Led>, configs: &'l mut usize) -> Leading<'l> {
        Leading { merged: self.merged, home: self.home, found, configs }
    }

    /// Where a `.git` file leads, if inside.
    fn pointer(&self, file: &Path) -> Option<PathBuf> {
        let text = self.merged.read_host(file, None, 8 * 1024)?;
        let target = text.strip_prefix(b"gitdir:")?.trim_ascii();
        self.merged.resolve(file.parent()?, OsStr::from_bytes(target))
    }

    /// Where `commondir` leads, if inside.
    fn common(&self, git: &Path) -> Option<PathBuf> {
        let text = self.merged.read_host(&git.join("commondir"), None, 8 * 1024)?;
        self.merged.resolve(git, OsStr::from_bytes(text.trim_ascii()))
    }
}

/// Reads configurations of the host and notes where they lead.
struct Leading<'l> {
    merged: &'l Merged<'l>,
    home: Option<&'l Path>,
    found: &'l mut Vec<Led>,
    configs: &'l mut usize,
}

impl Leading<'_> {
    /// One configuration of the repository with this worktree, and those that it includes.
    fn config(&mut self, file: &Path, worktree: &Path) {
        let mut waiting = vec![file.to_owned()];
        while let Some(file) = waiting.pop() {
            let Some(text) = self.merged.read_host(&file, None, gitconfig::MAX_BYTES) else {
                continue;
            };
            *self.configs += 1;
            if *self.configs > MAX_CONFIGS {
                return;
            }
            // Git stops at a text that it cannot parse, and runs nothing by it.
            let Some(config) = gitconfig::parse(&text) else { continue };
            let folder = file.parent().unwrap_or(Path::new(""));
            for place in leads(&config) {
                let base = if place.kind == Kind::Include { folder } else { worktree };
                let by = format!("{} of {}", place.key(), file.display());
                for path in self.inside(base, place.written) {
                    if place.kind == Kind::Include && waiting.len() < MAX_CONFIGS {
                        waiting.push(path.clone());
                    }
                    self.note(path, &by, &place);
                }
            }
        }
    }

    /// Where a text in a configuration leads inside the root: by its letters and by symlinks.
    fn inside(&self, base: &Path, written: &str) -> Vec<PathBuf> {
        if written.is_empty() {
            return Vec::new();
        }
        let written = match (written.strip_prefix("~/"), self.home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => PathBuf::from(written),
        };
        let mut paths: Vec<PathBuf> = self.merged.normal(base, &written).into_iter().collect();
        paths.extend(self.merged.trail(base, written.as_os_str()));
        paths.sort();
        paths.dedup();
        paths
    }

    fn note(&mut self, path: PathBuf, by: &str, lead: &Lead<'_>) {
        let below = |path| Led { path, by: by.to_owned(), reach: Reach::Below };
        let places = match (lead.kind, path.as_os_str().is_empty()) {
            (Kind::Command, _) => {
                let is_folder = path.as_os_str().is_empty()
                    || matches!(self.merged.on_host(&path), Host::Folder(_));
                Led::by_word(lead.written, path, is_folder, by)
            }
            (Kind::Hooks, true) => HOOKS.iter().map(|hook| below(PathBuf::from(hook))).collect(),
            (Kind::Include, true) => Vec::new(),
            (Kind::Hooks | Kind::Include, false) => vec![below(path)],
        };
        for place in places {
            if !self.found.contains(&place) {
                self.found.push(place);
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Hooks,
    Include,
    Command,
}

struct Lead<'c> {
    kind: Kind,
    written: &'c str,
}

impl Lead<'_> {
    fn key(&self) -> &'static str {
        match self.kind {
            Kind::Hooks => "`core.hooksPath`",
            Kind::Include => "`include.path`",
            Kind::Command => "a command",
        }
    }
}

fn leads(config: &Config) -> impl Iterator<Item = Lead<'_>> {
    let of = |kind| move |written| Lead { kind, written };
    config
        .hooks_paths()
        .map(of(Kind::Hooks))
        .chain(config.includes().map(of(Kind::Include)))
        .chain(config.commands().map(of(Kind::Command)))
}
