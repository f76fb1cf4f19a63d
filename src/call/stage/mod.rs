//! What writing calls changed: settled at their end, or later by a person.
//!
//! ```text
//! sandbox is still -> settle: walk, judge, apply ----> result: applied, held
//!                                         |
//!                  stage list, show, diff +--- held back, kept for a while
//!                  stage apply, discard   |
//! ```
//!
//! | part | duty |
//! | --- | --- |
//! | `around` | where the host runs what a tool writes through the broker |
//! | `changes` | what came of the changes, for results and records |
//! | `settle` | judges and applies when a call is over |
//! | `review` | looks at stages that were kept, applies or discards them |
//! | `sweep` | ends what died: unfinished applies, stages without a sandbox |
//! | `outer_git` | where git configurations outside the workspace lead into it |
//! | `outer_home` | where symlinks in the caller's home lead into it |
//! | `error` | why changes stay where they are |

mod around;
mod changes;
mod error;
mod outer_git;
mod outer_home;
mod review;
mod settle;
mod sweep;
#[cfg(test)]
mod testing;

pub(super) use around::Scene as AroundScene;
pub use changes::{AppliedCounts, Changes, HeldChange};
pub use error::StagedError;
pub use review::{ByHand, Kept, Looked, apply, discard, kept, look};
pub(super) use settle::{Seen, Settling, settle};
pub(crate) use sweep::{clear, clear_dead, sweep};
