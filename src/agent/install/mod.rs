//! Puts the hook into an agent's own configuration, and takes it out again.
//!
//! Duty: plan what would change, show it, write it, and pin what holds for the agent's calls. Texts are edited at their
//! spans, so that comments and formatting stay; a configuration that is not understood is refused at its place, and
//! nothing is written. `uninstall` puts back exactly what was there if the file did not change since; else it removes our
//! entries alone.

mod codex;
mod edits;
mod files;
pub mod jsonc;
mod others;
mod plan;
mod undo;

pub use files::Change;
pub use others::{OtherHook, other_hooks};
pub use plan::{Plan, Request};
pub use undo::{Intact, intact, uninstall};
