//! Why the doctor came to no report.

use std::io;

use crate::call::CallError;
use crate::codes::Code;
use crate::error::{Failure, Fault};
use crate::exit::Kind;

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum DoctorError {
    /// There is no place to try anything in.
    #[error("cannot make a folder for trials: {0}")]
    TrialFolder(#[source] io::Error),
    /// A call, or the records.
    #[error(transparent)]
    Call(Box<CallError>),
    /// A person ended it.
    #[error("the doctor was cancelled")]
    Cancelled,
}

impl From<CallError> for DoctorError {
    fn from(error: CallError) -> Self {
        Self::Call(Box::new(error))
    }
}

impl Failure for DoctorError {
    fn code(&self) -> Code {
        match self {
            Self::TrialFolder(_) => Code::LocalError,
            Self::Call(error) => error.code(),
            Self::Cancelled => Code::Cancelled,
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Self::TrialFolder(_) => Kind::Broken,
            Self::Call(error) => error.kind(),
            Self::Cancelled => Kind::Interrupted,
        }
    }

    fn fault(&self) -> Fault {
        match self {
            Self::TrialFolder(_) => Fault::Engine,
            Self::Call(error) => error.fault(),
            Self::Cancelled => Fault::Usage,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::TrialFolder(_) => {
                Some("free some space in /var/tmp, or make it writable".to_owned())
            }
            Self::Call(error) => error.hint(),
            Self::Cancelled => None,
        }
    }
}
