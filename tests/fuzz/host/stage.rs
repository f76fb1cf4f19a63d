//! Walk and judge of a stage, as they are.
#![allow(dead_code, unused_imports, reason = "not everything is used here")]

#[path = "../../../src/stage/access.rs"]
pub mod access;
#[path = "../../../src/stage/alias.rs"]
mod alias;
#[path = "../../../src/stage/around.rs"]
pub mod around;
#[path = "../../../src/stage/change.rs"]
pub mod change;
#[path = "../../../src/stage/gitconfig.rs"]
pub mod gitconfig;
#[path = "../../../src/stage/handles.rs"]
mod handles;
#[path = "../../../src/stage/judge.rs"]
pub mod judge;
#[path = "../../../src/stage/layer.rs"]
pub mod layer;
#[path = "../../../src/stage/leads.rs"]
pub mod leads;
#[path = "../../../src/stage/led.rs"]
pub mod led;
#[path = "../../../src/stage/merged.rs"]
pub mod merged;
#[path = "../../../src/stage/reasons.rs"]
mod reasons;
#[path = "../../../src/stage/repository.rs"]
pub mod repository;
#[path = "../../../src/stage/walk.rs"]
pub mod walk;
#[path = "../../../src/stage/worktree.rs"]
pub mod worktree;

/// A stand-in: the real one knows the store, which ends applies that were interrupted. No other call
/// changes the folder of a target.
pub mod turn {
    use std::path::{Path, PathBuf};
    use std::time::Duration;

    #[derive(Debug)]
    pub struct Turn(());

    #[derive(Debug, Clone, Copy)]
    pub enum TurnError {
        Busy((), ()),
        Interrupted(()),
        Io((), (), ()),
    }

    impl std::fmt::Display for TurnError {
        fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            Ok(())
        }
    }

    impl Turn {
        pub fn take(_: &Path, _: &[PathBuf], _: Duration) -> Result<Self, TurnError> {
            Ok(Self(()))
        }
    }
}
