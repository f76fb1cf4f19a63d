//! The control groups of sandboxes: where they can be made here, and which a sandbox gets.
//!
//! Duty: find a place below which this process may make control groups with the controllers of memory, processors and
//! processes, for either version; and say what holds each limit. Non-goals: making groups (the launcher does, and removes
//! them). Trust boundary: the kernel's own tables say where this process is; a folder counts only if this process may
//! write it.
//!
//! Version 1 has a tree for each controller, and a sandbox gets a group below the caller's own in each. In version 2 a group
//! with processes of its own can have no groups with controllers below it, so the place is a group above the caller's. Where
//! the caller may not write one of these, systemd makes a scope for the launcher of each sandbox.

mod find;
mod left_over;
mod plan;
mod settle;
mod table;

pub(super) use find::find;
pub(super) use left_over::remove_left_over;
pub(super) use plan::{groups, holders, scope};
pub(super) use settle::{Place, settle};
pub(super) use table::unified_group_of;

use std::path::PathBuf;

use super::systemd::Manager;

/// How the names of groups of sandboxes begin.
const PREFIX: &str = "runner-sandbox-";

/// Where groups of sandboxes can be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Places {
    /// Version 1.
    Trees(Trees),
    /// Version 2: in this group.
    Unified {
        /// Its folder.
        folder: PathBuf,
        /// Whether groups in it can limit processors.
        cpus: bool,
        /// Whether the machine can swap.
        swap: Swap,
    },
    /// Version 2: in a scope that this manager makes for each sandbox.
    Scopes {
        /// Who makes it.
        manager: Manager,
        /// Whether groups in it can limit processors.
        cpus: bool,
        /// Whether the machine can swap.
        swap: Swap,
    },
    /// Nowhere.
    None,
}

/// Version 1: the caller's own group in the tree of each controller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Trees {
    memory: PathBuf,
    pids: PathBuf,
    /// The limit of processors.
    cpu: Option<PathBuf>,
    /// The count of their use.
    cpuacct: Option<PathBuf>,
    swap: Swap,
}

/// Whether memory can go beyond its limit by way of swap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Swap {
    /// There is none, or the kernel limits it.
    Bounded,
    /// There is some, and this kernel does not count it.
    Free,
}
