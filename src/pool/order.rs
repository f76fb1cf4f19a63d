//! What a call tells its watchdog: make one more like this.

use std::path::{Path, PathBuf};

use runner_wire::Start;
use serde::{Deserialize, Serialize};

use super::entry::{Class, Pool};
use super::key::{Key, Lane, Wanted};
use crate::config;
use crate::sandbox::neighbours::Neighbours;
use crate::sandbox::plan::SandboxPlan;

/// Everything that a waiting sandbox is made from.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Order {
    /// The caller's own folder for state.
    pub state: PathBuf,
    /// The pool's bounds.
    pub settings: config::Pool,
    /// Who may claim it.
    pub key: Key,
    /// Where it belongs.
    pub lane: Lane,
    /// What it is for.
    pub class: Class,
    /// The policy's name.
    pub policy: String,
    /// The workspace that it shows.
    pub workspace: PathBuf,
    /// The container.
    pub plan: SandboxPlan,
    /// What is started before the claim.
    pub prestart: Option<Start>,
    /// What we made in the workspace for the plan; it is put away when no call runs.
    pub made: Option<Made>,
}

/// Things of our own making that a sandbox shows.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Made {
    /// The ledger that they stand in.
    pub ledger: PathBuf,
    /// Each path, outermost first.
    pub paths: Vec<PathBuf>,
}

/// Where a call's sandbox comes from.
#[derive(Debug)]
pub enum Supply {
    /// It is made for the call, and nothing is left waiting.
    Fresh,
    /// One that waits, if there is one; and one more is made behind the call's back.
    Pooled(Box<Order>),
}

impl Order {
    /// An order for what is wanted; `None` if no engine could carry it.
    #[must_use]
    pub fn new(wanted: &Wanted<'_>, state: &Path, settings: config::Pool) -> Option<Self> {
        Some(Self {
            state: state.to_owned(),
            settings,
            key: wanted.key()?,
            lane: wanted.lane()?,
            class: wanted.class,
            policy: wanted.policy.to_owned(),
            workspace: wanted.workspace().to_owned(),
            plan: wanted.plan.clone(),
            prestart: wanted.prestart.cloned(),
            made: wanted.plan.claim.ledger().map(|ledger| Made {
                ledger: ledger.to_owned(),
                paths: wanted.plan.created_folders.clone(),
            }),
        })
    }

    /// Where calls of its caller find each other.
    #[must_use]
    pub fn neighbours(&self) -> Neighbours {
        Neighbours::of(&self.state)
    }

    /// The pool that it is for.
    #[must_use]
    pub fn pool(&self) -> Pool {
        Pool::new(&self.state)
    }
}
