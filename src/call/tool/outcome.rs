//! What a tool call came to, from how its sandbox and its talk ended.
//!
//! | rank | what | status |
//! | --- | --- | --- |
//! | 1 | the tool broke the talk (a frame cut off by rank 2 is no break) | `error`, the code of the protocol error |
//! | 2 | the sandbox met time, memory or another limit, or was cancelled | as for any call |
//! | 3 | the broker met a limit | `limit` |
//! | 4 | the tool returned a value | `completed`; `error` if the value is not what `returns` says |
//! | 5 | the tool threw what the broker had refused | `denied` or `needs_approval` |
//! | 6 | the tool threw | `failed`, exit code 1 |
//! | 7 | the process ended without a result | `failed`, `no_result` |
//!
//! A result counts only if it came as the talk's own last frame; an exit code after it means nothing.

use serde_json::json;

use crate::broker::{Brokered, Code, ProtocolError, ServeError, Served, ToolEnd, ToolError};
use crate::call::result::{ErrorObject, ending};
use crate::codes::{self, Group, Recoverable};
use crate::error::{Failure, Retry};
use crate::exit::{Ending, Kind};
use crate::sandbox::outcome::{CancelCause, Verdict};
use runner_policy::limits::Limits;
use serde_json::Value;

/// The exit code of a tool that threw.
const THREW: u8 = 1;

/// How a call ended.
#[derive(Debug)]
pub(super) struct Judged {
    /// For the process.
    pub ending: Ending,
    /// What the tool returned.
    pub value: Option<Value>,
    /// What went wrong.
    pub error: Option<ErrorObject>,
}

/// Whose words those of a tool are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Words {
    /// Ours: the tool is a part of this program.
    Ours,
    /// Its author's.
    Theirs,
}

/// Judges by the table above.
pub(super) fn judge(verdict: &Verdict, served: Served, limits: &Limits, words: Words) -> Judged {
    let Served { end, requests, .. } = served;
    match end {
        // A frame that was cut off is the tool's fault only if its process ended by itself.
        Err(ServeError::Protocol(ProtocolError::Cut)) if !by_itself(verdict) => {
            of_verdict(verdict, limits)
        }
        Err(error @ ServeError::Protocol(_)) => of_failure(&error),
        _ if !by_itself(verdict) => of_verdict(verdict, limits),
        Ok(ToolEnd::Value(value)) => {
            Judged { ending: Ending::ok(), value: Some(value), error: None }
        }
        Ok(ToolEnd::Error(error)) => threw(error, &requests, words),
        Err(error @ ServeError::NoResult) => no_result(&error, verdict),
        Err(error) => of_failure(&error),
    }
}

fn of_verdict(verdict: &Verdict, limits: &Limits) -> Judged {
    Judged { ending: ending(verdict), value: None, error: ErrorObject::of_verdict(verdict, limits) }
}

/// Whether the sandbox ended because its process did, or because the talk was over.
fn by_itself(verdict: &Verdict) -> bool {
    matches!(
        verdict,
        Verdict::Completed
            | Verdict::Failed { .. }
            | Verdict::Signalled { .. }
            | Verdict::Cancelled(CancelCause::BrokerEnded)
    )
}

pub(super) fn of_failure(failure: &dyn Failure) -> Judged {
    let error = ErrorObject {
        code: failure.code().to_owned(),
        message: failure.to_string(),
        recoverable: failure.retry() == Retry::CanHelp,
        suggestion: failure.hint(),
        rule: None,
        stack: None,
        details: None,
    };
    Judged {
        ending: Ending::of_kind(failure.kind(), failure.code()),
        value: None,
        error: Some(error),
    }
}

/// A process that ended without a result says at least how it ended.
fn no_result(error: &ServeError, verdict: &Verdict) -> Judged {
    let mut judged = of_failure(error);
    let how = match verdict {
        Verdict::Failed { status } => Some(format!("its process ended with exit code {status}")),
        Verdict::Signalled { signal } => Some(format!("its process was ended by signal {signal}")),
        Verdict::Completed => Some("its process ended with exit code 0".to_owned()),
        _ => None,
    };
    if let (Some(object), Some(how)) = (&mut judged.error, how) {
        object.message = format!("{}: {how}", object.message);
    }
    judged.ending = Ending { code: Some(error.code().to_owned()), ..Ending::of_command(THREW) };
    judged
}

