//! What makes sandboxes.
//!
//! Duty: one trait, [`Engine`], from probing to sweeping; an implementation a folder. Non-goals: what a
//! sandbox may do (the plan says) and what happens in it (the guest and the run loop). Trust boundary:
//! an engine is as powerful as root on its machine, so it gets settings from one function alone and
//! its words about what it did are checked by the guest before a command is sent.

pub mod docker;
mod error;
pub mod guest;
mod label;
pub mod runtime;
mod sweep;
mod traits;

pub use docker::{Docker, Line};
pub use error::EngineError;
pub use label::{CallId, Labels, Owner, Purpose, now};
pub use sweep::{remove_labelled, sweep};
pub use traits::{
    Attached, BoxFuture, Chunk, Engine, Facts, FileSystem, Found, Prepared, SandboxId, State,
    UserNamespace,
};
