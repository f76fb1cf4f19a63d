//! How a talk went: the tool's own end, or the error that ended it; and what was moved.

use std::io;
use std::time::Duration;

use runner_policy::decide::RuleRef;
use runner_policy::limits::Limit;
use serde::Serialize;
use serde_json::Value;

use super::Unanswered;
use crate::codes::Code;
use crate::error::{Failure, Fault, Retry};
use crate::exit::Kind;

/// A talk that is over, however it ended. What was done on the way is told in any case.
#[derive(Debug)]
pub struct Served {
    /// How it ended.
    pub end: Result<ToolEnd, ServeError>,
    /// What the tool says that it cost, in US dollars. Not looked at yet: it may be anything.
    pub cost: Option<Value>,
    /// What it used.
    pub usage: BrokerUsage,
    /// The requests, in order of completion; the first ones, if there were very many.
    pub requests: Vec<Brokered>,
}

/// What a tool ended with.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolEnd {
    /// Its value.
    Value(Value),
    /// An error that it threw.
    Error(ToolError),
    /// Its value does not fit its own schema, which says more than JSON Schema can.
    Invalid(Vec<Issue>),
}

/// One thing that does not fit, in the words of the tool's schema library.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Issue {
    /// JSON pointer to the part of the value.
    pub pointer: String,
    /// What is wrong.
    pub message: String,
}

/// An error that a tool threw. All text is the tool's: show it through `visible`, redact it.
#[derive(Debug, Clone, PartialEq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolError {
    /// The name of its class.
    pub name: String,
    /// What it says.
    pub message: String,
    /// Its own code, or that of a refusal that it passed on.
    #[serde(default)]
    pub code: Option<String>,
    /// Where, in the author's source.
    #[serde(default)]
    pub stack: Option<String>,
    /// Further values.
    #[serde(default)]
    pub data: Option<Value>,
    /// Whether the tool says that trying again can help.
    #[serde(default)]
    pub recoverable: Option<bool>,
    /// The request whose refusal it passes on, by its number.
    #[serde(default)]
    pub refused: Option<u32>,
}

/// What a call used of the broker.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct BrokerUsage {
    /// Requests.
    pub calls: u64,
    /// Of them, those that were refused.
    pub refused: u64,
    /// Bytes from the tool: bodies and notes.
    pub bytes_in: u64,
    /// Bytes to the tool.
    pub bytes_out: u64,
    /// Log lines and progress.
    pub notes: u64,
    /// Of them, those that were too many to pass on.
    pub notes_dropped: u64,
    /// Requests that are not listed, because there were too many.
    pub unlisted: u64,
}

/// One request, as the ledger keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Brokered {
    /// Its number in the talk.
    pub id: u32,
    /// Its method.
    pub method: &'static str,
    /// What it was about: the resolved path, the command, the URL; shortened.
    pub object: String,
    /// Why it was not done, if it was not.
    pub refused: Option<Code>,
    /// What the tool was told then.
    pub message: Option<String>,
    /// The rule that decided, if one is known.
    pub rule: Option<RuleRef>,
    /// The next step that it was refused with.
    pub suggestion: Option<String>,
    /// The question that it waits for, or the answer that it did not get.
    pub approval: Option<Box<Unanswered>>,
    /// Bytes of its body.
    pub bytes_in: u64,
    /// Bytes that it was answered with.
    pub bytes_out: u64,
    /// How long it took.
    pub duration: Duration,
    /// The id of the call that it became in the ledger, for a command.
    pub call: Option<String>,
}

