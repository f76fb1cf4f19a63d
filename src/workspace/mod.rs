//! The caller's tree: the directory of a call, whatever runs in it.
//!
//! Duty: find the workspace and hold it open; walk and survey it, and remember what was seen; know
//! which names in it are protected, where its git folders are, which of its files have several names,
//! and what is mounted below it; make missing folders in it and
//! remove them again; give a file its name once it is complete. Non-goals:
//! containers and mounts ([`crate::sandbox`] plans them). Trust boundary: everything in the tree is
//! the adversary's. It is opened below one handle, and no link is followed.

mod binding;
pub mod claims;
mod find;
pub mod folders;
pub mod gitdirs;
pub mod grants;
pub(crate) mod hardlinks;
mod look;
mod memory;
mod memory_file;
pub mod mountinfo;
mod names;
mod own_folders;
mod pages;
pub mod protected;
pub mod quarantine;
pub mod survey;
pub(crate) mod temp;
pub mod walk;

pub(crate) use find::lets_in;
pub use find::{Found, OthersMay, Owner, Workspace, WorkspaceError};
