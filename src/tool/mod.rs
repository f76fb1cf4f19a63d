//! Tools: what they are, where they are found, what they take and give, and what they ask for.
//!
//! ```text
//! places, --find--> library --> tool --read (YAML, MCP) or describe (module)--> definition
//! servers
//!                                                     |        |       |
//!                                              permissions   schema   code --compile--> module
//!                                                  |            |
//!                              policy --narrow--> policy     arguments, result: checked
//! ```
//!
//! Duty: read foreign definitions into types that carry their checks. Non-goals: running
//! ([`crate::call`]), requests of a running tool (the broker). Trust boundary: tools of a workspace
//! are the adversary's. Nothing of a tool runs here; what it asks for only narrows the policy that
//! its caller has chosen; sizes, depths and work are bounded before they are spent.

pub mod arguments;
mod asked;
pub mod builtin;
mod code;
pub mod compile;
mod data;
mod definition;
mod describe;
mod error;
mod estimates;
mod export;
mod folder;
mod grade;
mod library;
mod mcp;
mod members;
mod metadata;
mod origin;
mod permissions;
mod read;
mod retry;
pub mod scaffold;
pub mod schema;
mod search;
mod shipped;
mod tokens;
mod words;

pub use asked::{Asked, asked};
pub use code::Code;
pub use definition::{Body, Definition, Described, Tokens};
pub use describe::{DescribeError, from_description, glimpse};
pub use error::ToolError;
pub use estimates::{Estimates, reported as reported_cost, shown as shown_cost};
pub use export::{ExportFormat, export};
pub use folder::Form;
pub use grade::{Conformance, Grade, Point};
pub use library::{Broken, Library, NotAsked, Tool, Unasked};
pub use mcp::FromServer;
pub use metadata::{Auth, Capability, Cost, Metadata};
pub use origin::{Origin, Switch};
pub use permissions::{CommandsWrite, Permissions};
pub use read::parse;
pub use retry::{RetryPolicy, WORDS as RETRY_WORDS};
pub use schema::{Schema, Violation};
pub use search::Question;
pub use shipped::lay_out_shipped;
pub use tokens::{Counts, count_tokens};
pub use words::{AuthKind, Category, CostModel, Removal, Risk, Runtime, Tier, Waiver};
