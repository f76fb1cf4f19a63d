//! How a call ended, and what decided it when several things were true at once.
//!
//! | rank | verdict | source of truth |
//! | --- | --- | --- |
//! | 1 | error ([`RunError`]) | the engine, the wire, or the identity of a mount |
//! | 2 | cancelled | the host: a signal, or the reader of the output closed it |
//! | 3 | timeout | the guest's clock; the host's while there is no guest, or a few seconds later if it does not answer |
//! | 4 | limit `free-space` | the host's look at the writable mounts' file systems |
//! | 5 | limit `output-max` | the guest's count of both streams |
//! | 6 | limit `pids` | the pids controller's count of refusals: the first one ends the call |
//! | 7 | limit `open-files` | the guest's look at the processes' tables, once a second |
//! | 8 | oom | the memory controller's count of kills, and the command did not succeed |
//! | 9 | limit `cpu-time` | SIGXCPU, or SIGKILL of a process that had used up its time |
//! | 10 | limit `file-size` | SIGXFSZ |
//! | 11 | not found, not executable, no working directory | the kernel's answer to exec and chdir |
//! | 12 | failed, completed | the command's own status |
//!
//! A command that lost a process to memory, time or size and still succeeded is completed; the limit
//! is listed among the hits of the outcome. An exit status of 137 is never taken for a lack of memory.

use std::path::PathBuf;
use std::time::Duration;

use runner_policy::limits::Limit;
use runner_wire::{Broken, Bytes, Cause, Ending, Exit, Fatal, LimitHit, WireError};

use crate::codes::Code;
use crate::engine::EngineError;
use crate::error::{Failure, Fault, Retry};
use crate::exit::Kind;

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// With status 0.
    Completed,
    /// With another status.
    Failed {
        /// Its status.
        status: i32,
    },
    /// By a signal that was not ours.
    Signalled {
        /// The signal.
        signal: i32,
    },
    /// Its time was over.
    Timeout,
    /// It reached its memory limit.
    Oom,
    /// Another limit.
    Limit(Limit),
    /// It was cancelled.
    Cancelled(CancelCause),
    /// There is no such program in the sandbox.
    NotFound {
        /// Its name.
        program: Bytes,
    },
    /// The program cannot be executed.
    NotExecutable {
        /// Its name.
        program: Bytes,
        /// The kernel's number for why.
        errno: i32,
    },
    /// The working directory cannot be entered.
    NoCwd {
        /// The kernel's number for why.
        errno: i32,
    },
    /// A word of a line became what had not been judged.
    Assumption(Broken),
}

/// Who ended a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelCause {
    /// SIGINT.
    Interrupt,
    /// SIGTERM, or a request to cancel.
    Terminate,
    /// The reader of the output closed it.
    OutputClosed,
    /// The broker does not listen to the tool any more; it says why.
    BrokerEnded,
}

/// Time by phase, one after the other unless said. What the engine is asked before the first is in `total` alone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Phases {
    /// Looking through the workspace and planning the sandbox; one that waited is woken beside it.
    pub plan: Duration,
    /// Image.
    pub prepare: Duration,
    /// Looking for a sandbox that waits, and taking it.
    pub claim: Duration,
    /// Connecting to one that waited.
    pub attach: Duration,
    /// Making the container.
    pub create: Duration,
    /// From the start, or from the hello to one that waited, to the guest's first word.
    pub start: Duration,
    /// Checking what it said, and sending the command.
    pub check: Duration,
    /// From sending the command to its end.
    pub run: Duration,
    /// Writing the last output.
    pub end: Duration,
    /// Judging and applying what it changed.
    pub apply: Duration,
    /// From the first word with the engine to now, by the clock: also what lies between them, such as waiting sandboxes
    /// that were tried and discarded.
    pub total: Duration,
}

