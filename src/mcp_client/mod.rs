//! Tools of others: the client's end of the Model Context Protocol.
//!
//! ```text
//! runner                                     server, in a sandbox of its own
//!   | -- initialize ------------------------------> |
//!   | <------------------------- version, itself -- |
//!   | -- notifications/initialized ---------------> |
//!   | -- tools/list (cursor) ---------------------> |   until there is no cursor
//!   | <------------------------------------ tools - |
//!   | -- tools/call ------------------------------> |   only if the tool is what was remembered
//!   | <---------------------------------- content - |
//!   | -- end of standard input -------------------> |
//! ```
//!
//! Duty: one JSON message a line, over the standard streams of a server that somebody else runs for us; what a
//! server offers, remembered by what it was made from; what it answers, in our own form of a value. Non-goals: starting
//! a server (a command like any other: [`crate::call::mcp`] does), what a tool means to the registry ([`crate::tool`]),
//! resources, prompts, sampling, and every transport but standard streams.
//!
//! Trust boundary: everything that a server says is the adversary's. Lines, messages, pages and tools are bounded before
//! they are kept, JSON is read strictly, an answer to a question that nobody asked ends the talk, and what a server asks
//! of us is refused. A client library was measured and left out: it adds two megabytes to the program for four messages,
//! tells answers apart by their shape, keeps the last of duplicate keys, loses a whole list to one bad tool, and keeps lists
//! for as long as the server says.

mod answer;
mod client;
mod error;
mod identity;
mod lines;
mod memory;
mod message;
mod offer;

pub use answer::{Answer, Attachment};
pub use client::{Client, PROTOCOL, Peer};
pub use error::McpError;
pub use identity::{Identity, Input, Moved};
pub use lines::{MAX_BYTES, MAX_LINE, MAX_MESSAGES};
pub use memory::{Asked, Known, Remembered, remember, remembered};
pub use offer::{Change, MAX_TOOLS, Offered, changes};

#[cfg(test)]
mod tests;
