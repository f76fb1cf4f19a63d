//! Why data of git are held back for the sake of covered paths, in words.

use std::path::Path;

use super::refs::RefsError;
use super::settle::NotRevealed;
use crate::git_index::IndexError;
use crate::stage::change::{Held, Why};
use crate::stage::reasons::held;

/// The next step where git's data would change a covered path.
const COMMIT_YOURSELF: &str = "let the command leave the covered path as git has it, or commit the change of \
                               it outside the sandbox";

/// The next step where git's data would bring what a call may not change.
const ADD_YOURSELF: &str = "let the command leave that path out of the commit, or make the change and \
                            commit it outside the sandbox";

/// The next step where an index has parts in another file.
const JOIN_THE_INDEX: &str =
    "run `git update-index --no-split-index` outside the sandbox, then the command again";

/// An index that says something else about a covered path, or cannot be understood.
pub(super) fn index(path: &Path, why: &NotRevealed) -> Held {
    let named = match why {
        NotRevealed::Index(
            IndexError::CoveredAdded(named)
            | IndexError::CoveredChanged(named)
            | IndexError::CoveredRemoved(named)
            | IndexError::Unmerged(named)
            | IndexError::SparseFolder(named),
        )
        | NotRevealed::Checkout(named) => format!(": `{}`", shown(named)),
        _ => String::new(),
    };
    let reason = format!("{} is not applied: {why}{named}", path.display());
    match why {
        NotRevealed::Index(IndexError::SplitIndex) => {
            held(Why::Covered, "built-in/covered", reason, JOIN_THE_INDEX)
        }
        NotRevealed::Checkout(_) => held(Why::RunsOnHost, "built-in/never", reason, ADD_YOURSELF),
        _ => held(Why::Covered, "built-in/covered", reason, COMMIT_YOURSELF),
    }
}

/// Git data that belong to an index or a ref that is held.
pub(super) fn with_index() -> Held {
    let reason = "the index or a ref of the same git folder is held back";
    held(Why::Group, "built-in/git", reason, COMMIT_YOURSELF)
}

/// A ref whose commits change a covered path.
pub(super) fn moved_ref(name: &[u8], path: &[u8]) -> Held {
    let reason = format!(
        "the commits of `{}` change `{}`, which was hidden from the call",
        shown(name),
        shown(path)
    );
    held(Why::Covered, "built-in/covered", reason, COMMIT_YOURSELF)
}

/// A ref or a commit that brings what a working tree may not get.
pub(super) fn ref_brings(name: &[u8], path: &[u8]) -> Held {
    let reason = format!(
        "`{}` changes `{}`, which the call may not change, and which is not as the host has it",
        shown(name),
        shown(path)
    );
    held(Why::RunsOnHost, "built-in/never", reason, ADD_YOURSELF)
}

/// Objects that are not taken over.
pub(super) fn objects(why: &RefsError) -> Held {
    let reason = format!("git's objects of the call are not taken over: {why}");
    held(
        Why::RunsOnHost,
        "built-in/never",
        reason,
        "look at them with `runner stage diff`, and run the command again",
    )
}

/// Refs of which it is not known whether they change a covered path.
pub(super) fn unknown_refs(why: &RefsError) -> Held {
    let reason = format!("it is not known what its commits change: {why}");
    held(Why::Covered, "built-in/covered", reason, COMMIT_YOURSELF)
}

/// Bytes of the adversary for people.
fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).chars().take(200).collect::<String>().escape_debug().to_string()
}
