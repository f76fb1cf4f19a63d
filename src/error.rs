//! The one top error. Each part has its own error type beside the code that raises it; this
//! joins them and says for each what the exit code is, whose fault it was, and what to do next.
//!
//! Non-goal: text that holds everything. A message names the operation and the object, a hint the
//! next step.

use std::fmt;
use std::time::Duration;

use runner_policy::finding::Finding;
use serde::Serialize;

use crate::approvals::ApprovalError;
use crate::bench::BenchError;
use crate::call::CallError;
use crate::cli::policy::TrustRefused;
use crate::cli::{Bug, OutputError, UsageError};
use crate::config::ConfigError;
use crate::exit::{Ending, Kind};
use crate::policies::PolicyError;
use crate::sandbox::workspace::WorkspaceError;
use crate::sys::HardenError;
use crate::tool::ToolError;
use crate::tool::scaffold::ScaffoldError;
use crate::undo::UndoError;

/// Who has to change something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// Whoever typed the command line.
    Usage,
    /// Whoever wrote or has to trust the policy.
    Policy,
    /// Whoever wrote the configuration.
    Configuration,
    /// The command or tool itself.
    Command,
    /// The engine that makes sandboxes, or the host it runs on.
    Engine,
    /// This program.
    Runner,
}

/// Whether the same call can succeed later without a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// The cause may pass by itself.
    CanHelp,
    /// Something has to change first.
    CannotHelp,
}

/// What every error of a part says about itself.
pub trait Failure: fmt::Display {
    /// A stable name for machines, in snake case.
    fn code(&self) -> &'static str;
    /// What it means for the exit code.
    fn kind(&self) -> Kind;
    /// Who has to change something.
    fn fault(&self) -> Fault;
    /// Whether trying again can help.
    fn retry(&self) -> Retry {
        Retry::CannotHelp
    }
    /// How long to wait before that, where it is known.
    fn retry_after(&self) -> Option<Duration> {
        None
    }
    /// The next step, in one line.
    fn hint(&self) -> Option<String> {
        None
    }
    /// The id of the call that it ended, if one had started.
    fn call(&self) -> Option<&str> {
        None
    }
    /// What is wrong in files, each with its place.
    fn findings(&self) -> &[Finding] {
        &[]
    }
}

/// Any error that ends a run.
#[derive(Debug)]
pub enum Error {
    /// The command line is wrong.
    Usage(UsageError),
    /// The process could not be made safe to run in.
    Harden(HardenError),
    /// Our own output could not be written.
    Output(OutputError),
    /// No policy can be used.
    Policy(PolicyError),
    /// The configuration cannot be used.
    Config(ConfigError),
    /// There is no workspace to work in.
    Workspace(WorkspaceError),
    /// A policy was not pinned.
    Trust(TrustRefused),
    /// A question was not answered.
    Approval(ApprovalError),
    /// A call did not come to an outcome.
    Call(Box<CallError>),
    /// A tool cannot be used.
    Tool(Box<ToolError>),
    /// A tool was not made.
    Scaffold(ScaffoldError),
    /// Nothing could be measured.
    Bench(BenchError),
    /// A call was not undone.
    Undo(Box<UndoError>),
    /// This program panicked.
    Bug(Bug),
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
            Self::Undo(error) => error.as_ref(),
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
    pub fn record(&self) -> ErrorRecord {
        let failure = self.failure();
        ErrorRecord {
            code: failure.code(),
            message: failure.to_string(),
            fault: failure.fault(),
            recoverable: failure.retry() == Retry::CanHelp,
            retry_after_ms: failure
                .retry_after()
                .map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
            suggestion: failure.hint(),
            findings: failure.findings().to_vec(),
        }
    }
}

/// An error as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ErrorRecord {
    /// Stable name.
    pub code: &'static str,
    /// For people.
    pub message: String,
    /// Who has to change something.
    pub fault: Fault,
    /// Whether trying again can help.
    pub recoverable: bool,
    /// How long to wait before that, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// The next step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
    /// What is wrong in files.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.failure().fmt(f)
    }
}

impl std::error::Error for Error {}

impl From<UsageError> for Error {
    fn from(error: UsageError) -> Self {
        Self::Usage(error)
    }
}

impl From<HardenError> for Error {
    fn from(error: HardenError) -> Self {
        Self::Harden(error)
    }
}

impl From<OutputError> for Error {
    fn from(error: OutputError) -> Self {
        Self::Output(error)
    }
}

impl From<Bug> for Error {
    fn from(error: Bug) -> Self {
        Self::Bug(error)
    }
}

impl From<PolicyError> for Error {
    fn from(error: PolicyError) -> Self {
        Self::Policy(error)
    }
}

impl From<ConfigError> for Error {
    fn from(error: ConfigError) -> Self {
        Self::Config(error)
    }
}

impl From<WorkspaceError> for Error {
    fn from(error: WorkspaceError) -> Self {
        Self::Workspace(error)
    }
}

impl From<ApprovalError> for Error {
    fn from(error: ApprovalError) -> Self {
        Self::Approval(error)
    }
}

impl From<TrustRefused> for Error {
    fn from(error: TrustRefused) -> Self {
        Self::Trust(error)
    }
}

impl From<ToolError> for Error {
    fn from(error: ToolError) -> Self {
        Self::Tool(Box::new(error))
    }
}

impl From<BenchError> for Error {
    fn from(error: BenchError) -> Self {
        Self::Bench(error)
    }
}

impl From<ScaffoldError> for Error {
    fn from(error: ScaffoldError) -> Self {
        Self::Scaffold(error)
    }
}
