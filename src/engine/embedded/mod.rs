//! Sandboxes that this machine's kernel makes, without a daemon: as root, or as an ordinary user.
//!
//! ```text
//! runner                     launcher (the guest's executable)        first process
//!   | plan -> recipe            |                                        |
//!   | spawn, recipe over the -> | namespaces, fork --------------------> | mounts, user, filter
//!   | wire's own socket         | waits                                  | becomes the guest
//!   | <------------------------------ wire ------------------------------|
//! ```
//!
//! A caller whose own place in the tree of control groups has none to give asks systemd for one ([`systemd`]).
//!
//! Duty: from a plan to a recipe ([`recipe`]), and the life of the launcher ([`process`]). Non-goals: carrying the
//! recipe out; the launcher does (`src/guest/launch/`). A sandbox lives no longer than the process that has its wire: its
//! guest ends when the wire closes, and the kernel kills it with its launcher. For a call, that is this process. One that
//! waits is held by a process of its own ([`waiting`]). What else a sweep finds are control groups of launchers that were
//! killed ([`groups`]).

mod engine;
mod failure;
mod groups;
mod guest_folder;
mod probe;
mod process;
mod recipe;
mod systemd;
mod waiting;

pub use engine::Embedded;
pub use failure::LaunchError;
pub use waiting::main as hold;
