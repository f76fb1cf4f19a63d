//! What a call tells its watchdog: make one more like this.

use std::path::{Path, PathBuf};
use std::time::Duration;

use runner_policy::limits::Limit;
use runner_wire::Start;
use serde::{Deserialize, Serialize};

use super::entry::{Claimed, Class, Entry, Pool};
use super::guess::Guess;
use super::key::{Key, Lane, Wanted};
use crate::config;
use crate::engine::Address;
use crate::engine::plan::SandboxPlan;
use crate::engine::runtime_kind::RuntimeKind;

/// Everything that a waiting sandbox is made from.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Order {
    /// The caller's own folder for state.
    pub state: PathBuf,
    /// The engine that shall make it.
    pub address: Address,
    /// What that engine makes sandboxes from besides their plans.
    pub recipe: String,
    /// The pool's bounds.
    pub bounds: Bounds,
    /// Who may claim it.
    pub key: Key,
    /// Who may take it before they know.
    pub guess: Guess,
    /// Where it belongs.
    pub lane: Lane,
    /// What it is for.
    pub class: Class,
    /// The policy's name.
    pub policy: String,
    /// The names of what the policy stays within.
    pub within: Vec<String>,
    /// The digest of the policy and all that it extends.
    pub policy_digest: String,
    /// The project whose call this is.
    pub project: PathBuf,
    /// How long such a call may run. The plan keeps only what is part of a container.
    pub wall: Duration,
    /// The workspace that it shows.
    pub workspace: PathBuf,
    /// The container.
    pub plan: SandboxPlan,
    /// What is started before the claim.
    pub prestart: Option<Start>,
}

/// How much may wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bounds {
    /// Of the calls of this project; its own configuration counts.
    pub own: config::Pool,
    /// Of all projects together.
    pub whole: config::Pool,
}

impl Bounds {
    /// As a configuration has them.
    #[must_use]
    pub fn of(config: &config::Config) -> Self {
        Self { own: config.pool(), whole: config.whole_pool() }
    }

    /// Whether nothing may wait.
    #[must_use]
    pub fn is_off(&self) -> bool {
        self.own.size == 0 || self.whole.size == 0
    }
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
    pub fn new(wanted: &Wanted<'_>, state: &Path, bounds: Bounds) -> Option<Self> {
        Some(Self {
            state: state.to_owned(),
            address: wanted.address.clone(),
            recipe: wanted.recipe.to_owned(),
            bounds,
            key: wanted.key()?,
            guess: wanted.guess.clone(),
            lane: wanted.lane()?,
            class: wanted.class,
            policy: wanted.policy.to_owned(),
            within: wanted.within.iter().map(|name| (*name).to_owned()).collect(),
            policy_digest: wanted.policy_digest.to_owned(),
            project: wanted.project.to_owned(),
            wall: Duration::from_millis(wanted.plan.limits.get(Limit::Wall)),
            workspace: wanted.workspace().to_owned(),
            plan: wanted.plan.clone(),
            prestart: wanted.prestart.cloned(),
        })
    }

    /// The pool that it is for.
    #[must_use]
    pub fn pool(&self) -> Pool {
        Pool::new(&self.state)
    }

    /// Takes a sandbox that waits and may still run for `wall`, if any may wait at all.
    #[must_use]
    pub fn claim(&self, wall: Duration) -> Option<Claimed> {
        if self.bounds.is_off() { None } else { self.pool().claim(&self.key, wall) }
    }

    /// What one costs while it waits, in bytes.
    #[must_use]
    pub fn cost(&self) -> u64 {
        self.class.cost(RuntimeKind::of(self.plan.runtime.as_ref()))
    }

    /// Whether an entry is of no use any more where this order comes from: another thing stands in its lane today, its
    /// policy was changed, or the engine's part of this program was.
    #[must_use]
    pub fn replaces(&self, entry: &Entry) -> bool {
        let same_policy = entry.project == self.project
            && (&entry.policy, &entry.within) == (&self.policy, &self.within);
        let same_engine = entry.address.engine() == self.address.engine();
        (same_engine && entry.recipe != self.recipe)
            || (entry.lane == self.lane && entry.key != self.key)
            || (same_policy && entry.policy_digest != self.policy_digest)
    }
}
