//! A control group from systemd, for a caller whose own place in the tree has none to give.
//!
//! On cgroup v2 an ordinary user may make groups below `user@UID.service` alone, and a login shell is not
//! below it (`session-N.scope`). Only systemd may move a process between the two. So the launcher of a
//! sandbox is put into a scope of its own, which is delegated to it:
//!
//! ```text
//! runner                      launcher                   systemd (the user's, or the system's for root)
//!   | spawn ------------------> | waits for its recipe      |
//!   | StartTransientUnit(PIDs, Delegate=yes) -------------> | makes the scope, moves the launcher
//!   | <------------------------------- JobRemoved: done --- |
//!   | looks where the launcher is and what groups there can limit
//!   | recipe -----------------> | moves into a leaf, makes the sandbox's group beside it
//! ```
//!
//! Duty: find the manager, ask it, and believe only what the kernel's own tables say afterwards. Non-goals:
//! limits; they are written by the launcher, and a file that is not there ends the launch. Trust boundary: the
//! socket must belong to a process of the caller's own user that numbers processes as we do; an answer
//! is read within bounds, and one that is not understood is an error.
//!
//! # One scope for each sandbox
//!
//! A scope that outlives a call needs a process that lives in it, and the next launcher would still have
//! to be moved there by systemd: the kernel asks for the right to write the nearest group above both.
//! So a scope that stays would save the making of a unit, and would cost a process that nobody watches.
//! systemd removes a scope with its last process, also when everything of ours was killed.
//!
//! # Two messages, written by hand
//!
//! The manager's own socket (the one that `systemctl` uses) needs no bus daemon, no name and no
//! subscription: one call goes out, one signal is waited for. The kept library for it, zbus, adds twenty
//! crates and 0.9 MB for that; its connection takes 0.35 ms where a socket takes 0.05.

mod manager;
mod message;
mod scope;

pub(super) use manager::Manager;
pub use scope::ScopeError;
