//! From a decision to a container: what is mounted, hidden, limited and reported.
//!
//! Duty: turn a decided request and facts about this machine into a [`SandboxPlan`], and a plan into
//! an outcome. Non-goals: deciding (the policy does) and talking to an engine (the engine does).
//! Trust boundary: the workspace and everything in it is the adversary's. Paths in it are opened
//! without following links, and each mount carries the identity of what was opened, so that the
//! guest can prove it got the same thing.

pub mod ahead;
mod binding;
pub mod cancel;
pub mod claims;
pub(crate) mod container_limits;
pub mod farewell;
pub mod folders;
pub mod gitdirs;
pub mod grants;
mod hardlinks;
mod identity;
pub mod kept;
mod look;
pub mod materials;
mod memory;
mod memory_file;
mod mount_error;
pub mod mountinfo;
pub mod mounts;
mod names;
pub mod neighbours;
pub mod order;
pub mod outcome;
mod own_folders;
mod pages;
pub mod plan;
pub mod planner;
pub mod protected;
pub mod protection;
pub mod pump;
pub mod quarantine;
pub mod run;
pub mod soon;
pub mod streams;
pub mod survey;
pub mod synthetic;
pub mod toolchain;
mod toolchain_table;
pub mod user;
mod wake;
pub mod walk;
pub mod watchdog;
pub mod workspace;
mod write_roots;

pub use plan::{
    Access, Environment, FileMode, Identity, Image, Mask, MaskKind, Mount, MountRole, Note,
    Protection, ProtectionStatus, Runtime, SandboxPlan, SyntheticFile, SyntheticRole, Tmpfs,
    TmpfsExec, UserChoice, WhyUser,
};
