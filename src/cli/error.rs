//! The one top error. Each part has its own error type beside the code that raises it; this
//! joins them and says for each what the exit code is, whose fault it was, and what to do next.
//!
//! Non-goal: text that holds everything. A message names the operation and the object, a hint the
//! next step.

use std::borrow::Cow;
use std::time::Duration;

use crate::agent::AgentError;
use crate::approvals::ApprovalError;
use crate::bench::BenchError;
use crate::call::stage::StagedError;
use crate::call::undo::UndoError;
use crate::call::{CallError, Details, ErrorObject, Told, ToldError};
use crate::config::ConfigError;
use crate::doctor::DoctorError;
use crate::error::{Failure, Retry};
use crate::exit::Ending;
use crate::mcp::{InstallError, ServeError, TokenError};
use crate::policy_files::PolicyError;
use crate::sys::HardenError;
use crate::tool::ToolError;
use crate::tool::scaffold::ScaffoldError;
use crate::workspace::WorkspaceError;

use super::policy::TrustRefused;
use super::{Bug, OutputError, UsageError};

/// Any error that ends a run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The command line is wrong.
    #[error(transparent)]
    Usage(#[from] UsageError),
    /// The process could not be made safe to run in.
    #[error(transparent)]
    Harden(#[from] HardenError),
    /// Our own output could not be written.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// No policy can be used.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// There is no workspace to work in.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// A policy was not pinned.
    #[error(transparent)]
    Trust(#[from] TrustRefused),
    /// A question was not answered.
    #[error(transparent)]
    Approval(#[from] ApprovalError),
    /// A call did not come to an outcome.
    #[error(transparent)]
    Call(Box<CallError>),
    /// A tool cannot be used.
    #[error(transparent)]
    Tool(Box<ToolError>),
    /// A tool was not made.
    #[error(transparent)]
    Scaffold(#[from] ScaffoldError),
    /// Nothing could be measured.
    #[error(transparent)]
    Bench(#[from] BenchError),
    /// The doctor came to no report.
    #[error(transparent)]
    Doctor(#[from] DoctorError),
    /// A call was not undone.
    #[error(transparent)]
    Undo(Box<UndoError>),
    /// Changes that were held back stay where they are.
    #[error(transparent)]
    Staged(#[from] StagedError),
    /// The MCP server cannot serve.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// The tokens of clients cannot be used as asked.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// No entry was written for a client.
    #[error(transparent)]
    Install(#[from] InstallError),
    /// A coding agent's call or configuration cannot be used.
    #[error(transparent)]
    Agent(Box<AgentError>),
    /// This program panicked.
    #[error(transparent)]
    Bug(#[from] Bug),
}

impl Error {
    /// The part's own error.
    #[must_use]
    pub fn failure(&self) -> &dyn Failure {
        match self {
            Self::Usage(error) => error,
            Self::Harden(error) => error,
            Self::Output(error) => error,
            Self::Policy(error) => error,
            Self::Config(error) => error,
            Self::Workspace(error) => error,
            Self::Trust(error) => error,
            Self::Approval(error) => error,
            Self::Call(error) => error.as_ref(),
            Self::Tool(error) => error.as_ref(),
            Self::Scaffold(error) => error,
            Self::Bench(error) => error,
            Self::Doctor(error) => error,
            Self::Undo(error) => error.as_ref(),
            Self::Staged(error) => error,
            Self::Serve(error) => error,
            Self::Token(error) => error,
            Self::Install(error) => error,
            Self::Agent(error) => error.as_ref(),
            Self::Bug(error) => error,
        }
    }

    /// How the run ends because of it.
    #[must_use]
    pub fn ending(&self) -> Ending {
        let failure = self.failure();
        Ending::of_kind(failure.kind(), failure.code())
    }

    /// The form for machines.
    #[must_use]
    pub fn told(&self) -> Told<'_> {
        let failure = self.failure();
        let wait = |time: Duration| Details::Wait {
            retry_after_ms: u64::try_from(time.as_millis()).unwrap_or(u64::MAX),
        };
        let object = ErrorObject {
            code: failure.code(),
            message: failure.to_string(),
            recoverable: failure.retry() == Retry::CanHelp,
            suggestion: failure.hint(),
            rule: None,
            stack: None,
            details: failure.retry_after().map(wait),
        };
        let error = ToldError {
            object: Cow::Owned(object),
            fault: Some(failure.fault()),
            findings: failure.findings(),
        };
        Told::of_error(failure.call(), &self.ending(), error)
    }
}

impl From<ToolError> for Error {
    fn from(error: ToolError) -> Self {
        Self::Tool(Box::new(error))
    }
}

impl From<AgentError> for Error {
    fn from(error: AgentError) -> Self {
        Self::Agent(Box::new(error))
    }
}

impl From<CallError> for Error {
    fn from(error: CallError) -> Self {
        Self::Call(Box::new(error))
    }
}

impl From<UndoError> for Error {
    fn from(error: UndoError) -> Self {
        Self::Undo(Box::new(error))
    }
}
