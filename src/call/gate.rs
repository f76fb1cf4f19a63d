//! The gate that every call passes before anything of it runs.
//!
//! ```text
//!             no approval is needed                         allowed
//! decided ------------------------------> Consent ---pass---------> Open, nothing is recorded yet
//!    |                                       ^  |
//!    +-- Pending --put--> yes, no, ----------+  +-- denied, or no yes --> recorded, Shut
//!                         cancelled, failed
//! ```
//!
//! Duty: one order of asking, recording and letting through, for commands, for tools, for the commands of tools and for MCP
//! servers. A question that cannot be asked (the book of approvals cannot be used, no terminal, no answer in time) is
//! not a yes: nothing runs. Non-goals: what a question says, and what a caller makes of a refusal.
//!
//! | why it may not run | verdict and code in the ledger | how the call ends |
//! | --- | --- | --- |
//! | the policy denies it | the decision's | denied, 126 |
//! | the person said no, is not there, or does not answer | ask | needs approval, 77 |
//! | a person said never | deny, `approval_denied` | denied, 126 |
//! | the call was cancelled | ask | cancelled |
//! | the question could not be put, or a named answer is none | deny, the failure's | by the failure: 125, 77, 126 or 2 |

use std::sync::Arc;

use runner_policy::Verdict;

use super::CallError;
use super::approval::{Answer, Asking, Inquiry, Unapproved, put};
use super::record::{Opened, Unrecorded};
use super::request::{Approval, Decided, path_text};
use super::result::{CallDecision, CallResult, ErrorObject, ending};
use crate::approvals::ApprovalError;
use crate::audit::Started;
use crate::codes::Code;
use crate::error::{Failure as _, Retry};
use crate::exit::{Ending, Kind};
use crate::ids::CallId;
use crate::sandbox::cancel::Cancel;
use crate::sandbox::outcome::{CancelCause, Verdict as Outcome};

/// A question that is ready to be put, and the way to its answer.
pub(super) struct Pending {
    asking: Arc<Asking>,
    inquiry: Inquiry,
}

/// What came of asking.
#[derive(Debug)]
pub(super) enum Consent {
    /// No approval was needed.
    NotAsked,
    /// A person approved it.
    Given,
    /// It was not approved.
    Refused(NotApproved),
}

/// Why a call is not approved.
#[derive(Debug)]
pub(super) enum NotApproved {
    /// The answer is no, or there is none yet.
    Answer(Unapproved),
    /// The call was cancelled instead.
    Cancelled(CancelCause),
    /// The question could not be put, or an answer that the caller names is not one to it.
    Failed(ApprovalError),
}

/// Whether a decided command may run.
pub(super) enum Gate {
    /// It may; nothing of it is recorded yet.
    Open(Unrecorded),
    /// It may not, and that is recorded.
    Shut(Shut),
}

/// A command that may not run.
pub(super) struct Shut {
    /// The call under which that is recorded.
    pub call: CallId,
    /// Why it was not approved; `None` if the policy alone decided.
    pub why: Option<NotApproved>,
}

impl Pending {
    /// A question to the approver.
    pub fn new(asking: Arc<Asking>, inquiry: Inquiry) -> Self {
        Self { asking, inquiry }
    }

    /// Asks it, unless the call is cancelled first.
    pub async fn put(self, cancel: &mut Cancel) -> Consent {
        tokio::select! {
            answer = put(self.asking, self.inquiry) => match answer {
                Ok(Answer::Yes) => Consent::Given,
                Ok(Answer::No(why)) => Consent::Refused(NotApproved::Answer(why)),
                Err(error) => Consent::Refused(NotApproved::Failed(error)),
            },
            cause = cancel.asked() => Consent::Refused(NotApproved::Cancelled(cause)),
        }
    }
}

