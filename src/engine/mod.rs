//! What makes sandboxes.
//!
//! Duty: one trait, [`Engine`], from probing to sweeping; an implementation a folder; and the types of what
//! an engine is asked for ([`plan`]). Code outside of this part names no implementation: [`open`](fn@open) finds the engine of
//! a [`Choice`], [`at`] the one at an [`Address`]. Non-goals: working a plan out ([`crate::sandbox`] does) and what happens
//! in a sandbox (the guest and the run loop). Trust boundary:
//! an engine is as powerful as root on its machine, so it gets settings from one function alone and
//! its words about what it did are checked by the guest before a command is sent.

mod address;
mod choice;
pub(crate) mod container_limits;
pub mod docker;
mod embedded;
mod error;
pub mod guest;
mod holders;
mod label;
mod lifeline;
mod open;
pub mod plan;
pub mod runtime;
pub mod runtime_kind;
pub mod seccomp;
mod sweep;
mod traits;

pub use address::{Address, NoAddress};
pub use choice::{Choice, EngineName, UnknownEngine};
pub use embedded::hold;
pub use error::EngineError;
pub use holders::{Holder, Holders};
pub use label::{Labels, Purpose};
pub use lifeline::{Lifeline, REQUEST_WAIT};
pub use open::{Variable, at, cache_folder, open, open_all};
pub use sweep::{remove_labelled, sweep};
pub use traits::{
    Attached, BoxFuture, Chunk, Connected, Engine, Facts, FileSystem, Found, Hold, Life, Part,
    Prepared, SandboxId, Spec, State, UserNamespace, Waits,
};
