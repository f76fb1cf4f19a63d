//! The command line: one short file a subcommand.
//!
//! Duty: read arguments into what was typed ([`args`]), resolve them, call the part that does the
//! work, and print. Non-goal: logic. All that decides or runs is in the parts below, which the
//! other fronts share. Trust: the person who types the options is trusted up to the managed layer.
//! Text that is shown (command lines, names, reasons, output) is not, and passes through [`visible`].

mod agent;
mod approvals;
mod args;
mod ask;
mod audit;
mod bench;
mod bug;
mod calls;
mod completions;
mod config;
mod diff_view;
mod dispatch;
mod doctor;
mod engine;
mod error;
mod event_loop;
mod exec;
mod findings;
mod first_steps;
mod front;
#[cfg(test)]
mod help_tests;
mod hook;
mod later;
mod man;
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
mod version;
mod visible;

pub use args::Cli;
pub use bug::Bug;
pub use dispatch::{report_and_end, run};
pub use error::Error;
pub use printer::{Format, OutputError, Printer};
pub use terminal::Terminal;
pub use usage::UsageError;
pub use visible::{visible, visible_block};
