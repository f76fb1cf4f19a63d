//! Decisions: what a command does, and whether a policy lets it.
//!
//! Pure: text in, decision out. No file is opened, no variable read, no clock asked; `clippy.toml`
//! beside this file holds that line. The caller brings the policies' text, the folder and the moment.
//!
//! ```text
//! policy text --load--> Policy --effective--> Effective ---------+
//!               yaml,   (model)   extends, within                |
//!               finding                                          v
//! argv, line --reading--> levels with effects, plan ---------> decide --> Decision
//!               catalog (grammar), shell, word                   |          code, rule, grant, plan
//!                                          paths, net, pattern --+
//! ```
//!
//! | part | duty |
//! | --- | --- |
//! | [`load`], [`yaml`], [`written`], [`finding`] | strict reading of policy files; every error with its place |
//! | [`packed`] | shipped policies, read at build time |
//! | [`effective`] | composition: `extends` is union, `within` is intersection |
//! | [`grammar`], [`catalog`] | how programs read their arguments |
//! | [`shell`], [`word`], [`reading`] | from a line or argv to what it does, level by level |
//! | [`plan`] | what the guest executes: exactly what was read |
//! | [`decide`], [`pattern`], [`paths`], `procfs`, `spelled`, [`net`], [`variables`] | the answer |
//! | [`acts`] | what a question about a command is about |
//! | [`check`] | a policy's own examples and tests |
//! | [`limits`] | the table of limits |

pub mod acts;
pub mod catalog;
pub mod check;
pub mod decide;
pub mod effect;
pub mod effective;
pub mod finding;
pub mod grammar;
pub mod limits;
pub mod lists;
pub mod load;
pub mod model;
pub mod net;
pub mod packed;
pub mod paths;
pub mod pattern;
pub mod plan;
mod procfs;
pub mod reading;
pub mod shell;
mod spelled;
pub mod variables;
pub mod word;
pub mod written;
pub mod yaml;

pub use decide::{
    Code, Decision, Explanation, Grant, Network, Query, What, connect, decide, dial,
    dial_connection, explain, may, reachable, send,
};
pub use effective::{Effective, PolicySet};
pub use load::{Origin, Source, parse};
pub use model::{Policy, Verdict};
