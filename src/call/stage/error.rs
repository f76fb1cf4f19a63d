//! Why the changes of a call were not applied, or a stage could not be looked at.

use std::io;

use crate::codes::Code;
use crate::error::{Failure, Fault, Retry};
use crate::exit::Kind;
use crate::stage::apply::ApplyError;
use crate::stage::folder::StageError;
use crate::stage::leads::UnknownLeads;
use crate::stage::turn::TurnError;
use crate::stage::walk::WalkError;

/// Why changes stay where they are.
#[derive(Debug, thiserror::Error)]
pub enum StagedError {
    /// A process of the call may still write.
    #[error("the sandbox could not be ended, so that its changes may not be complete")]
    Restless,
    /// The stage cannot be used.
    #[error(transparent)]
    Stage(#[from] StageError),
    /// The stage cannot be walked.
    #[error(transparent)]
    Walk(#[from] WalkError),
    /// It cannot be applied.
    #[error(transparent)]
    Apply(#[from] ApplyError),
    /// It is not known what the host would run.
    #[error(transparent)]
    OuterGit(#[from] UnknownLeads),
    /// The workspace cannot be looked through, to judge kept changes again.
    #[error("it is not known what the host runs: {0}")]
    Around(String),
    /// Others change the folders.
    #[error(transparent)]
    Turn(#[from] TurnError),
    /// The stages cannot be listed or opened.
    #[error("cannot {0}: {1}")]
    Local(&'static str, #[source] io::Error),
    /// No call of this name has changes that were held back.
    #[error("no changes of {0} were held back")]
    None(String),
    /// A path that is not among them.
    #[error("{path} is not among the changes of {call} that were held back")]
    NotHeld {
        /// The path as it was named.
        path: String,
        /// The call.
        call: String,
    },
    /// A person did not want them applied.
    #[error("not applied")]
    Declined,
}

impl Failure for StagedError {
    fn code(&self) -> Code {
        match self {
            Self::None(_) | Self::NotHeld { .. } => Code::NothingHeld,
            Self::Declined => Code::ApprovalDenied,
            Self::Restless
            | Self::Stage(_)
            | Self::Walk(_)
            | Self::Apply(_)
            | Self::OuterGit(_)
            | Self::Around(_)
            | Self::Turn(_)
            | Self::Local(..) => Code::ChangesNotApplied,
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Self::None(_) | Self::NotHeld { .. } => Kind::Usage,
            Self::Declined => Kind::ApprovalNeeded,
            Self::Restless
            | Self::Stage(_)
            | Self::Walk(_)
            | Self::Apply(_)
            | Self::OuterGit(_)
            | Self::Around(_)
            | Self::Turn(_)
            | Self::Local(..) => Kind::Broken,
        }
    }

    fn fault(&self) -> Fault {
        match self {
            Self::None(_) | Self::NotHeld { .. } | Self::Declined | Self::OuterGit(_) => {
                Fault::Usage
            }
            Self::Walk(_) => Fault::Command,
            Self::Restless
            | Self::Stage(_)
            | Self::Apply(_)
            | Self::Around(_)
            | Self::Turn(_)
            | Self::Local(..) => Fault::Engine,
        }
    }

    fn retry(&self) -> Retry {
        Retry::CannotHelp
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::None(_) => Some("`runner stage list` shows the calls that have some".to_owned()),
            Self::NotHeld { call, .. } => {
                Some(format!("`runner stage show {call}` lists their paths"))
            }
            Self::Apply(ApplyError::Between { .. })
            | Self::Turn(TurnError::Interrupted(_))
            | Self::Apply(ApplyError::Turn(TurnError::Interrupted(_))) => {
                Some("`runner gc` finishes it, or takes it back".to_owned())
            }
            Self::Turn(TurnError::Busy(..)) => Some(
                "they are kept: `runner stage list` names them, `runner stage apply` applies them"
                    .to_owned(),
            ),
            Self::OuterGit(UnknownLeads::NotUnderstood(file)) => Some(format!(
                "mend it: `git config --file {} --list` names the line",
                file.display()
            )),
            Self::OuterGit(UnknownLeads::TooMany(_)) => {
                Some("look at their `include.path` for a circle".to_owned())
            }
            Self::Declined
            | Self::Restless
            | Self::Stage(_)
            | Self::Walk(_)
            | Self::Apply(_)
            | Self::Around(_)
            | Self::Turn(_)
            | Self::Local(..) => None,
        }
    }
}
