//! Why a workspace cannot be shown as granted.

use std::io;
use std::path::PathBuf;

use super::covers::CoverError;
use crate::workspace::walk::WalkError;

/// Why a workspace cannot be shown as granted.
#[derive(Debug, thiserror::Error)]
pub enum MountError {
    /// More file systems below the workspace than are mounted.
    #[error(
        "more than {0} file systems are mounted below the workspace; unmount some, or work in a \
         folder that holds fewer"
    )]
    TooMany(usize),
    /// A source cannot be opened.
    #[error("cannot open {0}: {1}")]
    Open(PathBuf, #[source] io::Error),
    /// The place to start from is hidden by the policy.
    #[error(
        "the policy hides {0}, where the command should start; start it elsewhere in the \
         workspace"
    )]
    StartHidden(PathBuf),
    /// The covers cannot be made.
    #[error(transparent)]
    Covers(#[from] CoverError),
    /// The walk did not end.
    #[error(transparent)]
    Walk(#[from] WalkError),
}
