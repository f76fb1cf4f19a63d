//! What a call may use: the workspace, the policy, figures, and the powers to run and to fetch.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use runner_policy::Effective;
use runner_policy::limits::{Limit, Limits};

use super::{Exec, Net, Removals};
use crate::stage::around::LookAround;
use crate::undo::Keep;
use crate::workspace::Workspace;

/// Authority is a value: who serves a talk is given this, and reaches nothing else.
#[derive(Clone)]
pub struct Authority {
    /// The workspace, held open. Paths of requests are below it.
    pub workspace: Arc<Workspace>,
    /// The policy, already within the tool's permissions.
    pub policy: Arc<Effective>,
    /// Figures.
    pub limits: BrokerLimits,
    /// Runs commands.
    pub exec: Arc<dyn Exec>,
    /// Reaches the net.
    pub net: Arc<dyn Net>,
    /// Asked before something is removed.
    pub removals: Arc<dyn Removals>,
    /// Keeps what changes take away.
    pub keep: Arc<dyn Keep>,
    /// Finds out where the host runs what is written by another name.
    pub around: Arc<LookAround>,
    /// The caller's state folder, in which calls wait for their turn to change a workspace. Nothing is
    /// changed without it.
    pub state: Option<PathBuf>,
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authority")
            .field("workspace", &self.workspace.root())
            .field("policy", &self.policy.name())
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// The figures of a policy that bind a broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BrokerLimits {
    /// Requests of one call.
    pub calls: u64,
    /// Bytes that one call moves, in both directions.
    pub bytes: u64,
    /// Size of one written file.
    pub file_size: u64,
    /// Free space of the workspace's file system below which nothing is written.
    pub free_space: u64,
    /// Time from start to end.
    pub wall: Duration,
}

impl BrokerLimits {
    /// The figures of a policy and all that it stays within: the tightest of each.
    #[must_use]
    pub fn of(policy: &Effective) -> Self {
        Self::from_limits(&policy.tightest_limits())
    }

    /// These figures.
    #[must_use]
    pub fn from_limits(limits: &Limits) -> Self {
        Self {
            calls: limits.get(Limit::BrokerCalls),
            bytes: limits.get(Limit::BrokerBytes),
            file_size: limits.get(Limit::FileSize),
            free_space: limits.get(Limit::FreeSpace),
            wall: Duration::from_millis(limits.get(Limit::Wall)),
        }
    }
}
