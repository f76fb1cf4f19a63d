//! The ids that the broker and the workspace use, as they are.
#![allow(dead_code, reason = "not everything is used here")]

#[path = "../../../src/ids/identity.rs"]
mod identity;
#[path = "../../../src/ids/tool_name.rs"]
mod tool_name;

pub use identity::Identity;
pub use tool_name::PERMISSIONS;
