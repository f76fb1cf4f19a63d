//! `runner`: run commands and tools that nobody trusts. The written map.
//!
//! A call is decided by a policy, runs in a fresh sandbox, and is told apart by its status.
//!
//! ```text
//! argv ── cli ── policy: what does it do, may it? ── allow | ask | deny
//! ```
//!
//! # Parts, in the order in which a call meets them
//!
//! - [`cli`]: reads the command line, prints. One short file a subcommand.
//! - [`runner_policy`] (`src/policy`, a crate without I/O): reads policies and commands, decides.
//! - [`exit`], [`error`]: how a run ends; one table of codes, one top error.
//! - [`sandbox`]: from decision to container: mounts, masks, limits, user.
//! - [`sys`]: the only unsafe code and raw system calls.
//!
//! # Every file and socket we touch
//!
//! - reads `/proc/self/auxv` and `/proc/self/fd` once, at the start, to make the process safe.
//! - writes to standard output and standard error, and to the descriptor of `--status-fd`.

pub mod audit;
pub mod call;
pub mod cli;
pub mod engine;
pub mod error;
pub mod exit;
pub mod policies;
pub mod sandbox;
pub mod store;
pub mod sys;