/// Lets a command through, or records that it may not run. `parent` is the call that wants it, if it was not a person.
///
/// # Errors
/// The refusal cannot be recorded. Nothing runs then, either.
pub(super) fn pass(
    call: Unrecorded,
    decided: &mut Decided,
    consent: Consent,
    parent: Option<&CallId>,
) -> Result<Gate, CallError> {
    let why = match consent {
        Consent::NotAsked => None,
        Consent::Given => {
            decided.approval = Approval::Given;
            None
        }
        Consent::Refused(why) => Some(why),
    };
    if why.is_none() && decided.is_allowed() {
        return Ok(Gate::Open(call));
    }
    let id = call.id().clone();
    let started = started(decided, parent)?;
    match &why {
        Some(why) => why.record(call.open()?, started, COMMAND)?,
        None => call.open()?.refuse(started, &ending_of_decision(decided))?,
    }
    Ok(Gate::Shut(Shut { call: id, why }))
}

/// What a command is called in messages.
const COMMAND: &str = "this command";

/// What the record of a command begins with.
pub(super) fn started(decided: &Decided, parent: Option<&CallId>) -> Result<Started, CallError> {
    Ok(Started::new(
        decided.request.shown(),
        decided.request.argv_text(),
        path_text(decided.workspace.root())?,
        path_text(decided.workspace.cwd())?,
        &decided.decision,
        parent,
        &decided.context.caller,
    ))
}

/// How a call ends that the policy alone refuses.
fn ending_of_decision(decided: &Decided) -> Ending {
    let decision = &decided.decision;
    let kind = if decision.approvable { Kind::ApprovalNeeded } else { Kind::Denied };
    Ending::of_kind(kind, decision.code.into())
}

impl Shut {
    /// The result of the command. A refusal is a result, not an error.
    ///
    /// # Errors
    /// The question could not be put.
    pub fn result(self, decided: &Decided) -> Result<CallResult, CallError> {
        let explanation = decided.explain()?;
        let (ending, error) = match self.why {
            None => (ending_of_decision(decided), ErrorObject::of_decision(&explanation)),
            Some(NotApproved::Failed(error)) => return Err(error.into()),
            Some(why) => {
                let rule = decided.decision.rule.clone();
                (why.ending(), ErrorObject { rule, ..why.error(COMMAND) })
            }
        };
        Ok(CallResult {
            call: self.call.to_string(),
            status: ending.status,
            exit: ending.exit,
            tool: None,
            value: None,
            stdout: None,
            stderr: None,
            error: Some(error),
            decision: CallDecision::Refused(Box::new(explanation)),
            changes: None,
            metadata: None,
            sandbox: Vec::new(),
            ending,
            farewell: None,
        })
    }
}

impl NotApproved {
    /// Records that `what` may not run.
    ///
    /// # Errors
    /// It cannot be recorded.
    pub fn record(&self, record: Opened, started: Started, what: &str) -> Result<(), CallError> {
        let error = self.error(what);
        let started = match self {
            Self::Answer(why @ Unapproved::Never(_)) => {
                started.refused(Verdict::Deny, why.code(), error.message)
            }
            Self::Failed(failure) => started.refused(Verdict::Deny, failure.code(), error.message),
            // What the policy asks about is recorded as it was decided.
            Self::Answer(_) | Self::Cancelled(_) if started.asks() => started,
            Self::Answer(_) | Self::Cancelled(_) => {
                started.refused(Verdict::Ask, Code::ApprovalNeeded, error.message)
            }
        };
        record.refuse(started, &self.ending())
    }

    /// How the call ends.
    pub fn ending(&self) -> Ending {
        match self {
            Self::Answer(why) => why.ending(),
            Self::Cancelled(cause) => ending(&Outcome::Cancelled(*cause)),
            Self::Failed(error) => Ending::of_kind(error.kind(), error.code()),
        }
    }

    /// What went wrong, about `what`.
    pub fn error(&self, what: &str) -> ErrorObject {
        let object = |code, message, recoverable, suggestion| ErrorObject {
            code,
            message,
            recoverable,
            suggestion,
            rule: None,
            stack: None,
            details: None,
        };
        match self {
            Self::Answer(why) => why.error(what),
            Self::Cancelled(_) => {
                let message = "the call was cancelled before it was approved".to_owned();
                object(Code::Cancelled, message, true, None)
            }
            Self::Failed(error) => {
                let recoverable = error.retry() == Retry::CanHelp;
                object(error.code(), error.to_string(), recoverable, error.hint())
            }
        }
    }
}

#[cfg(test)]
#[path = "gate_tests.rs"]
mod tests;