/// Why a talk ended without a word of the tool.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The tool's end does not speak the talk.
    #[error("the tool broke the talk with the host: {0}")]
    Protocol(#[from] ProtocolError),
    /// The stream ended before a result.
    #[error("the tool ended without a result")]
    NoResult,
    /// The stream broke.
    #[error("the stream of the tool broke: {0}")]
    Stream(#[source] io::Error),
    /// The call's time is over.
    #[error("the tool ran out of time")]
    Timeout,
    /// The host ended it.
    #[error("the call was ended: {reason}")]
    Aborted {
        /// Why.
        reason: String,
    },
    /// A limit of the broker, met again and again.
    #[error("the tool went on asking beyond its limit `{}`", .0.row().key)]
    Limit(Limit),
    /// The job cannot be sent.
    #[error("the job cannot be sent: {0}")]
    Job(&'static str),
}

/// What was wrong with a frame.
#[derive(Debug, thiserror::Error, Clone, PartialEq, Eq)]
pub enum ProtocolError {
    /// No frame has this kind.
    #[error("no frame has the kind {0}")]
    UnknownKind(u8),
    /// The payload is longer than its kind may be.
    #[error("a {kind} of {length} bytes, and the longest has {cap}")]
    TooLong {
        /// The kind's name.
        kind: &'static str,
        /// The length in the frame.
        length: u32,
        /// The longest.
        cap: u32,
    },
    /// The payload must be empty.
    #[error("a {0} carries nothing, and this one does")]
    NotEmpty(&'static str),
    /// The stream ended inside a frame. A process that is killed while it speaks leaves this behind too:
    /// see [`ServeError::is_cut_off`].
    #[error("the stream ended inside a frame")]
    Cut,
    /// An id that cannot be there.
    #[error("a {kind} cannot have the id {id} here")]
    BadId {
        /// The kind's name.
        kind: &'static str,
        /// The id.
        id: u32,
    },
    /// The payload is not the JSON that its kind has.
    #[error("a {kind} that is none: {why}")]
    BadJson {
        /// The kind's name.
        kind: &'static str,
        /// What is wrong, with its place.
        why: String,
    },
    /// No request has this method.
    #[error("no request has the method {0:?}")]
    UnknownMethod(String),
    /// The parameters of a request are not those of its method.
    #[error("wrong parameters of {method}: {why}")]
    BadParams {
        /// The method.
        method: &'static str,
        /// What is wrong, with its place.
        why: String,
    },
    /// A body where the method has none.
    #[error("{0} has no body")]
    UnwantedBody(&'static str),
    /// A body was sent beyond its credit.
    #[error("the body of request {0} is beyond its credit")]
    OverCredit(u32),
    /// Something came after the result.
    #[error("something came after the result")]
    AfterResult,
}

impl ProtocolError {
    /// A stable name, in snake case.
    #[must_use]
    pub fn code(&self) -> Code {
        match self {
            Self::UnknownKind(_) => Code::ProtocolUnknownKind,
            Self::TooLong { .. } => Code::ProtocolTooLong,
            Self::NotEmpty(_) => Code::ProtocolNotEmpty,
            Self::Cut => Code::ProtocolCutFrame,
            Self::BadId { .. } => Code::ProtocolBadId,
            Self::BadJson { .. } => Code::ProtocolBadJson,
            Self::UnknownMethod(_) => Code::ProtocolUnknownMethod,
            Self::BadParams { .. } => Code::ProtocolBadParams,
            Self::UnwantedBody(_) => Code::ProtocolUnwantedBody,
            Self::OverCredit(_) => Code::ProtocolOverCredit,
            Self::AfterResult => Code::ProtocolAfterResult,
        }
    }
}

impl ServeError {
    /// Whether all that is known is that the stream ended too early, between frames or inside one. Why it did
    /// is not the talk's to say: if the sandbox was ended (memory, time, a signal), that is the reason,
    /// and no fault of what the tool said.
    #[must_use]
    pub fn is_cut_off(&self) -> bool {
        matches!(self, Self::NoResult | Self::Protocol(ProtocolError::Cut))
    }
}

impl Failure for ServeError {
    fn code(&self) -> Code {
        match self {
            Self::Protocol(error) => error.code(),
            Self::NoResult => Code::NoResult,
            Self::Stream(_) => Code::TalkBroken,
            Self::Timeout => Code::Timeout,
            Self::Aborted { .. } => Code::Cancelled,
            Self::Limit(_) => Code::BrokerLimit,
            Self::Job(_) => Code::JobTooLarge,
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Self::Protocol(_) | Self::NoResult | Self::Stream(_) | Self::Job(_) => Kind::Broken,
            Self::Timeout => Kind::Timeout,
            Self::Aborted { .. } => Kind::Interrupted,
            Self::Limit(_) => Kind::Limit,
        }
    }

    fn fault(&self) -> Fault {
        match self {
            Self::Protocol(_) | Self::NoResult | Self::Timeout | Self::Limit(_) => Fault::Command,
            Self::Stream(_) => Fault::Engine,
            Self::Aborted { .. } | Self::Job(_) => Fault::Usage,
        }
    }

    fn retry(&self) -> Retry {
        match self {
            Self::Stream(_) | Self::Timeout => Retry::CanHelp,
            Self::Protocol(_)
            | Self::NoResult
            | Self::Aborted { .. }
            | Self::Limit(_)
            | Self::Job(_) => Retry::CannotHelp,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::NoResult => Some(
                "the tool's process ended by itself: look for process.exit, or for a limit"
                    .to_owned(),
            ),
            Self::Limit(limit) => Some(format!("raise `limits.{}` in the policy", limit.row().key)),
            Self::Timeout => Some("raise `limits.wall` in the policy".to_owned()),
            Self::Protocol(_) | Self::Stream(_) | Self::Aborted { .. } | Self::Job(_) => None,
        }
    }
}
