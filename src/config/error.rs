//! Why the configuration cannot be used.

use std::fmt;

use runner_policy::finding::Finding;

use crate::error::{Failure, Fault};
use crate::exit::Kind;
use crate::text::counted;

/// The configuration cannot be used, so nothing runs.
#[derive(Debug)]
pub enum ConfigError {
    /// Something in its files is wrong.
    Refused(Vec<Finding>),
    /// Neither `HOME` nor `XDG_CONFIG_HOME` says where the user's file is.
    NoFolder,
    /// A file could not be read or written.
    NotWritten {
        /// Which.
        file: String,
        /// Why.
        error: std::io::Error,
    },
    /// A file is laid out so that a program cannot change it safely.
    ByHand {
        /// Which.
        file: String,
        /// What to write.
        line: String,
    },
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // What is wrong is told by the findings, which stand beside this.
            Self::Refused(findings) => {
                let count = counted(findings.len(), "finding");
                write!(f, "the configuration cannot be used ({count})")
            }
            Self::NoFolder => f.write_str("there is no folder for the user's configuration"),
            Self::NotWritten { file, error } => write!(f, "cannot change {file}: {error}"),
            Self::ByHand { file, .. } => {
                write!(f, "{file} is laid out in a way that cannot be changed at one place")
            }
        }
    }
}

impl std::error::Error for ConfigError {}

impl Failure for ConfigError {
    fn code(&self) -> &'static str {
        match self {
            Self::Refused(_) => "config_refused",
            Self::NoFolder | Self::NotWritten { .. } | Self::ByHand { .. } => "config_not_written",
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
            Self::Refused(_) => Some("mend it, then: runner config check".to_owned()),
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
