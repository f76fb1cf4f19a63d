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
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // What is wrong is told by the findings, which stand beside this.
            Self::Refused(findings) => {
                let count = counted(findings.len(), "finding");
                write!(f, "the configuration cannot be used ({count})")
            }
        }
    }
}

impl std::error::Error for ConfigError {}

impl Failure for ConfigError {
    fn code(&self) -> &'static str {
        match self {
            Self::Refused(_) => "config_refused",
        }
    }

    fn kind(&self) -> Kind {
        Kind::Broken
    }

    fn fault(&self) -> Fault {
        Fault::Configuration
    }

    fn hint(&self) -> Option<String> {
        Some("mend it, then: runner config check".to_owned())
    }

    fn findings(&self) -> &[Finding] {
        match self {
            Self::Refused(findings) => findings,
        }
    }
}
