//! The workspace, walks, protected paths and temporary files, as they are.
#![allow(dead_code, unused_imports, reason = "not everything is used here")]

#[path = "../../../src/workspace/find.rs"]
mod find;
#[path = "../../../src/workspace/grants.rs"]
pub mod grants;
#[path = "../../../src/workspace/lists.rs"]
pub mod lists;
#[path = "../../../src/workspace/names.rs"]
pub(crate) mod names;
#[path = "../../../src/workspace/protected/mod.rs"]
pub mod protected;
#[path = "../../../src/workspace/temp.rs"]
pub(crate) mod temp;
#[path = "../../../src/workspace/walk.rs"]
pub mod walk;

pub use find::{Found, OthersMay, Owner, Workspace, WorkspaceError};

/// A stand-in: the real one reads the configuration and asks the engine for its cache. The workspace of
/// this target is a new temporary folder, which holds no folder of the program.
mod own_folders {
    use std::path::{Path, PathBuf};

    use crate::ids::Identity;

    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct OwnFolder {
        pub path: PathBuf,
        pub variable: Option<&'static str>,
    }

    pub(super) fn own_folders(_: &crate::environment::Environment) -> Vec<OwnFolder> {
        Vec::new()
    }

    pub(super) fn overlap(_: &Path, _: Identity, _: Vec<OwnFolder>) -> Option<OwnFolder> {
        None
    }
}
