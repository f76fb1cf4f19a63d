//! Why a tool was not compiled.

use std::io;
use std::path::PathBuf;

use runner_policy::finding::Finding;

use super::compiled::Changed;
use crate::codes::Code;
use crate::error::{Failure, Fault, Retry};
use crate::exit::Kind;
use runner_compiler::limits::{ADDRESS_SPACE, CPU_SECONDS, WALL};

/// Why a tool was not compiled.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    /// The source has errors.
    #[error("the tool cannot be compiled: {}", one_or_count(.0))]
    Source(Vec<Finding>),
    /// The tool's file or folder cannot be read.
    #[error("cannot read {path}: {source}")]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file is not what was compiled: it changed meanwhile.
    #[error("{0}")]
    Changed(Changed),
    /// The compiler could not be confined, so it read nothing.
    #[error("the compiler cannot be confined: {why}")]
    Unconfined {
        /// What was refused.
        why: String,
    },
    /// It took too long.
    #[error(
        "compiling {file} took more than {CPU_SECONDS} s of processor time or {} s",
        WALL.as_secs()
    )]
    Timeout {
        /// The tool's file, as it is shown.
        file: String,
    },
    /// It took too much memory.
    #[error("compiling {file} took more than {} MiB of memory", ADDRESS_SPACE >> 20)]
    Memory {
        /// The tool's file, as it is shown.
        file: String,
    },
    /// The source is nested too deeply.
    #[error("{file} or a file it imports is nested too deeply to compile")]
    Depth {
        /// The tool's file, as it is shown.
        file: String,
    },
    /// The compiler ended without an answer.
    #[error("the compiler broke on {file}: {how}")]
    Crashed {
        /// The tool's file, as it is shown.
        file: String,
        /// How it ended, and its last words.
        how: String,
    },
    /// The compiler could not be started or talked to.
    #[error("cannot {what} the compiler: {source}")]
    Process {
        /// What failed.
        what: &'static str,
        /// Why.
        source: io::Error,
    },
}

/// The message of the finding if there is one, else how many there are.
fn one_or_count(findings: &[Finding]) -> String {
    match findings {
        [one] => one.message.clone(),
        more => format!("{} errors", more.len()),
    }
}

impl Failure for CompileError {
    fn code(&self) -> Code {
        match self {
            Self::Source(_) => Code::ToolSource,
            Self::Unreadable { .. } => Code::ToolUnreadable,
            Self::Changed(_) => Code::ToolDigestMismatch,
            Self::Unconfined { .. } => Code::CompilerUnconfined,
            Self::Timeout { .. } => Code::CompilerTimeout,
            Self::Memory { .. } => Code::CompilerMemory,
            Self::Depth { .. } => Code::CompilerDepth,
            Self::Crashed { .. } => Code::CompilerCrashed,
            Self::Process { .. } => Code::CompilerProcess,
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Self::Timeout { .. } | Self::Memory { .. } | Self::Depth { .. } => Kind::Limit,
            Self::Changed(_) => Kind::Denied,
            Self::Source(_)
            | Self::Unreadable { .. }
            | Self::Unconfined { .. }
            | Self::Crashed { .. }
            | Self::Process { .. } => Kind::Broken,
        }
    }

    fn fault(&self) -> Fault {
        match self {
            Self::Source(_)
            | Self::Unreadable { .. }
            | Self::Changed(_)
            | Self::Timeout { .. }
            | Self::Memory { .. }
            | Self::Depth { .. } => Fault::Command,
            Self::Unconfined { .. } | Self::Process { .. } => Fault::Engine,
            Self::Crashed { .. } => Fault::Runner,
        }
    }

    fn retry(&self) -> Retry {
        match self {
            Self::Process { .. } => Retry::CanHelp,
            _ => Retry::CannotHelp,
        }
    }

    fn hint(&self) -> Option<String> {
        Some(
            match self {
                Self::Unconfined { .. } => {
                    "tools are compiled only under Landlock: use Linux 5.13 or newer with `landlock` in \
                     /sys/kernel/security/lsm; inside a container its system calls must be allowed"
                }
                Self::Unreadable { .. } => "a tool is a regular file, not a link, in a folder that is not a link",
                Self::Changed(_) => "look at what changed; then approve or run it again",
                Self::Timeout { .. } | Self::Memory { .. } => {
                    "import less: packages, large data and generated code count"
                }
                Self::Depth { .. } => "split deeply nested expressions, or read data from a file when it runs",
                Self::Crashed { .. } => "please report it with the tool, if it can be shown",
                Self::Source(_) | Self::Process { .. } => return None,
            }
            .to_owned(),
        )
    }

    fn findings(&self) -> &[Finding] {
        match self {
            Self::Source(findings) => findings,
            _ => &[],
        }
    }
}
