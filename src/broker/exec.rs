//! The power to run commands, as the broker asks for it. `call` implements it with sandboxes.

use std::path::PathBuf;
use std::time::Duration;

use super::{Body, Boxed, Refusal};
use crate::codes::Code;
use crate::sandbox::cancel::Cancel;

/// What is to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// A program and its arguments; not empty.
    Argv(Vec<String>),
    /// A shell line.
    Line(String),
}

/// A tool's wish to run a command.
#[derive(Debug)]
pub struct ExecRequest {
    /// What is to run.
    pub command: Command,
    /// Where: a folder of the workspace, absolute, links resolved.
    pub cwd: PathBuf,
    /// Variables that the tool sets; names are unique. The policy has not been asked about them yet.
    pub env: Vec<(String, String)>,
    /// How long it may take; the policy's own limit holds too.
    pub timeout: Option<Duration>,
    /// Its standard input.
    pub stdin: Body,
    /// Asks the run to end: the tool cancelled the request, or the call is over.
    pub cancel: Cancel,
}

/// A command that ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecReply {
    /// Its exit code; for a signal 128 and the signal's number.
    pub exit_code: i32,
    /// The word for how it ended, as in results of `runner exec`: `completed`, `failed`, `timeout`, …
    pub status: &'static str,
    /// The signal that ended it.
    pub signal: Option<String>,
    /// What is kept of its standard output.
    pub stdout: Vec<u8>,
    /// What is kept of its standard error.
    pub stderr: Vec<u8>,
    /// Whether something was left out of either.
    pub truncated: bool,
    /// How long it took.
    pub duration: Duration,
    /// The id of its own call in the ledger.
    pub call: String,
}

/// Runs commands. It decides (policy and permissions together) before it runs; a command that ran and
/// failed is a reply, one that may not run is a refusal.
pub trait Exec: Send + Sync {
    /// Runs one. When the request is cancelled or the call ends, the broker asks by
    /// [`ExecRequest::cancel`] and waits a while for the run to end in order; after that it drops the
    /// future, and the sandbox must end all the same.
    fn run(&self, request: ExecRequest) -> Boxed<'_, Result<ExecReply, Refusal>>;
}

/// No command may run.
#[derive(Debug, Clone, Copy)]
pub struct NoExec;

impl Exec for NoExec {
    fn run(&self, _: ExecRequest) -> Boxed<'_, Result<ExecReply, Refusal>> {
        Box::pin(async { Err(Refusal::new(Code::AccessDenied, "this tool may run no commands")) })
    }
}
