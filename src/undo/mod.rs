//! Undo: what a call changed through the broker, as it was before.
//!
//! ```text
//! broker: before a change --> journal: what is there now (a row), its content (a backup) --> the change
//! runner undo CALL:  rows, newest first --> plan: is everything still as the call left it? --> site: restore
//! ```
//!
//! Duty: keep what changes take away, bounded in size and age; find out whether it can be put back without taking
//! anybody else's work away; put it back, all or nothing as far as can be known before the first step. Non-goals:
//! what commands changed in their sandboxes, and history beyond the call's own changes. Trust boundary: the tree
//! may change at any moment, and names in it are the adversary's: everything is looked at and restored below the
//! workspace's own handle, no link is ever followed, and a file appears under its name whole. Backups lie in the
//! caller's own folder, readable by nobody else. An undo is a call of its own, recorded, and can be undone.
//!
//! | part | duty |
//! | --- | --- |
//! | [`Journal`] | the broker's `Keep`: rows and backups, before each change |
//! | `backups` | contents by digest, each once |
//! | `state` | what has a name: nothing, a file, a link, a folder |
//! | `plan` | from rows to steps, or to what stands in the way |
//! | `site` | looking and restoring below a workspace |
//! | [`run`], [`list`] | one undo from its record to its end; what can be undone |

mod backups;
mod error;
mod journal;
mod plan;
mod run;
mod site;
mod state;

pub use error::UndoError;
pub use journal::{Journal, sweep};
pub use plan::{Obstacle, Step};
pub use run::{Doing, Undoable, Undone, list, run};
