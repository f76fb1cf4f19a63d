//! Everyday work: what people and agents do all day works in a sandbox as it does outside.

pub mod caller;
mod git;
mod install;
mod lines;
mod packaged;
mod programs;
mod projects;
mod shortfall;
mod streams;

pub use caller::{Caller, ORDINARY, engine_socket};
