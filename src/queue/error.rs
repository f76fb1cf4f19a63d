//! Why a call got no place.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::codes::Code;
use crate::error::{Failure, Fault, Retry};
use crate::exit::Kind;
use crate::sandbox::outcome::CancelCause;

/// How long to wait before another try if all places are taken. When a call ends is unknown; a try at this interval costs
/// almost nothing.
const AGAIN: Duration = Duration::from_secs(1);

/// A call that did not get in.
#[derive(Debug, thiserror::Error)]
pub enum QueueError {
    /// All places are taken, those for waiting too.
    #[error(
        "too many calls of {subject} at once: {} running and {} waiting",
        are(*.running),
        are(*.waiting)
    )]
    Busy {
        /// Whose queue it is.
        subject: String,
        /// Calls that may run at once.
        running: u16,
        /// Calls that may wait.
        waiting: u16,
    },
    /// It waited for as long as the call may take.
    #[error(
        "the call waited {} s in the queue of {subject}, and may not take longer",
        .waited.as_secs()
    )]
    Timeout {
        /// Whose queue it is.
        subject: String,
        /// How long that was.
        waited: Duration,
    },
    /// It was cancelled while it waited.
    #[error("the call was cancelled while it waited in the queue")]
    Cancelled(CancelCause),
    /// There is no folder for our state.
    #[error("there is no folder for the queue of calls")]
    NoFolder,
    /// A file of the queue cannot be used.
    #[error("cannot use {0} for the queue of calls: {1}")]
    File(PathBuf, #[source] io::Error),
}

/// A count with its verb.
fn are(count: u16) -> String {
    match count {
        1 => "1 is".to_owned(),
        count => format!("{count} are"),
    }
}

impl Failure for QueueError {
    fn code(&self) -> Code {
        match self {
            Self::Busy { .. } => Code::Busy,
            Self::Timeout { .. } => Code::Timeout,
            Self::Cancelled(_) => Code::Cancelled,
            Self::NoFolder => Code::StoreNoFolder,
            Self::File(..) => Code::LocalError,
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Self::Busy { .. } => Kind::Busy,
            Self::Timeout { .. } => Kind::Timeout,
            Self::Cancelled(CancelCause::Interrupt) => Kind::Interrupted,
            Self::Cancelled(_) => Kind::Terminated,
            Self::NoFolder | Self::File(..) => Kind::Broken,
        }
    }

    fn fault(&self) -> Fault {
        match self {
            // The configuration says how many there may be.
            Self::Busy { .. } => Fault::Configuration,
            Self::Timeout { .. } | Self::Cancelled(_) => Fault::Usage,
            Self::NoFolder | Self::File(..) => Fault::Engine,
        }
    }

    fn retry(&self) -> Retry {
        match self {
            Self::Busy { .. } | Self::Timeout { .. } => Retry::CanHelp,
            Self::Cancelled(_) | Self::NoFolder | Self::File(..) => Retry::CannotHelp,
        }
    }

    fn retry_after(&self) -> Option<Duration> {
        matches!(self, Self::Busy { .. }).then_some(AGAIN)
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Busy { .. } => Some(format!(
                "try again in {} s: `runner ps` lists those that run; `limits.concurrency` and `limits.queue` of the configuration say how many may",
                AGAIN.as_secs()
            )),
            Self::Timeout { .. } => {
                Some("try again later, or let the call take longer with `--timeout`".to_owned())
            }
            Self::Cancelled(_) => None,
            Self::NoFolder => Some("set HOME, or XDG_STATE_HOME to an absolute path".to_owned()),
            Self::File(..) => Some("check the state folder".to_owned()),
        }
    }
}
