//! The command line: one short file a subcommand.
//!
//! Duty: read arguments into what was typed ([`args`]), resolve them, call the part that does the
//! work, and print. Non-goal: logic. Whatever decides or runs lives in the parts below, so that
//! other fronts share it. Trust: whoever types the options is trusted up to the managed layer; what
//! is shown (command lines, names, reasons, output) is not, and passes through [`visible`].

mod agent;
mod approvals;
mod args;
mod ask;
mod audit;
mod bench;
mod bug;
mod calls;
mod config;
mod diff_view;
mod dispatch;
mod doctor;
mod engine;
mod error;
mod event_loop;
mod exec;
mod findings;
mod front;
mod hook;
mod later;
mod mcp;
mod plan_view;
pub mod policy;
mod pool;
mod printer;
mod schema;
mod stage;
mod status;
mod style;
mod table;
mod terminal;
mod terminal_sink;
mod tool;
mod undo;
mod usage;
mod visible;

pub use args::Cli;
pub use bug::Bug;
pub use dispatch::{report_and_end, run};
pub use error::Error;
pub use printer::{Format, OutputError, Printer};
pub use terminal::Terminal;
pub use usage::UsageError;
pub use visible::{visible, visible_block};
