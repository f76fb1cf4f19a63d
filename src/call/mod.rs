//! The life of a call, phase by phase. Every front (command line, later MCP) comes through here.
//!
//! ```text
//! Request --decide--> Decided --ask--> refuse --> CallResult          denied, or not approved
//!                        |
//!                        +--record start, wait for a place, plan, run, record end--> CallResult
//! ```
//!
//! Duty: the order of the phases, and that none is left out: nothing runs that was not decided, and
//! nothing runs whose start was not recorded. Non-goals: what each phase does; its part knows.

mod approval;
mod clock;
mod context;
mod details;
mod error;
mod exchanges;
mod gate;
mod gc;
mod inspection;
pub mod launch;
mod line;
pub mod mcp;
mod metadata;
mod network;
mod open_engine;
mod place;
mod plan;
pub(crate) mod record;
mod request;
mod result;
mod result_json;
mod run;
mod running;
mod schema;
mod script;
mod shortfall;
pub mod stage;
mod supply;
pub mod tool;
pub mod undo;
mod warm;

pub use approval::{About, Always, Approver, Asking, Question, Reply, Spent, Unapproved};
pub use context::{Context, Notices};
pub use details::{Details, LastWords, Source, Thrown};
pub use error::CallError;
pub use gc::{Swept, gc};
pub use metadata::Metadata;
pub use request::{Approval, Command, Decided, OnHeld, Request, Variables};
pub use result::{CallDecision, CallResult, ErrorObject, Stream, ToolRef, plan_object};
pub use result_json::{Detail, Told, ToldError};
pub use run::{DryRun, Output, dry_run, run};
pub use running::{Cancelled, Running, cancel, running};
pub use schema::schema;
pub use shortfall::{Kind as ShortfallKind, Shortfall, line as shortfall_line};
pub use supply::Warmth;
pub use warm::{Warmed, warm};
