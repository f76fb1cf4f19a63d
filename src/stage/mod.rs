//! What a writing call changed, before the host sees it: walk, judge, apply, hold back.
//!
//! A writing command works in an overlay whose upper layer is private to the call: the *stage*. When its
//! last process has ended, the host walks the stage, judges each change, and applies what is allowed.
//!
//! ```text
//! sandbox ends -> walk: Vec<Change> -> judge: Vec<Judged> -> apply: journal, rename -> Applied
//!                                          |                     |
//!                                          +-- held back         +-- conflicts
//! ```
//!
//! From the judge's first look at the host to the end of the apply no other call changes the same
//! folders ([`turn`]).
//!
//! Trust boundary: everything in a stage was written by the adversary, names and extended attributes
//! too. It is read through directory handles, no symlink is followed, and the host's own tree may
//! change at any moment.

pub mod access;
mod alias;
pub mod apply;
pub mod around;
pub mod change;
pub mod compare;
mod conflict;
#[cfg(test)]
pub(crate) mod dice;
pub mod diff;
pub mod folder;
pub mod gitconfig;
pub mod group;
mod handles;
mod journal;
pub mod judge;
pub mod layer;
pub mod leads;
pub mod led;
pub mod merged;
mod of_plan;
mod reasons;
pub mod recover;
pub mod repository;
pub mod tracked;
pub mod turn;
pub mod walk;
pub mod worktree;
