//! The lists of a policy and the protected names, as they are.
#![allow(dead_code, reason = "not everything is used here")]

#[path = "../../../src/workspace/grants.rs"]
pub mod grants;
#[path = "../../../src/workspace/protected.rs"]
pub mod protected;
