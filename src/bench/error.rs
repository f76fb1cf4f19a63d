//! Why nothing could be measured.

use std::fmt;
use std::io;

use crate::call::CallError;
use crate::engine::EngineError;
use crate::error::{Failure, Fault};
use crate::exit::Kind;

/// Why nothing could be measured.
#[derive(Debug)]
pub enum BenchError {
    /// The engine.
    Engine(EngineError),
    /// A call of this program, from inside.
    Call(Box<CallError>),
    /// A command that must go well did not.
    Command {
        /// What was run.
        line: String,
        /// How it ended.
        how: String,
    },
    /// Something on this machine failed.
    Local(&'static str, io::Error),
}

impl fmt::Display for BenchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Engine(error) => error.fmt(f),
            Self::Call(error) => error.fmt(f),
            Self::Command { line, how } => write!(f, "`{line}` {how}"),
            Self::Local(what, error) => write!(f, "cannot {what}: {error}"),
        }
    }
}

impl std::error::Error for BenchError {}

impl From<EngineError> for BenchError {
    fn from(error: EngineError) -> Self {
        Self::Engine(error)
    }
}

impl From<CallError> for BenchError {
    fn from(error: CallError) -> Self {
        Self::Call(Box::new(error))
    }
}

impl Failure for BenchError {
    fn code(&self) -> &'static str {
        match self {
            Self::Engine(error) => error.code(),
            Self::Call(error) => error.code(),
            Self::Command { .. } => "bench_command",
            Self::Local(..) => "local_error",
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
