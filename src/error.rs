//! What every error says about itself: a stable code, whose fault it was, and what to do next.
//!
//! Each part has its own error type beside the code that raises it. The front joins them.

use std::fmt;
use std::time::Duration;

use runner_policy::finding::Finding;
use serde::Serialize;

use crate::codes::Code;
use crate::exit::Kind;

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
    /// A stable name for machines.
    fn code(&self) -> Code;
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
