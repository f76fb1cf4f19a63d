//! Why a tool was not compiled.

use std::fmt;
use std::io;
use std::path::PathBuf;

use runner_policy::finding::Finding;

use super::compiled::Changed;
use crate::error::{Failure, Fault, Retry};
use crate::exit::Kind;
use runner_compiler::limits::{ADDRESS_SPACE, CPU_SECONDS, WALL};

/// Why a tool was not compiled.
#[derive(Debug)]
pub enum CompileError {
    /// The source has errors.
    Source(Vec<Finding>),
    /// The tool's file or folder cannot be read.
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file is not what was compiled: it changed meanwhile.
    Changed(Changed),
    /// The compiler could not be confined, so it read nothing.
    Unconfined {
        /// What was refused.
        why: String,
    },
    /// It took too long.
    Timeout {
        /// The tool's file, as it is shown.
        file: String,
    },
    /// It took too much memory.
    Memory {
        /// The tool's file, as it is shown.
        file: String,
    },
    /// The source is nested too deeply.
    Depth {
        /// The tool's file, as it is shown.
        file: String,
    },
    /// The compiler ended without an answer.
    Crashed {
        /// The tool's file, as it is shown.
        file: String,
        /// How it ended, and its last words.
        how: String,
    },
    /// The compiler could not be started or talked to.
    Process {
        /// What failed.
        what: &'static str,
        /// Why.
        source: io::Error,
    },
}

impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Source(findings) => match findings.as_slice() {
                [one] => write!(f, "the tool cannot be compiled: {}", one.message),
                more => write!(f, "the tool cannot be compiled: {} errors", more.len()),
            },
            Self::Unreadable { path, source } => {
                write!(f, "cannot read {}: {source}", path.display())
            }
            Self::Changed(changed) => write!(f, "{changed}"),
            Self::Unconfined { why } => write!(f, "the compiler cannot be confined: {why}"),
            Self::Timeout { file } => {
                write!(
                    f,
                    "compiling {file} took more than {CPU_SECONDS} s of processor time or {} s",
                    WALL.as_secs()
                )
            }
            Self::Memory { file } => {
                write!(f, "compiling {file} took more than {} MiB of memory", ADDRESS_SPACE >> 20)
            }
            Self::Depth { file } => {
                write!(f, "{file} or a file it imports is nested too deeply to compile")
            }
            Self::Crashed { file, how } => write!(f, "the compiler broke on {file}: {how}"),
            Self::Process { what, source } => write!(f, "cannot {what} the compiler: {source}"),
        }
    }
}

impl std::error::Error for CompileError {}

impl Failure for CompileError {
    fn code(&self) -> &'static str {
        match self {
            Self::Source(_) => "tool_source",
            Self::Unreadable { .. } => "tool_unreadable",
            Self::Changed(_) => "tool_digest_mismatch",
            Self::Unconfined { .. } => "compiler_unconfined",
            Self::Timeout { .. } => "compiler_timeout",
            Self::Memory { .. } => "compiler_memory",
            Self::Depth { .. } => "compiler_depth",
            Self::Crashed { .. } => "compiler_crashed",
            Self::Process { .. } => "compiler_process",
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
