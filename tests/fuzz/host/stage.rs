//! Walk and judge of a stage, as they are.
#![allow(dead_code, unused_imports, reason = "not everything is used here")]

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
