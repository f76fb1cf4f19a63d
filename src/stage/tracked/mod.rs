//! Covered paths that git tracks: git in a sandbox neither shows nor changes them.
//!
//! A covered file reads as empty in a sandbox. If git tracks it, `git diff` would print the
//! committed content as removed, and `commit -a` would commit that. So the sandbox gets a rewritten
//! index in which such entries have the `skip-worktree` bit: `status`, `diff`, `add -A`, `commit
//! -a` and `stash` then neither show nor change them.
//!
//! ```text
//! host's .git/index -> hide   -> covers layer, over the host's index
//! staged .git/index -> reveal -> the index to apply, or why it is held back
//! staged refs       -> refs::check   -> the refs to hold back
//! ```
//!
//! The same two ways are closed for everything else that a call may not change: commits and indexes are
//! judged as the checkout that they would be (`checkout`). And git believes the names of objects that it
//! finds, so staged objects are taken over by git, which names each by its content (`import`).
//!
//! Two things are up to the caller. The hidden copy gets the modification time of the host's index,
//! or git takes files for unchanged that were edited in the same tick as the index. Commands get
//! [`SPARSE_CONFIG`](crate::git_index::SPARSE_CONFIG), or git takes the bit off again in a repository with a sparse checkout. There,
//! `stash`, `switch` and `rebase` take it off all the same: git writes the committed content into
//! the stage, where an entry at a covered path is held back.
//!
//! Non-goals: placing the copy, locks, applying. Trust boundary: the host's index and refs are the
//! user's; everything staged was written by the adversary.

mod checkout;
pub mod import;
mod layers;
mod objects;
mod reasons;
pub mod refs;
mod run;
pub mod settle;
#[cfg(test)]
mod tests;
