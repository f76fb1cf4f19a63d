//! The talk between the host program and the compiler of tools: the words it is started with, one job, one answer.
//!
//! Duty: what both sides must agree on, and a tool's folder as both look at it. Non-goals: compiling, which is the
//! program of this crate, and starting it, which is the host's `tool::compile`. Trust boundary: an answer comes
//! from a process that has read foreign bytes, and is read strictly.

pub mod folder;
pub mod job;
pub mod limits;
pub mod outline;

/// The first word of a compiler that bundles; folder, device and inode follow.
pub const BUNDLE: &str = "bundle";

/// The only word of one that parses.
pub const PARSE: &str = "parse";