/// A tool that threw. What the broker refused and the tool passed on is a refusal of ours; a tool that only
/// says so has thrown an error like any other.
fn threw(error: ToolError, requests: &[Brokered], words: Words) -> Judged {
    let refused = requests.iter().rev().find(|request| {
        request.refused.is_some_and(|code| error.code.as_deref() == Some(code.word()))
    });
    let kind = refused.and_then(|request| request.refused).and_then(kind_of);
    let code = match (&error.code, refused) {
        (Some(code), Some(_)) => code.clone(),
        _ => "tool_error".to_owned(),
    };
    // What the tool calls it, if we know the word.
    let said = error.code.as_deref().and_then(codes::find);
    let known = said.or_else(|| codes::find(&code));
    // A word of ours that nobody said is no reason to advise what we would: a tool must not make us say `pass --yes`.
    let advised = said
        .filter(|row| {
            let thrown = matches!(row.group, Group::Thrown | Group::Tool);
            thrown || refused.is_some() || words == Words::Ours
        })
        .or_else(|| codes::find(&code));
    let own = match words {
        Words::Ours => error.data.as_ref().and_then(|data| data["suggestion"].as_str()),
        Words::Theirs => refused.and_then(|request| request.suggestion.as_deref()),
    };
    let suggestion = own.or(advised.map(|row| row.suggestion)).map(str::to_owned);
    let ending = match kind {
        Some(kind) => Ending::of_kind(kind, code.clone()),
        None => Ending { code: Some(code.clone()), ..Ending::of_command(THREW) },
    };
    let message = match error.name.as_str() {
        "" | "Error" | "RunnerError" => error.message,
        name => format!("{name}: {}", error.message),
    };
    // What became of a question is ours to say, not the tool's.
    let approval = refused.and_then(|request| request.approval.clone());
    let details = match (approval.as_ref().and_then(|it| it.details.clone()), error.data) {
        (Some(details), _) => Some(details),
        (None, None) if refused.is_some() || error.code.is_none() => None,
        (None, data) => {
            Some(json!({ "code": error.code.filter(|_| refused.is_none()), "data": data }))
        }
    };
    Judged {
        ending,
        value: None,
        error: Some(ErrorObject {
            code,
            message,
            recoverable: error
                .recoverable
                .filter(|_| approval.is_none())
                .unwrap_or_else(|| known.is_some_and(|row| row.recoverable == Recoverable::Yes)),
            suggestion: approval.and_then(|it| it.suggestion).or(suggestion),
            rule: refused.and_then(|request| request.rule.clone()),
            stack: error.stack,
            details,
        }),
    }
}

/// A tool that says itself that it failed, in its own words.
pub(super) fn threw_by_itself(message: String, data: Option<Value>) -> Judged {
    let error = ToolError {
        name: String::new(),
        message,
        code: None,
        data,
        recoverable: None,
        stack: None,
    };
    threw(error, &[], Words::Theirs)
}

/// What a refusal that ends the call means for the exit code; `None` for what is the tool's own affair.
pub(super) fn kind_of(code: Code) -> Option<Kind> {
    match code {
        Code::AccessDenied
        | Code::ApprovalDenied
        | Code::ApprovalDiffers
        | Code::ToolChanged
        | Code::PathEscape
        | Code::ProtectedPath
        | Code::SpecialFile
        | Code::NetDenied
        | Code::NetAddress
        | Code::HostNotOffered => Some(Kind::Denied),
        Code::ApprovalNeeded | Code::ApprovalOver => Some(Kind::ApprovalNeeded),
        Code::ApprovalUnknown => Some(Kind::Usage),
        Code::LimitReached => Some(Kind::Limit),
        _ => None,
    }
}

#[cfg(test)]
#[path = "outcome_tests.rs"]
mod tests;
