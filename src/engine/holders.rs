//! What holds the limits that are about all processes of a sandbox together.
//!
//! An engine says it of its machine. The planner passes it on, so that what a result promises, what the engine sets up and
//! what the guest watches come from one value.

use serde::{Deserialize, Serialize};

/// What holds each of these limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holders {
    /// The limit of memory.
    pub memory: Holder,
    /// The limit of processors.
    pub cpus: Holder,
    /// The limit of processes and threads.
    pub pids: Holder,
}

impl Holders {
    /// Control groups hold all of them.
    pub const GROUPS: Self =
        Self { memory: Holder::Group, cpus: Holder::Group, pids: Holder::Group };
}

/// What holds a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Holder {
    /// A control group.
    Group,
    /// A control group that counts memory alone, on a machine that can swap.
    GroupThatSwaps,
    /// The kernel's limit for the one user of a user namespace.
    UserLimit,
    /// The choice of processors that a sandbox starts with.
    Processors,
    /// The guest looks, and ends what goes beyond.
    Guest,
    /// Nothing.
    Nothing,
}
