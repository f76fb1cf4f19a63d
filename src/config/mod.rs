//! The configuration: what applies to every call and is no matter of a single policy.
//!
//! ```text
//! /etc/runner/config.yml ──┐
//! user's config.yml ───────┼─ read (strict) ─> one file each ─ settle ─> config
//! .runner/config.yml ──────┘
//! ```
//!
//! Duty: find the three files, read them as strictly as policies, and settle them to one value for each key, with
//! the place that it came from. Non-goals: acting on a value; the part that it is about does. No variable of the
//! environment sets anything: `RUNNER_POLICY` is a choice of the person who types a command, and the command line reads it.
//!
//! | layer | where | may |
//! | --- | --- | --- |
//! | managed | `/etc/runner/config.yml`, root's alone | set everything, and ceilings for all users |
//! | user | `$XDG_CONFIG_HOME/runner/config.yml` | set everything but what is for the managed layer alone |
//! | project | `.runner/config.yml` of the workspace | tighten what holds by default, and choose what is shown |
//!
//! The managed layer wins over the user's, the user's over the project's. Trust boundary: the workspace is the
//! adversary's, so a project's file cannot loosen anything: what it says beyond that is an error, not ignored. One
//! finding in any file refuses everything. A file that is not there costs one failed open.

mod edit;
mod effective;
mod error;
mod figure;
mod flag;
mod key;
mod layer;
mod open;
mod read;
mod schema;
mod server;
mod settle;

pub use edit::{EditError, switched};
pub use effective::{Approvals, Breaker, Config, Limits, Pool, Sourced, ToolSettings, Undo};
pub use error::ConfigError;
pub use figure::{Figure, NONE, TABLE as FIGURES};
pub use flag::{Flag, TABLE as FLAGS};
pub use layer::{Layer, Source, path};
pub use read::{Read, read};
pub use schema::schema;
pub use server::{BETWEEN, Server, ServerName, ServerNameError, ServerSettings};
pub use settle::{load, load_files};

#[cfg(test)]
mod tests;
