//! The lists of a policy, the protected names and temporary names, as they are.
#![allow(dead_code, reason = "not everything is used here")]

#[path = "../../../src/workspace/grants.rs"]
pub mod grants;
#[path = "../../../src/workspace/names.rs"]
pub(crate) mod names;
#[path = "../../../src/workspace/protected/mod.rs"]
pub mod protected;
#[path = "../../../src/workspace/temp.rs"]
pub(crate) mod temp;
