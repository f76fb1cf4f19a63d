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
//! | `changes` | what came of the changes, for results and records |
//! | `settle` | judges and applies when a call is over |
//! | `review` | looks at stages that were kept, applies or discards them |
//! | `sweep` | ends what died: unfinished applies, stages without a sandbox |
//! | `user_git` | where the user's own git configuration leads into the workspace |
//! | `error` | why changes stay where they are |

mod changes;
mod error;
mod review;
mod settle;
mod sweep;
mod user_git;

pub use changes::{AppliedCounts, Changes, HeldChange};
pub use error::StagedError;
pub use review::{ByHand, Kept, Looked, apply, discard, kept, look};
pub(super) use settle::{Seen, Settling, settle};
pub(crate) use sweep::{clear, sweep};
