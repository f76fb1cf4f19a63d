//! Why the configuration cannot be used.

use runner_policy::finding::Finding;

use crate::codes::Code;
use crate::error::{Failure, Fault};
use crate::exit::Kind;
use crate::text::counted;

/// The configuration cannot be used, so nothing runs.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// Something in its files is wrong.
    // What is wrong is told by the findings, which stand beside this.
    #[error("the configuration cannot be used ({})", counted(.0.len(), "finding"))]
    Refused(Vec<Finding>),
    /// Neither `HOME` nor `XDG_CONFIG_HOME` says where the user's file is.
    #[error("there is no folder for the user's configuration")]
    NoFolder,
    /// A file could not be read or written.
    #[error("cannot change {file}: {error}")]
    NotWritten {
        /// Which.
        file: String,
        /// Why.
        #[source]
        error: std::io::Error,
    },
    /// A file is laid out so that a program cannot change it safely.
    #[error("{file} is laid out in a way that cannot be changed at one place")]
    ByHand {
        /// Which.
        file: String,
        /// What to write.
        line: String,
    },
}

impl Failure for ConfigError {
    fn code(&self) -> Code {
        match self {
            Self::Refused(_) => Code::ConfigRefused,
            Self::NoFolder | Self::NotWritten { .. } | Self::ByHand { .. } => {
                Code::ConfigNotWritten
            }
        }
    }

    fn kind(&self) -> Kind {
        Kind::Broken
    }

    fn fault(&self) -> Fault {
        Fault::Configuration
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Refused(_) => Some("fix it, then: runner config check".to_owned()),
            Self::NoFolder => Some("set HOME or XDG_CONFIG_HOME".to_owned()),
            Self::NotWritten { .. } => None,
            Self::ByHand { line, .. } => Some(format!("write by hand: {line}")),
        }
    }

    fn findings(&self) -> &[Finding] {
        match self {
            Self::Refused(findings) => findings,
            Self::NoFolder | Self::NotWritten { .. } | Self::ByHand { .. } => &[],
        }
    }
}
