//! The life of a tool call, phase by phase.
//!
//! ```text
//! ToolRequest --prepare--> Prepared --run--> CallResult
//!   find, compile,           approve, verify the source again, record,
//!   describe, validate,      sandbox and broker side by side, check the result, record
//!   policy within permissions
//! ```
//!
//! Duty: that each phase comes before the next, and that what was checked is what runs: the code that is
//! sent into the sandbox was compiled from the very bytes whose digest is in the record. A built-in tool is a part of this
//! program: it needs no compiler and no sandbox, and talks to the same broker. Non-goals: what
//! each phase does; its part knows. Trust boundary: the tool's file and folder are the adversary's.

mod admission;
mod approval;
mod attempts;
mod authority;
mod consent;
mod describe;
mod entries;
mod error;
mod exec;
mod in_process;
mod look;
mod memory;
mod outcome;
mod prejudge;
mod prepare;
mod program;
mod recorded;
mod run;
mod sandbox;
mod server;
mod shortfalls;
mod tries;
mod unreadable;
mod variables;
mod warm;
mod within;

pub use attempts::Attempt;
pub use entries::{Entry, State, entries, lacks};
pub use error::ToolCallError;
pub use look::{Health, Looker};
pub use memory::Memory;
pub use prepare::{Given, Prepared, ToolRequest};
pub use program::Program;
pub use run::{Front, run};
pub use sandbox::tool_order;
pub use warm::warm;
