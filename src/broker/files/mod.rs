//! Files of the workspace, for a tool.
//!
//! Duty: every `file.*` request: resolve, judge, act. Non-goals: the talk (the caller's), and content.
//! Trust boundary: paths are the tool's, the tree is the adversary's and may change at any moment.
//!
//! # How a path is resolved, and what is judged
//!
//! 1. The path is read as text ([`spelled`]): absolute below the workspace, or relative to it. What it
//!    *says* is judged first, so that a denied name is denied whether it exists or not, and a denied
//!    link is denied wherever it leads.
//! 2. The kernel resolves it (`openat2`, `RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS`) from the workspace's
//!    own handle to a handle that only names the object (`O_PATH`): no file is opened by looking at it,
//!    so that no pipe can hang us and no device can act. Links that stay inside are followed;
//!    absolute ones lead outside by definition.
//! 3. What was *resolved* is judged: the path that the kernel itself gives for the handle
//!    (`/proc/self/fd`), below the path that it gives for the workspace's handle at that moment. A walk
//!    of our own, component by component, would tell the path that we took, which a rename can make
//!    untrue meanwhile; the kernel's answer is where the object is now. Whoever can rename an object to
//!    an allowed name between both could have done so before.
//! 4. Reading and writing act on that handle (opened again through `/proc/self/fd`), and creating,
//!    replacing and removing on the handle of the folder that was judged. No name is used twice.
//!
//! A regular file with more than one name is refused for reading and writing: another name may lie
//! outside the workspace, or be denied, and no walk can prove otherwise while names can move under it.

mod append;
mod below;
mod change;
mod errno;
mod escape;
mod gitfolder;
mod glob;
mod judge;
mod list;
mod made;
mod pattern;
mod place;
mod read;
mod remove;
mod spelled;
mod write;

use made::Made;

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use runner_policy::Effective;

use super::{Authority, BrokerLimits, Refusal};
use crate::codes::Code;
use crate::stage::around::{Around, LookAround};
use crate::undo::{Change, Keep, KeepNothing, NotKept};
use crate::workspace::Workspace;

/// The workspace's files, as the policy sees them. Everything here blocks.
pub(crate) struct Files {
    workspace: Arc<Workspace>,
    policy: Arc<Effective>,
    /// The workspace's path as text: rules speak of text.
    root: String,
    limits: BrokerLimits,
    /// Sees everything before it changes.
    keep: Arc<dyn Keep>,
    /// What the call has made itself.
    made: Made,
    /// Where the host runs what is written by another name: looked up before the first change.
    around: OnceLock<Result<Around, String>>,
    look_around: Arc<LookAround>,
    /// Where calls wait for their turn.
    state: Option<PathBuf>,
}

impl fmt::Debug for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Files").field("root", &self.root).finish_non_exhaustive()
    }
}

impl Files {
    /// The files of a call; `None` if the workspace's path is not text.
    pub(super) fn new(authority: &Authority) -> Option<Self> {
        Some(Self {
            workspace: Arc::clone(&authority.workspace),
            policy: Arc::clone(&authority.policy),
            root: authority.workspace.root().to_str()?.to_owned(),
            limits: authority.limits,
            keep: Arc::clone(&authority.keep),
            made: Made::default(),
            around: OnceLock::new(),
            look_around: Arc::clone(&authority.around),
            state: authority.state.clone(),
        })
    }

    /// To look at what a call would do, not to do it.
    pub(crate) fn to_judge(workspace: &Arc<Workspace>, policy: &Arc<Effective>) -> Option<Self> {
        Some(Self {
            workspace: Arc::clone(workspace),
            policy: Arc::clone(policy),
            root: workspace.root().to_str()?.to_owned(),
            limits: BrokerLimits::of(policy),
            keep: Arc::new(KeepNothing),
            made: Made::default(),
            around: OnceLock::new(),
            // What is told beforehand is judged again when it is done.
            look_around: Arc::new(|| Ok(Around::default())),
            state: None,
        })
    }

    /// Has what is about to change kept; what cannot be kept is not changed.
    fn kept(&self, changes: &[Change<'_>]) -> Result<(), Refusal> {
        self.keep.before(changes).map_err(|NotKept(why)| {
            Refusal::new(Code::IoError, format!("what is there cannot be kept for undo: {why}"))
                .hint("check the disk of the state folder")
        })
    }

    /// Where a command is to start: a folder of the workspace, absolute and without links.
    pub(super) fn folder(&self, path: &str) -> Result<PathBuf, Refusal> {
        let named = self.named(path)?;
        let found = self.enter(&named)?;
        Ok(PathBuf::from(self.absolute(&found.relative)))
    }
}
