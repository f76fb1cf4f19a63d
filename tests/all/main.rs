//! The one integration test binary. Each module has a purpose; what they share is in `support`.
#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "clippy.toml frees test functions; this frees what they share"
)]

mod aborted;
mod agents;
mod answers;
mod approvals;
mod audit;
mod cases;
mod cli;
mod compile;
mod completions;
mod config;
mod crowd;
mod deaf_engine;
mod death;
mod docs;
mod doctor;
mod embedded;
mod engine;
mod errors;
mod escape;
mod everyday;
mod gates;
mod hooks;
mod hosted;
mod image;
mod layers;
mod ledger;
mod limits;
mod line;
mod mcp_server;
mod network;
mod own_engine;
mod policy;
mod pool;
mod queue;
mod refused;
mod release;
mod results;
mod slow_engine;
mod stage;
mod support;
mod tools;
mod tracked;
mod unapproved;
mod waiting;
mod words;
