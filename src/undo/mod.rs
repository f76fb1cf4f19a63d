//! Undo: what a call changed, through the broker or by its command, as it was before.
//!
//! ```text
//! stage:  before all changes of a command --> staged: rows; the old files themselves are the backups
//! broker: before a change --> journal: what is there now (a row), its content (a backup) --> the change
//! call::undo:  rows, newest first --> plan: is everything still as the call left it? --> site: restore
//! ```
//!
//! Duty: keep what changes take away, bounded in size and age; find out whether it can be put back without taking
//! anybody else's work away; put it back, all or nothing as far as can be known before the first step. Non-goals:
//! history beyond the call's own changes. Trust boundary: the tree
//! may change at any moment, and names in it are the adversary's: everything is looked at and restored below the
//! workspace's own handle, no link is ever followed, and a file appears under its name whole. Backups lie in the
//! caller's own folder, readable by the caller alone. An undo is a call of its own (`call::undo`),
//! recorded, and can be undone.
//!
//! | part | duty |
//! | --- | --- |
//! | [`Keep`], [`Change`] | what the broker tells before and after each change |
//! | [`Journal`] | keeps rows and backups, before each change |
//! | `backups` | contents by digest, each once |
//! | `state` | what has a name: nothing, a file, a link, a folder |
//! | `plan` | from rows to steps, or to what stands in the way |
//! | `staged` | rows and images of what a command changed |
//! | `trees`, `names` | whole folders as one change; paths as text |
//! | `site` | looking and restoring below a workspace |
//! | `rows`, [`list`] | what a call changed, as it was noted; which calls can be undone |

mod backups;
mod journal;
mod keep;
pub(crate) mod names;
mod plan;
mod rows;
mod site;
mod staged;
mod state;
pub(crate) mod trees;

pub(crate) use backups::{Backups, image_name};
pub use journal::{Journal, sweep};
pub use keep::{Change, Keep, KeepNothing, NotKept, What};
pub(crate) use plan::{Change as Kept, plan};
pub use plan::{Obstacle, Step};
pub use rows::list;
pub(crate) use rows::{Changes, changes, mark};
pub(crate) use site::{Site, Writing};
pub(crate) use staged::{StagedRow, finish_staged, keep_staged};
pub(crate) use state::{Stamp, State};
