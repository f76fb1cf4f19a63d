//! Why no policy could be used.

use std::path::PathBuf;

use runner_policy::finding::{Finding, did_you_mean};

use crate::codes::Code;
use crate::error::{Failure, Fault};
use crate::exit::Kind;

use super::trust::TrustError;

/// No policy can be used, so nothing runs.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// The set is refused as a whole.
    #[error("no policy was loaded: {}", one_or_count(.0))]
    Refused(Vec<Finding>),
    /// No layer has a policy of this name.
    #[error("there is no policy {name}{}", named_in(.from))]
    Unknown {
        /// What was asked for.
        name: String,
        /// What there is.
        known: Vec<String>,
        /// The file and line of a configuration that names it.
        from: Option<String>,
    },
    /// A project's policy that nobody has pinned in its present form.
    #[error(
        "policy {name} ({file}) comes with the workspace and is not trusted in its present form"
    )]
    Untrusted {
        /// Its name.
        name: String,
        /// Its file.
        file: String,
        /// The workspace.
        workspace: PathBuf,
    },
    /// The pins cannot be used.
    #[error(transparent)]
    Trust(#[from] TrustError),
}

/// The place of a configuration that names a policy.
fn named_in(from: &Option<String>) -> String {
    from.as_ref().map(|place| format!(", which {place} names")).unwrap_or_default()
}

/// The finding itself if there is one, else how many there are.
fn one_or_count(findings: &[Finding]) -> String {
    match findings {
        [one] => one.to_string(),
        many => format!("{} findings", many.len()),
    }
}

impl Failure for PolicyError {
    fn code(&self) -> Code {
        match self {
            Self::Refused(_) => Code::PolicyRefused,
            Self::Unknown { .. } => Code::PolicyUnknown,
            Self::Untrusted { .. } => Code::PolicyUntrusted,
            Self::Trust(error) => error.code(),
        }
    }

    fn kind(&self) -> Kind {
        Kind::Broken
    }

    fn fault(&self) -> Fault {
        match self {
            Self::Refused(_) | Self::Untrusted { .. } => Fault::Policy,
            Self::Unknown { .. } => Fault::Usage,
            Self::Trust(error) => error.fault(),
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Refused(_) => Some("fix the policy, then: runner policy check".to_owned()),
            Self::Unknown { name, known, .. } => {
                Some(match did_you_mean(name, known.iter().map(String::as_str)) {
                    Some(near) => format!("did you mean {near}?"),
                    None => format!("there are: {}", known.join(", ")),
                })
            }
            Self::Untrusted { name, workspace, .. } => Some(format!(
                "read it, then, in a terminal in {}: runner policy trust {name}",
                workspace.display()
            )),
            Self::Trust(error) => error.hint(),
        }
    }

    fn findings(&self) -> &[Finding] {
        match self {
            Self::Refused(findings) => findings,
            Self::Unknown { .. } | Self::Untrusted { .. } | Self::Trust(_) => &[],
        }
    }
}
