//! The caller's tree: the directory of a call, whatever runs in it.
//!
//! Duty: find the workspace and hold it open; walk and survey it, and remember what was seen; know
//! which names in it are protected, where its git folders are, and what is mounted below it; give a
//! file its name once it is complete. Non-goals: containers and mounts ([`crate::sandbox`] plans them). Trust boundary: everything in the tree is
//! the adversary's. It is opened below one handle, and no link is followed.

pub mod attributes;
mod binding;
mod find;
pub mod gitdirs;
pub mod grants;
pub mod lists;
mod look;
mod memory;
mod memory_file;
pub mod mountinfo;
pub(crate) mod names;
mod own_folders;
mod pages;
pub mod protected;
pub mod survey;
pub(crate) mod temp;
pub mod walk;

pub(crate) use find::lets_in;
pub use find::{Found, OthersMay, Owner, Workspace, WorkspaceError};