/// Works a verdict out by the table above.
#[must_use]
pub fn verdict(exit: &Exit, cancelled: Option<CancelCause>) -> Verdict {
    let hit = |hit: LimitHit| exit.hits.contains(&hit);
    let succeeded = exit.ending == Ending::Exited { status: 0 };
    if let Ending::Stopped { cause } = exit.ending {
        return match cause {
            Cause::Cancel => Verdict::Cancelled(cancelled.unwrap_or(CancelCause::Terminate)),
            Cause::Wall => Verdict::Timeout,
            Cause::Output => Verdict::Limit(Limit::OutputMax),
            Cause::Pids => Verdict::Limit(Limit::Pids),
            Cause::OpenFiles => Verdict::Limit(Limit::OpenFiles),
            Cause::Memory => Verdict::Oom,
        };
    }
    if hit(LimitHit::Pids) {
        return Verdict::Limit(Limit::Pids);
    }
    if succeeded {
        return Verdict::Completed;
    }
    if hit(LimitHit::Memory) {
        return Verdict::Oom;
    }
    if hit(LimitHit::CpuTime) {
        return Verdict::Limit(Limit::CpuTime);
    }
    if hit(LimitHit::FileSize) {
        return Verdict::Limit(Limit::FileSize);
    }
    match &exit.ending {
        Ending::Exited { status } => Verdict::Failed { status: *status },
        Ending::Signalled { signal } => Verdict::Signalled { signal: *signal },
        Ending::NotFound { program } => Verdict::NotFound { program: program.clone() },
        Ending::NotExecutable { program, errno } => {
            Verdict::NotExecutable { program: program.clone(), errno: *errno }
        }
        Ending::NoCwd { errno } => Verdict::NoCwd { errno: *errno },
        Ending::Assumption(broken) => Verdict::Assumption(broken.clone()),
        Ending::Stopped { .. } => Verdict::Timeout,
    }
}

/// Why a call could not be carried out; whatever ran was ended.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The engine.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// What is to run is longer than a message to the guest may be. It was not sent.
    #[error(
        "the command with its variables takes {bytes} bytes, and the most that can be sent to a \
         sandbox are {most}"
    )]
    TooLong {
        /// Its length.
        bytes: u32,
        /// The longest.
        most: usize,
    },
    /// The guest's bytes break the protocol. The error is final: the bytes may be forged.
    #[error("the sandbox broke the protocol and was ended: {0}")]
    Protocol(#[from] WireError),
    /// Something else than planned is mounted. The command was not sent.
    #[error("{target} in the sandbox is not what was planned ({why}); the command was not sent")]
    Identity {
        /// Where.
        target: PathBuf,
        /// How it differs.
        why: &'static str,
    },
    /// The guest's own standing is weaker than planned. The command was not sent.
    #[error("the sandbox is weaker than planned ({why}); the command was not sent")]
    Standing {
        /// What is wrong.
        why: &'static str,
    },
    /// The guest cannot go on.
    #[error("the guest failed: {}", .0.message)]
    Guest(Fatal),
    /// The guest ended without a word.
    #[error("the sandbox ended without a word{}", after_colon(.noise))]
    GuestLost {
        /// The end of what it wrote to standard error.
        noise: String,
    },
    /// The guest did not answer in time.
    #[error("the sandbox did not answer in time")]
    GuestSilent,
    /// Something on this machine failed.
    #[error("cannot {operation}: {source}")]
    Local {
        /// What was tried.
        operation: &'static str,
        /// Why not.
        source: std::io::Error,
    },
}

/// The text after a colon, or nothing if it is empty.
fn after_colon(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(": {text}") }
}

impl Failure for RunError {
    fn code(&self) -> Code {
        match self {
            Self::Engine(error) => error.code(),
            Self::TooLong { .. } => Code::JobTooLong,
            Self::Protocol(_) => Code::ProtocolError,
            Self::Identity { .. } => Code::MountIdentity,
            Self::Standing { .. } => Code::SandboxWeaker,
            Self::Guest(_) => Code::GuestFailed,
            Self::GuestLost { .. } => Code::GuestLost,
            Self::GuestSilent => Code::GuestSilent,
            Self::Local { .. } => Code::LocalError,
        }
    }

