//! What a tool call came to, from how its sandbox and its talk ended.
//!
//! | rank | what | status |
//! | --- | --- | --- |
//! | 1 | the tool broke the talk (a frame cut off by rank 2 is no break) | `error`, the code of the protocol error |
//! | 2 | the sandbox met time, memory or another limit, or was cancelled | as for any call |
//! | 3 | the broker met a limit | `limit` |
//! | 4 | the tool returned a value | `completed`; `error` if the value is not what `returns` or zod's `returnType` says |
//! | 5 | the tool passed on the broker's refusal of a request, which it names by its number | `denied` or `needs_approval` |
//! | 6 | the tool threw | `failed`, exit code 1 |
//! | 7 | the process ended without a result | `failed`, `no_result` |
//! | 8 | the tool reports a cost that is no price | as ranks 1 to 3, otherwise `error` |
//!
//! A result counts only if it came as the talk's own last frame; an exit code after it means nothing.
//!
//! Codes: `error.code` is always a word of our list. A code that a tool throws decides neither status nor exit code. It is in
//! `error.details` with `source: tool`; if it is one of our words, it gets the prefix `tool:`.

use crate::broker::{Brokered, Issue, ProtocolError, ServeError, Served, ToolEnd, ToolError};
use crate::call::details::{Details, Source, Thrown};
use crate::call::result::{ErrorObject, ending};
use crate::codes::{self, Code, Group};
use crate::error::{Failure, Retry};
use crate::exit::{Ending, Kind};
use crate::ids::ToolName;
use crate::sandbox::outcome::{CancelCause, Verdict};
use crate::tool::{Violation, reported_cost};
use runner_policy::limits::Limits;
use serde_json::Value;

/// Most that is told of a value that does not fit.
const MAX_ISSUES: usize = 100;
/// Longest foreign text in a sentence of ours.
const MAX_SHORT: usize = 300;

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

impl Words {
    /// Who says so, if we do not.
    fn source(self) -> Option<Source> {
        match self {
            Self::Ours => None,
            Self::Theirs => Some(Source::Tool),
        }
    }
}

