//! Why a tool call did not come to a result.

use runner_policy::finding::Finding;

use crate::codes::Code;
use crate::error::{Failure, Fault, Retry};
use crate::exit::Kind;
use crate::tool::ToolError;
use crate::tool::compile::CompileError;

/// A phase that is a tool's own failed.
#[derive(Debug, thiserror::Error)]
pub enum ToolCallError {
    /// There is no such tool, it is broken, or its arguments do not fit.
    #[error(transparent)]
    Tool(#[from] ToolError),
    /// It cannot be compiled, or it has changed since.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// A module did not tell what it is.
    #[error("the tool {name} did not describe itself: {why}")]
    NotDescribed {
        /// The tool.
        name: String,
        /// Why.
        why: String,
    },
    /// A module did not tell what it is in the time that the call may take.
    #[error("the tool {name} did not describe itself in time")]
    NotDescribedInTime {
        /// The tool.
        name: String,
    },
    /// A tool that we ship could not be put where it can be compiled.
    #[error("cannot lay out the tools that we ship: {0}")]
    Shipped(#[source] std::io::Error),
}

impl ToolCallError {
    fn inner(&self) -> Option<&dyn Failure> {
        match self {
            Self::Tool(error) => Some(error),
            Self::Compile(error) => Some(error),
            Self::NotDescribed { .. } | Self::NotDescribedInTime { .. } | Self::Shipped(_) => None,
        }
    }
}

impl Failure for ToolCallError {
    fn code(&self) -> Code {
        match (self.inner(), self) {
            (Some(inner), _) => inner.code(),
            (None, Self::Shipped(_)) => Code::LocalError,
            (None, Self::NotDescribedInTime { .. }) => Code::Timeout,
            (None, _) => Code::ToolDescription,
        }
    }

    fn kind(&self) -> Kind {
        match (self.inner(), self) {
            (Some(inner), _) => inner.kind(),
            (None, Self::NotDescribedInTime { .. }) => Kind::Timeout,
            (None, _) => Kind::Broken,
        }
    }

    fn fault(&self) -> Fault {
        self.inner().map_or(Fault::Command, Failure::fault)
    }

    fn retry(&self) -> Retry {
        self.inner().map_or(Retry::CannotHelp, Failure::retry)
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::NotDescribed { name, .. } => Some(format!(
                "a module exports `tool` with a name, a description, parameters and execute; try: runner tool check {name}"
            )),
            Self::NotDescribedInTime { .. } => Some(
                "look whether the engine answers, or give it more time with --timeout".to_owned(),
            ),
            _ => self.inner().and_then(Failure::hint),
        }
    }

    fn findings(&self) -> &[Finding] {
        self.inner().map_or(&[], Failure::findings)
    }
}
