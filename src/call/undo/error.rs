//! Why an undo did not happen.

use std::path::PathBuf;

use crate::call::CallError;
use crate::codes::Code;
use crate::error::{Failure, Fault, Retry};
use crate::exit::Kind;
use crate::store::StoreError;
use crate::undo::Obstacle;
use crate::workspace::WorkspaceError;

/// Why an undo did not happen.
#[derive(Debug, thiserror::Error)]
pub enum UndoError {
    /// The call changed nothing, or what it changed is not kept any more.
    #[error("there is nothing to undo of call {0}")]
    Nothing(String),
    /// Not everything is as the call left it, or was kept. Nothing was restored.
    #[error("call {0} cannot be undone, and nothing was restored{each}", each = each(.1))]
    Conflict(String, Vec<Obstacle>),
    /// The workspace is not there any more.
    #[error("the workspace {0} of that call cannot be used: {1}")]
    Workspace(PathBuf, WorkspaceError),
    /// A step failed after others had been done.
    #[error("{path} cannot be restored: {error}; {done} earlier step(s) were done")]
    Step {
        /// The undo's own call.
        call: String,
        /// The path.
        path: String,
        /// Why.
        #[source]
        error: std::io::Error,
        /// Steps that were done before it.
        done: usize,
    },
    /// The record could not be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The call could not be recorded.
    #[error(transparent)]
    Call(Box<CallError>),
}

/// Each obstacle on a line of its own.
fn each(obstacles: &[Obstacle]) -> String {
    obstacles.iter().map(|obstacle| format!("\n  {}: {}", obstacle.path, obstacle.why)).collect()
}

impl Failure for UndoError {
    fn code(&self) -> Code {
        match self {
            Self::Nothing(_) => Code::UndoNothing,
            Self::Conflict(..) => Code::UndoConflict,
            Self::Workspace(..) => Code::UndoWorkspace,
            Self::Step { .. } => Code::UndoFailed,
            Self::Store(error) => error.code(),
            Self::Call(error) => error.code(),
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Self::Nothing(_) => Kind::Usage,
            Self::Conflict(..) | Self::Workspace(..) | Self::Step { .. } => Kind::Broken,
            Self::Store(error) => error.kind(),
            Self::Call(error) => error.kind(),
        }
    }

    fn fault(&self) -> Fault {
        match self {
            Self::Nothing(_) | Self::Conflict(..) | Self::Workspace(..) => Fault::Usage,
            Self::Step { .. } => Fault::Engine,
            Self::Store(error) => error.fault(),
            Self::Call(error) => error.fault(),
        }
    }

    fn retry(&self) -> Retry {
        match self {
            Self::Store(error) => error.retry(),
            Self::Call(error) => error.retry(),
            Self::Nothing(_) | Self::Conflict(..) | Self::Workspace(..) | Self::Step { .. } => {
                Retry::CannotHelp
            }
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Nothing(_) => Some("`runner undo --list` shows what can be undone".to_owned()),
            Self::Conflict(call, _) => Some(format!(
                "restore what you want by hand; `runner undo {call} --dry-run` shows each step"
            )),
            Self::Workspace(..) => Some("put the folder back where it was".to_owned()),
            Self::Step { call, .. } => {
                Some(format!("`runner undo {call}` takes back the steps that were done"))
            }
            Self::Store(error) => error.hint(),
            Self::Call(error) => error.hint(),
        }
    }

    fn call(&self) -> Option<&str> {
        match self {
            Self::Step { call, .. } => Some(call),
            _ => None,
        }
    }
}

impl From<CallError> for UndoError {
    fn from(error: CallError) -> Self {
        Self::Call(Box::new(error))
    }
}