    fn kind(&self) -> Kind {
        Kind::Broken
    }

    fn fault(&self) -> Fault {
        match self {
            Self::Engine(error) => error.fault(),
            Self::TooLong { .. } | Self::Protocol(_) => Fault::Command,
            Self::Identity { .. } | Self::Standing { .. } => Fault::Engine,
            Self::Guest(_) => Fault::Runner,
            Self::GuestLost { .. } | Self::GuestSilent | Self::Local { .. } => Fault::Engine,
        }
    }

    fn retry(&self) -> Retry {
        match self {
            Self::Engine(error) => error.retry(),
            Self::GuestLost { .. } | Self::GuestSilent => Retry::CanHelp,
            Self::TooLong { .. }
            | Self::Protocol(_)
            | Self::Identity { .. }
            | Self::Standing { .. }
            | Self::Guest(_)
            | Self::Local { .. } => Retry::CannotHelp,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Engine(error) => error.hint(),
            Self::TooLong { .. } => {
                Some("pass what is long on standard input, or in a file".to_owned())
            }
            Self::Identity { .. } => Some(
                "something changed the workspace, or put a link in it, while the sandbox was made; look at that path"
                    .to_owned(),
            ),
            Self::Standing { .. } => {
                Some("the engine or its runtime does not apply the settings it was given".to_owned())
            }
            Self::GuestLost { .. } | Self::GuestSilent => {
                Some("look at the engine's log".to_owned())
            }
            Self::Protocol(_) | Self::Guest(_) | Self::Local { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use runner_wire::{Programs, Usage};

    use super::*;

    fn exit(ending: Ending, hits: &[LimitHit]) -> Exit {
        let (programs, usage) = (Programs::default(), Usage::default());
        Exit { ending, hits: hits.to_vec(), programs, left_running: 0, usage }
    }

    #[test]
    fn the_first_row_of_the_table_that_is_true_decides() {
        let killed = || Ending::Signalled { signal: 9 };
        let stopped = |cause| Ending::Stopped { cause };
        let all = [LimitHit::Memory, LimitHit::CpuTime, LimitHit::FileSize];
        for (exit, expected) in [
            (exit(stopped(Cause::Cancel), &all), Verdict::Cancelled(CancelCause::Interrupt)),
            (exit(stopped(Cause::Wall), &all), Verdict::Timeout),
            (exit(stopped(Cause::Output), &all), Verdict::Limit(Limit::OutputMax)),
            (exit(killed(), &all), Verdict::Oom),
            (exit(killed(), &all[1..]), Verdict::Limit(Limit::CpuTime)),
            (exit(killed(), &all[2..]), Verdict::Limit(Limit::FileSize)),
            (exit(stopped(Cause::OpenFiles), &all), Verdict::Limit(Limit::OpenFiles)),
            (exit(stopped(Cause::Memory), &all), Verdict::Oom),
            (exit(Ending::Exited { status: 0 }, &[LimitHit::Pids]), Verdict::Limit(Limit::Pids)),
            (exit(Ending::Exited { status: 1 }, &[LimitHit::Pids]), Verdict::Limit(Limit::Pids)),
            (exit(Ending::Exited { status: 137 }, &[]), Verdict::Failed { status: 137 }),
            (exit(killed(), &[]), Verdict::Signalled { signal: 9 }),
            (exit(Ending::Exited { status: 0 }, &all), Verdict::Completed),
            (exit(Ending::NoCwd { errno: 2 }, &[]), Verdict::NoCwd { errno: 2 }),
        ] {
            assert_eq!(verdict(&exit, Some(CancelCause::Interrupt)), expected);
        }
    }
}
