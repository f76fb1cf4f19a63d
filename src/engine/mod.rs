//! What makes sandboxes.
//!
//! Duty: one trait, [`Engine`], from probing to sweeping; an implementation a folder; and the types of what
//! an engine is asked for ([`plan`]). Non-goals: working a plan out ([`crate::sandbox`] does) and what happens
//! in a sandbox (the guest and the run loop). Trust boundary:
//! an engine is as powerful as root on its machine, so it gets settings from one function alone and
//! its words about what it did are checked by the guest before a command is sent.

pub mod claim;
pub(crate) mod container_limits;
pub mod docker;
mod error;
pub mod guest;
mod label;
pub mod plan;
pub mod runtime;
pub mod runtime_kind;
mod sweep;
mod traits;

/// The engines that there are.
pub const NAMES: [&str; 1] = ["docker"];

pub use docker::{Docker, Line};
pub use error::EngineError;
pub use label::{Labels, Purpose};
pub use sweep::{remove_labelled, sweep};
pub use traits::{
    Attached, BoxFuture, Chunk, Engine, Facts, FileSystem, Found, Prepared, SandboxId, State,
    UserNamespace,
};
