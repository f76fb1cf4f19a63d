//! Servers of tools, run for one talk each.
//!
//! ```text
//! server's definition --decide--> Decided --ask--> refuse
//!                                    |
//!                                    +-- start record, sandbox, talk, end record
//! ```
//!
//! Duty: that a server is a command like any other: its words are decided by a policy, asked about where the policy asks,
//! recorded, and run in a sandbox of their own that ends with the talk. Non-goals: what is said ([`crate::mcp`]), what a
//! tool of a server means to the registry ([`crate::tool`]). Trust boundary: the server is the adversary. It sees what its
//! policy shows to a command, and no more.

mod refresh;
mod talk;

pub(super) use refresh::policy_of;
pub use refresh::{Failed, Refresh, Refreshed, Servers};
pub(super) use talk::{Site, Spoken, Talker, broke, converse, decide};