/// Judges by the table above. `name` is the tool's.
pub(super) fn judge(
    verdict: &Verdict,
    served: Served,
    limits: &Limits,
    words: Words,
    name: &ToolName,
) -> Judged {
    let Served { end, requests, cost, .. } = served;
    let bad_cost = cost.filter(|cost| reported_cost(cost).is_none());
    match end {
        // A frame that was cut off is the tool's fault only if its process ended by itself.
        Err(ServeError::Protocol(ProtocolError::Cut)) if !by_itself(verdict) => {
            of_verdict(verdict, limits)
        }
        Err(error @ ServeError::Protocol(_)) => of_failure(&error),
        _ if !by_itself(verdict) => of_verdict(verdict, limits),
        Ok(_) if bad_cost.is_some() => {
            let said = bad_cost.map(|cost| short(&cost.to_string())).unwrap_or_default();
            of_failure(&crate::tool::ToolError::Cost { name: name.clone(), said })
        }
        Ok(ToolEnd::Invalid(issues)) => {
            let violations = issues.into_iter().take(MAX_ISSUES).map(violation).collect();
            of_failure(&crate::tool::ToolError::Result { name: name.clone(), violations })
        }
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
        code: failure.code(),
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
    judged.ending = Ending { code: Some(error.code()), ..Ending::of_command(THREW) };
    judged
}

/// One thing that a schema library says of a value, in a line.
fn violation(issue: Issue) -> Violation {
    let Issue { pointer, message } = issue;
    let keyword = "returnType".to_owned();
    Violation { pointer: short(&pointer), keyword, message: short(&message), help: None }
}

/// Foreign text that stands in a sentence of ours: one line, not long.
fn short(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(MAX_SHORT).collect()
}

/// A tool that threw. A refusal that it passes on is ours: its code and its words are those of the request that was refused.
/// Everything else is the tool's own error, whatever it calls it.
fn threw(error: ToolError, requests: &[Brokered], words: Words) -> Judged {
    let refused = requests.iter().rev().find(|request| match (words, request.refused) {
        (_, None) => false,
        (Words::Ours, Some(code)) => error.code.as_deref().and_then(Code::parse) == Some(code),
        (Words::Theirs, Some(_)) => error.refused == Some(request.id),
    });
    match refused.and_then(|request| Some((request, request.refused?))) {
        Some((request, code)) => passed_on(error, request, code, words),
        None => own_error(error, words),
    }
}

/// A refusal of the broker, in the broker's words.
fn passed_on(error: ToolError, request: &Brokered, refused: Code, words: Words) -> Judged {
    let row = refused.row();
    let approval = request.approval.clone();
    let data = error.data;
    let advice = match words {
        Words::Ours => data.as_ref().and_then(|data| data["suggestion"].as_str()),
        Words::Theirs => request.suggestion.as_deref(),
    };
    let suggestion = Some(advice.unwrap_or(row.suggestion).to_owned());
    let message = match (words, &request.message) {
        (Words::Theirs, Some(message)) => message.clone(),
        (Words::Theirs, None) => row.about.to_owned(),
        (Words::Ours, _) => error.message,
    };
    let said = error.recoverable.filter(|_| words == Words::Ours && approval.is_none());
    let details = match approval.as_ref().and_then(|it| it.question.clone()) {
        Some(approval) => Some(Details::Question { approval }),
        None => data.map(|data| Details::PassedOn { source: words.source(), data }),
    };
    Judged {
        ending: match kind_of(refused) {
            Some(kind) => Ending::of_kind(kind, refused),
            None => Ending { code: Some(refused), ..Ending::of_command(THREW) },
        },
        value: None,
        error: Some(ErrorObject {
            code: refused,
            message,
            recoverable: said.unwrap_or_else(|| refused.can_pass()),
            suggestion: approval.and_then(|it| it.suggestion).or(suggestion),
            rule: request.rule.clone(),
            stack: error.stack,
            details,
        }),
    }
}

/// What a tool throws by itself.
fn own_error(error: ToolError, words: Words) -> Judged {
    let code = Code::ToolError;
    // What the tool calls it, if we know the word.
    let said = error.code.as_deref().and_then(codes::find);
    // A word of ours that nobody said is no reason to advise what we would: a tool must not make us say `pass --yes`.
    let advised = said
        .filter(|code| {
            matches!(code.row().group, Group::Thrown | Group::Tool) || words == Words::Ours
        })
        .unwrap_or(code);
    let own = error.data.as_ref().filter(|_| words == Words::Ours);
    let own = own.and_then(|data| data["suggestion"].as_str());
    let suggestion = Some(own.unwrap_or(advised.row().suggestion).to_owned());
    let message = match error.name.as_str() {
        "" | "Error" | "RunnerError" => error.message,
        name => format!("{name}: {}", error.message),
    };
    let known = said.unwrap_or(code);
    let details = Details::Thrown(Thrown {
        source: words.source(),
        code: match words {
            Words::Ours => error.code,
            Words::Theirs => error.code.as_deref().map(marked),
        },
        data: error.data,
    });
    Judged {
        ending: Ending { code: Some(code), ..Ending::of_command(THREW) },
        value: None,
        error: Some(ErrorObject {
            code,
            message,
            recoverable: error.recoverable.unwrap_or_else(|| known.can_pass()),
            suggestion,
            rule: None,
            stack: error.stack,
            details: Some(details),
        }),
    }
}

/// What a code of ours begins with if a tool says it.
pub(super) const MARK: &str = "tool:";

/// Codes of our list that the runtime finds out in the tool's own process; only a tool's error has them.
const RUNTIME: &[Code] = &[
    Code::InvalidArguments,
    Code::InvalidArgument,
    Code::InvalidTool,
    Code::LoadFailed,
    Code::NotText,
    Code::ToolFailed,
    Code::UncaughtException,
    Code::UnhandledRejection,
    Code::NeverSettled,
    Code::ResultTooLarge,
    Code::ResultNotJson,
    Code::ChannelClosed,
];

/// A tool's own code. Words of our list are reserved, but for those that are about what tools throw.
fn marked(code: &str) -> String {
    let ours = Code::parse(code)
        .is_some_and(|code| code.row().group != Group::Thrown && !RUNTIME.contains(&code));
    if ours || code.starts_with(MARK) { format!("{MARK}{code}") } else { code.to_owned() }
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
        refused: None,
    };
    threw(error, &[], Words::Theirs)
}

/// What a refusal that ends the call means for the exit code; `None` for what is the tool's own affair.
pub(super) fn kind_of(code: Code) -> Option<Kind> {
    match code {
        Code::AccessDenied
        | Code::ApprovalDenied
        | Code::ApprovalDiffers
        | Code::ToolDigestMismatch
        | Code::PathEscape
        | Code::ProtectedPath
        | Code::SpecialFile
        | Code::NetDenied
        | Code::NetAddress => Some(Kind::Denied),
        Code::ApprovalNeeded | Code::ApprovalOver => Some(Kind::ApprovalNeeded),
        Code::ApprovalUnknown => Some(Kind::Usage),
        Code::ApprovalFailed => Some(Kind::Broken),
        Code::LimitReached => Some(Kind::Limit),
        _ => None,
    }
}

#[cfg(test)]
#[path = "outcome_tests.rs"]
mod tests;
