//! The tools that are part of this program.
//!
//! Duty: useful work with files, code, git, commands and the net, without Node and without a sandbox for the tool
//! itself. Non-goals: any power. A built-in tool is a function that talks to the broker over the same frames as a custom
//! one ([`crate::broker::client`]): policy, permissions, limits, records, undo and approvals are those of every tool,
//! and none has a way of its own. Its commands run in sandboxes. Trust boundary: the code is ours, its arguments and
//! everything that it reads are not; sizes and work are bounded before they are spent.
//!
//! Each tool is a file, and beside it stands its definition, in the form of every YAML tool, without `code`.

mod analyze_dependencies;
mod bash_execution;
mod command;
mod file_operations;
mod file_search;
mod git;
mod git_commit;
mod intent;
mod list;
mod npm_install;
mod parse_typescript;
mod problem;
mod rest_api_call;
mod type_check;
mod validate_json;

pub use intent::Intent;
pub use list::{ALL, BuiltIn, find};
