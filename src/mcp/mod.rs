//! FRONT: the server of the Model Context Protocol, through which any client runs commands and tools.
//!
//! ```text
//!  standard streams, unix socket          TCP
//!        | lines                           | http (token, host, origin, session)
//!        +----------> serve (rmcp) <-------+
//!                        |
//!          run_command, tools of the registry, read_output, cancel, explain
//!                        |
//!        calls: a table of running calls by handle, each in a task of its own
//!                        |
//!                 call::run, call::tool::run
//! ```
//!
//! Duty: requests of the protocol become calls, results become answers that a model can act on. Both eras of
//! the protocol are served by one handler: with sessions (2025-06-18, 2025-11-25) and without (2026-07-28). Non-goals: what
//! may run and how (`call` decides that, as for every front), and the client of other servers (`mcp_client`).
//!
//! Trust boundary: every byte of a client is the adversary's. Lines, bodies, numbers of connections, calls and kept
//! output are bounded; JSON is read strictly; who calls is what the transport proves, and what a client says of itself
//! is only recorded. Policy, workspace and engine are those of the person who started the server.

mod answer;
mod approve;
mod arguments;
mod calls;
mod command;
mod error;
mod events;
mod handler;
mod history;
mod host;
mod http;
mod install;
mod lines;
mod output;
mod own;
mod registry;
mod resources;
mod seal;
mod serve;
mod tokens;
mod who;
mod work;

pub use error::{InstallError, ServeError, TokenError};
pub use host::{ANSWER_WITHIN, Host, Settings, Words};
pub use http::{Gate, Reach, bind, serve_http};
pub use install::{Agent, Installed, Scope, install};
pub use lines::{MAX_LINE, serve_lines, serve_socket, serve_stdio};
pub use serve::Client;
pub use tokens::{TokenName, TokenRow, Tokens};
pub use who::Who;
