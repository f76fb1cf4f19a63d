//! Ids and names that every part uses: of calls, tools, processes and files.
//!
//! Duty: one constructor each, so that a value of the type is safe wherever it is written. Nothing here
//! imports another part but [`crate::sys`].

mod call_id;
mod identity;
mod owner;
pub mod tool_name;

pub use call_id::CallId;
pub use identity::Identity;
pub use owner::Owner;
pub use tool_name::{NameError, PERMISSIONS, ToolName};
