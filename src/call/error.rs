//! Why a call did not come to an outcome.

use std::path::PathBuf;

use super::stage::StagedError;
use super::tool::ToolCallError;
use crate::approvals::ApprovalError;
use crate::broker::inspect::AuthorityError;
use crate::codes::Code;
use crate::config::{ConfigError, Sourced};
use crate::engine::{Choice, EngineError};
use crate::error::{Failure, Fault, Retry};
use crate::exit::Kind;
use crate::ids::CallId;
use crate::policy_files::PolicyError;
use crate::queue::QueueError;
use crate::registries::RegistryError;
use crate::sandbox::outcome::{CancelCause, RunError};
use crate::sandbox::planner::PlanError;
use crate::store::StoreError;
use crate::workspace::WorkspaceError;

/// An error of one of the phases.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// There is no workspace to run in.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// A path that rules cannot speak of.
    #[error("the path {0} is not UTF-8, and rules speak of text")]
    PathNotText(PathBuf),
    /// No policy can be used.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The policy allows no engine of those that were chosen.
    #[error(
        "the policy `{policy}` allows the engines [{}], and what may be used is [{choice}]",
        .engines.join(", ")
    )]
    NoEngine {
        /// The policy.
        policy: String,
        /// What it allows.
        engines: Vec<String>,
        /// What was chosen.
        choice: Choice,
    },
    /// The managed configuration does not let the chosen engine be used.
    #[error(
        "the managed configuration sets the engine, and it is not the one that was chosen{}",
        .set.as_ref().map(|set| format!(": {} ({})", set.value, set.source.file.as_deref().unwrap_or_default())).unwrap_or_default()
    )]
    EngineNotSet {
        /// What it sets.
        set: Option<Box<Sourced<Choice>>>,
    },
    /// The decision holds nothing that may run.
    #[error("the decision allows no command; this is a bug in runner, please report it")]
    NoPlan,
    /// It is not known where a package manager installs from.
    #[error(transparent)]
    Registries(#[from] RegistryError),
    /// There is no authority under which connections could be inspected.
    #[error(transparent)]
    Authority(#[from] AuthorityError),
    /// There is no plan for a sandbox.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The engine.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The sandbox.
    #[error(transparent)]
    Run(#[from] RunError),
    /// It was not approved in a way that could be taken.
    #[error(transparent)]
    Approval(#[from] ApprovalError),
    /// There was no place for it among the calls that run.
    #[error(transparent)]
    Queue(#[from] QueueError),
    /// The tool.
    #[error(transparent)]
    Tool(#[from] ToolCallError),
    /// The record could not be written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Changes that were held back stay where they are.
    #[error(transparent)]
    Staged(#[from] StagedError),
    /// Its caller ended it before anything of it ran.
    #[error("the call was cancelled before it ran")]
    Cancelled(CancelCause),
    /// The call had started; its end is recorded under this id.
    #[error("{1}")]
    Started(CallId, Box<CallError>),
    /// Something of this machine.
    #[error("cannot {0}: {1}")]
    Local(&'static str, #[source] std::io::Error),
}

impl CallError {
    fn inner(&self) -> Option<&dyn Failure> {
        match self {
            Self::Workspace(error) => Some(error),
            Self::Policy(error) => Some(error),
            Self::Config(error) => Some(error),
            Self::Registries(error) => Some(error),
            Self::Plan(error) => Some(error),
            Self::Engine(error) => Some(error),
            Self::Run(error) => Some(error),
            Self::Approval(error) => Some(error),
            Self::Queue(error) => Some(error),
            Self::Tool(error) => Some(error),
            Self::Store(error) => Some(error),
            Self::Staged(error) => Some(error),
            Self::Started(_, error) => Some(error.as_ref()),
            Self::PathNotText(_)
            | Self::NoEngine { .. }
            | Self::EngineNotSet { .. }
            | Self::NoPlan
            | Self::Authority(_)
            | Self::Cancelled(_)
            | Self::Local(..) => None,
        }
    }
}

impl Failure for CallError {
    fn code(&self) -> Code {
        match (self.inner(), self) {
            (Some(inner), _) => inner.code(),
            (None, Self::PathNotText(_)) => Code::PathNotText,
            (None, Self::NoEngine { .. } | Self::EngineNotSet { .. }) => Code::EngineNotAllowed,
            (None, Self::Cancelled(_)) => Code::Cancelled,
            (None, _) => Code::LocalError,
        }
    }

    fn kind(&self) -> Kind {
        match (self.inner(), self) {
            (Some(inner), _) => inner.kind(),
            (None, Self::Cancelled(CancelCause::Interrupt)) => Kind::Interrupted,
            (None, Self::Cancelled(_)) => Kind::Terminated,
            (None, _) => Kind::Broken,
        }
    }

    fn fault(&self) -> Fault {
        match (self.inner(), self) {
            (Some(inner), _) => inner.fault(),
            (None, Self::NoEngine { .. } | Self::EngineNotSet { .. }) => Fault::Policy,
            (None, Self::PathNotText(_) | Self::Cancelled(_)) => Fault::Usage,
            (None, Self::NoPlan) => Fault::Runner,
            (None, _) => Fault::Engine,
        }
    }

    fn retry(&self) -> Retry {
        self.inner().map_or(Retry::CannotHelp, Failure::retry)
    }

    fn retry_after(&self) -> Option<std::time::Duration> {
        self.inner().and_then(Failure::retry_after)
    }

    fn hint(&self) -> Option<String> {
        match (self.inner(), self) {
            (Some(inner), _) => inner.hint(),
            (None, Self::PathNotText(_)) => {
                Some("run it in a folder whose path is UTF-8".to_owned())
            }
            (None, Self::NoEngine { choice, .. }) => {
                Some(format!("choose a policy whose `sandbox.engines` has {}", choice.first()))
            }
            (None, _) => None,
        }
    }

    fn findings(&self) -> &[runner_policy::finding::Finding] {
        self.inner().map_or(&[], Failure::findings)
    }

    fn call(&self) -> Option<&str> {
        match self {
            Self::Started(id, _) => Some(id.as_str()),
            _ => None,
        }
    }
}
