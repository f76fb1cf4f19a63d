//! `git` and what `git_commit` shares with it.
//!
//! Every word that a caller gives is an operand or the value of an option, and stands where git cannot take it for
//! an option: revisions that begin with a dash are refused, paths stand after `--`. What git may do is the policy's
//! decision, by its effects; where it runs is a sandbox with a neutral configuration.

mod commit;
mod parse;
mod run;

pub(super) use commit::{Commit, commit};
pub(super) use run::{intends, run};
