//! A result as JSON: one shape for every outcome, of commands, tools, denials, errors and wrong usage.
//!
//! | always | |
//! | --- | --- |
//! | `call` | the id; `null` if there was no call |
//! | `status`, `exit` | how it ended |
//! | `decision`, `policy`, `rule` | what was decided, under which policy, by which rule; `null` where nothing was |
//! | `stdout`, `stderr` | the output that is kept; `null` where none is |
//! | `error` | what went wrong, or `null` |
//! | `sandbox` | what the sandbox kept from it ([`shortfall`](super::shortfall)) |
//!
//! Everything else is optional, and the same wherever it stands. The brief form is what an agent needs; the full one
//! adds `metadata` and `explanation`. Duty: the shape; [`schema`](super::schema) describes it. Nothing in this program
//! reads it back but `bench`.

use std::borrow::Cow;

use runner_policy::Verdict;
use runner_policy::finding::Finding;
use serde::Serialize;
use serde_json::Value;

use super::metadata::{Attachments, Metadata};
use super::result::{CallDecision, CallResult, ErrorObject, Stream, ToldStream};
use super::shortfall::Shortfall;
use super::stage::Changes;
use crate::error::Fault;
use crate::exit::{Ending, ExitCode, Status};

/// How much is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Detail {
    /// What the caller needs to go on.
    #[default]
    Brief,
    /// Also how it ran, and the whole decision.
    Full,
}

/// A result as JSON.
#[derive(Debug, Serialize)]
pub struct Told<'r> {
    call: Option<&'r str>,
    status: Status,
    exit: ExitCode,
    decision: Option<Verdict>,
    policy: Option<&'r str>,
    rule: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<ToldTool<'r>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<&'r Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attachments: Option<&'r Attachments>,
    stdout: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stdout_encoding: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stdout_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stdout_dropped: Option<u64>,
    stderr: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stderr_encoding: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stderr_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stderr_dropped: Option<u64>,
    error: Option<ToldError<'r>>,
    sandbox: &'r [Shortfall],
    #[serde(skip_serializing_if = "Option::is_none")]
    changes: Option<&'r Changes>,
    #[serde(skip_serializing_if = "Option::is_none")]
    explanation: Option<&'r CallDecision>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Cow<'r, Metadata>>,
}

/// The tool of a call; its digest in the full form alone.
#[derive(Debug, Serialize)]
struct ToldTool<'r> {
    name: &'r str,
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<&'r str>,
}

/// What went wrong.
#[derive(Debug, Serialize)]
pub struct ToldError<'r> {
    /// The error.
    #[serde(flatten)]
    pub object: Cow<'r, ErrorObject>,
    /// Who has to change something, where no call came to an outcome.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<Fault>,
    /// What is wrong in files.
    #[serde(skip_serializing_if = "<[Finding]>::is_empty")]
    pub findings: &'r [Finding],
}

impl<'r> Told<'r> {
    fn new(call: Option<&'r str>, ending: &Ending) -> Self {
        Self {
            call,
            status: ending.status,
            exit: ending.exit,
            decision: None,
            policy: None,
            rule: None,
            tool: None,
            value: None,
            attachments: None,
            stdout: None,
            stdout_encoding: None,
            stdout_bytes: None,
            stdout_dropped: None,
            stderr: None,
            stderr_encoding: None,
            stderr_bytes: None,
            stderr_dropped: None,
            error: None,
            sandbox: &[],
            changes: None,
            explanation: None,
            metadata: None,
        }
    }

    /// Of an error that left no result: of `call`, if one had started.
    #[must_use]
    pub fn of_error(call: Option<&'r str>, ending: &Ending, error: ToldError<'r>) -> Self {
        Self { error: Some(error), ..Self::new(call, ending) }
    }

    /// Of changes that were applied later.
    #[must_use]
    pub fn of_changes(call: &'r str, ending: &Ending, changes: &'r Changes) -> Self {
        Self { changes: Some(changes), ..Self::new(Some(call), ending) }
    }
}

impl CallResult {
    /// The form for machines.
    #[must_use]
    pub fn told(&self, detail: Detail) -> Told<'_> {
        let full = detail == Detail::Full;
        let (decision, policy, rule) = match &self.decision {
            CallDecision::Command(it) => (Some(it.as_ref()), it.policy.as_str(), it.rule.as_ref()),
            CallDecision::Refused(it) => {
                (Some(&it.decision), it.decision.policy.as_str(), it.decision.rule.as_ref())
            }
            CallDecision::Tool { policy, .. } => (None, policy.as_str(), None),
        };
        let told = |stream: &Option<Stream>| stream.as_ref().map(Stream::told);
        let apart = |told: Option<ToldStream>| match told {
            Some(ToldStream { text, encoding, bytes, dropped }) => {
                (Some(text), encoding, bytes, dropped)
            }
            None => (None, None, None, None),
        };
        let (stdout, stdout_encoding, stdout_bytes, stdout_dropped) = apart(told(&self.stdout));
        let (stderr, stderr_encoding, stderr_bytes, stderr_dropped) = apart(told(&self.stderr));
        let error = self.error.as_ref().map(|error| ToldError {
            object: Cow::Borrowed(error),
            fault: None,
            findings: &[],
        });
        let tool = self.tool.as_ref().map(|tool| ToldTool {
            name: &tool.name,
            digest: full.then_some(tool.digest.as_str()),
        });
        Told {
            decision: decision.map(|decision| decision.decision),
            policy: Some(policy),
            rule: rule.map(|rule| rule.id.as_str()),
            tool,
            value: self.value.as_ref(),
            attachments: self.metadata.as_ref().and_then(Metadata::attachments),
            stdout,
            stdout_encoding,
            stdout_bytes,
            stdout_dropped,
            stderr,
            stderr_encoding,
            stderr_bytes,
            stderr_dropped,
            error,
            sandbox: &self.sandbox,
            changes: self.changes.as_ref(),
            explanation: full.then_some(&self.decision),
            metadata: self.metadata.as_ref().filter(|_| full).map(Metadata::without_attachments),
            ..Told::new(Some(&self.call), &self.ending)
        }
    }
}
