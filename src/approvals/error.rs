//! Why a question was not answered, or an answer not taken.

use super::id::ApprovalId;
use crate::codes::Code;
use crate::error::{Failure, Fault, Retry};
use crate::exit::Kind;
use crate::store::StoreError;

/// What to do about a question that is not shown whole by its id.
pub(crate) const ANSWERED_THERE: &str =
    "call it again and answer at the terminal of the call itself";

/// What is wrong with an approval.
#[derive(Debug, thiserror::Error)]
pub enum ApprovalError {
    /// There is no question with this id.
    #[error("there is no question {0}")]
    Unknown(ApprovalId),
    /// It was answered, used up, voided, or it waited too long.
    #[error("the question {id} is over: {state}")]
    Over {
        /// Which.
        id: ApprovalId,
        /// What has become of it.
        state: &'static str,
    },
    /// There is no answer yet.
    #[error("the question {0} has no answer yet")]
    NotYet(ApprovalId),
    /// Parts of it are not shown, so it cannot be answered by its id.
    #[error("the question {0} cannot be answered by its id: parts of it are not shown")]
    NotWhole(ApprovalId),
    /// It is about another call.
    #[error(
        "the approval {0} is about another call: tool, arguments, input, policy, image, folder \
         and workspace must be those of the question"
    )]
    Differs(ApprovalId),
    /// A tool that was approved is not the same any more.
    #[error(
        "the tool {} is not what was approved: {file} has changed",
        .subject.strip_prefix("tool:").unwrap_or(.subject)
    )]
    Changed {
        /// The tool.
        subject: String,
        /// The file that differs.
        file: String,
    },
    /// The code that an approved command runs is not the same any more.
    #[error("the approval does not hold any more: {file} has changed since the question")]
    Stale {
        /// The file of the workspace that differs.
        file: String,
    },
    /// Only a person at a terminal can answer.
    #[error("answering needs a person at a terminal")]
    NoTerminal,
    /// `--yes` is an answer too.
    #[error("`--yes` needs a terminal, as every answer does; nothing was run")]
    NoTerminalForYes,
    /// The answer was not yes.
    #[error("the question {0} was not approved")]
    Declined(ApprovalId),
    /// An option of the answer cannot be meant like this.
    #[error("{0}")]
    BadOption(String),
    /// The rows cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The kernel gave no id.
    #[error("cannot make an id: {0}")]
    NoId(#[source] std::io::Error),
}

impl ApprovalError {
    /// The question that it is about, if it is about one.
    #[must_use]
    pub fn question(&self) -> Option<&ApprovalId> {
        match self {
            Self::Unknown(id)
            | Self::Over { id, .. }
            | Self::NotYet(id)
            | Self::NotWhole(id)
            | Self::Differs(id)
            | Self::Declined(id) => Some(id),
            Self::Changed { .. }
            | Self::Stale { .. }
            | Self::NoTerminal
            | Self::NoTerminalForYes
            | Self::BadOption(_)
            | Self::Store(_)
            | Self::NoId(_) => None,
        }
    }
}

impl Failure for ApprovalError {
    fn code(&self) -> Code {
        match self {
            Self::Unknown(_) => Code::ApprovalUnknown,
            Self::Over { .. } => Code::ApprovalOver,
            Self::NotYet(_) => Code::ApprovalNeeded,
            Self::NotWhole(_) => Code::ApprovalNotWhole,
            Self::Differs(_) | Self::Stale { .. } => Code::ApprovalDiffers,
            Self::Changed { .. } => Code::ToolDigestMismatch,
            Self::NoTerminal | Self::NoTerminalForYes => Code::ApprovalNeedsTerminal,
            Self::Declined(_) => Code::ApprovalDeclined,
            Self::BadOption(_) => Code::Usage,
            Self::Store(error) => error.code(),
            Self::NoId(_) => Code::LocalError,
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Self::Unknown(_) | Self::BadOption(_) => Kind::Usage,
            Self::NotYet(_)
            | Self::NotWhole(_)
            | Self::NoTerminal
            | Self::NoTerminalForYes
            | Self::Declined(_)
            | Self::Over { .. } => Kind::ApprovalNeeded,
            Self::Differs(_) | Self::Changed { .. } | Self::Stale { .. } => Kind::Denied,
            Self::Store(error) => error.kind(),
            Self::NoId(_) => Kind::Broken,
        }
    }

    fn fault(&self) -> Fault {
        match self {
            Self::Store(error) => error.fault(),
            Self::NoId(_) => Fault::Engine,
            Self::Changed { .. } | Self::Stale { .. } => Fault::Command,
            _ => Fault::Usage,
        }
    }

    fn retry(&self) -> Retry {
        match self {
            Self::Store(error) => error.retry(),
            _ => Retry::CannotHelp,
        }
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Unknown(_) => "`runner approvals` lists those that wait".to_owned(),
            Self::Over { .. } | Self::Differs(_) => {
                "call it without --approve: it then asks anew, with a new id".to_owned()
            }
            Self::NotYet(id) => format!("a person can answer: runner approve {id}"),
            Self::NotWhole(_) => ANSWERED_THERE.to_owned(),
            Self::Changed { .. } | Self::Stale { .. } => {
                "look at what changed, then call it again: it is asked about anew".to_owned()
            }
            Self::NoTerminal => "ask a person to run this command".to_owned(),
            Self::NoTerminalForYes => "call it at a terminal; or without --yes, and a person answers with `runner approve ID`; or let programs answer: `approvals: { withoutTerminal: true }` in your own configuration or the managed one".to_owned(),
            Self::Declined(_) => return None,
            Self::BadOption(_) => "`runner approve --help` shows the right form".to_owned(),
            Self::Store(error) => return error.hint(),
            Self::NoId(_) => return None,
        })
    }
}
