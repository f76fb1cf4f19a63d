//! An undo is a call of its own: recorded, and itself to be undone.
//!
//! Duty: its records, and the order of its steps. Non-goals: what is kept, how it is found to be as the
//! call left it, and restoring below the workspace ([`crate::undo`] does).

mod error;
mod run;

pub use error::UndoError;
pub use run::{UndoMode, Undone, run};
