//! From a decision to a container: what is mounted, hidden, limited and reported.
//!
//! Duty: turn a decided request and facts about this machine into a
//! [`SandboxPlan`](crate::engine::plan::SandboxPlan); move the streams of a running sandbox, and work out how it
//! ended. Non-goals: deciding (the policy does), talking to an engine (the engine does), and the run
//! from a plan to its outcome (`call::launch` does).
//! Trust boundary: the workspace and everything in it is the adversary's. Paths in it are opened
//! without following links, and each mount carries the identity of what was opened, so that the
//! guest can prove it got the same thing.

pub mod cancel;
pub mod certificates;
pub mod covers;
mod gitconfig;
pub mod hidden_index;
pub mod identity;
pub mod kept;
pub mod materials;
mod mount_error;
pub mod order;
pub mod outcome;
pub mod overlay;
mod pem;
pub mod planner;
pub mod protection;
pub mod pump;
mod rustup;
mod sockets;
pub mod streams;
pub mod synthetic;
pub mod toolchain;
mod toolchain_table;
pub mod tunnels;
pub mod user;
mod virtual_env;
pub mod wire;
