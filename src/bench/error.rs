//! Why nothing could be measured.

use std::io;

use crate::call::CallError;
use crate::codes::Code;
use crate::engine::EngineError;
use crate::error::{Failure, Fault};
use crate::exit::Kind;

/// Why nothing could be measured.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The engine.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A call of this program, from inside.
    #[error(transparent)]
    Call(Box<CallError>),
    /// A command that must go well did not.
    #[error("`{line}` {how}")]
    Command {
        /// What was run.
        line: String,
        /// How it ended.
        how: String,
    },
    /// Something on this machine failed.
    #[error("cannot {0}: {1}")]
    Local(&'static str, #[source] io::Error),
}

impl From<CallError> for BenchError {
    fn from(error: CallError) -> Self {
        Self::Call(Box::new(error))
    }
}

impl Failure for BenchError {
    fn code(&self) -> Code {
        match self {
            Self::Engine(error) => error.code(),
            Self::Call(error) => error.code(),
            Self::Command { .. } => Code::BenchCommand,
            Self::Local(..) => Code::LocalError,
        }
    }

    fn kind(&self) -> Kind {
        Kind::Broken
    }

    fn fault(&self) -> Fault {
        match self {
            Self::Engine(error) => error.fault(),
            Self::Call(error) => error.fault(),
            Self::Command { .. } | Self::Local(..) => Fault::Engine,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Engine(error) => error.hint(),
            Self::Call(error) => error.hint(),
            Self::Command { .. } => Some("run it by hand to see more".to_owned()),
            Self::Local(..) => None,
        }
    }
}
