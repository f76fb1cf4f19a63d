//! How a run of `runner` ends: the exit codes, and the status that tells them apart.
//!
//! Duty: one table of codes, and the one mapping from what happened to a code. A command inside a
//! sandbox may return any of these numbers itself, so the [`Status`] travels beside the code, in
//! `--json` and on `--status-fd`.

use serde::Serialize;

use crate::codes::Code;

/// An exit code of the `runner` process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct ExitCode(u8);

impl ExitCode {
    /// Everything went well.
    pub const OK: Self = Self(0);
    /// The command line of `runner` is wrong.
    pub const USAGE: Self = Self(2);
    /// The ledger is not what was recorded.
    pub const TAMPERED: Self = Self(65);
    /// Too much is going on at once; later may work.
    pub const BUSY: Self = Self(75);
    /// A person has to approve the call first.
    pub const APPROVAL_NEEDED: Self = Self(77);
    /// A limit other than time or memory ended the call.
    pub const LIMIT: Self = Self(121);
    /// The call ran out of time.
    pub const TIMEOUT: Self = Self(124);
    /// `runner`, its engine, a policy or the configuration is broken; nothing ran, or what ran was ended.
    pub const ERROR: Self = Self(125);
    /// The policy denies the call.
    pub const DENIED: Self = Self(126);
    /// There is no such program in the sandbox.
    pub const NOT_FOUND: Self = Self(127);
    /// Ended by SIGINT.
    pub const INTERRUPTED: Self = Self(130);
    /// The call ran out of memory.
    pub const OUT_OF_MEMORY: Self = Self(137);
    /// Ended by SIGTERM.
    pub const TERMINATED: Self = Self(143);

    /// The command's own code, passed on unchanged.
    #[must_use]
    pub const fn of_command(code: u8) -> Self {
        Self(code)
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }
}

impl From<ExitCode> for std::process::ExitCode {
    fn from(code: ExitCode) -> Self {
        Self::from(code.0)
    }
}

/// The documented codes, in order. `--help` shows them; `docs/reference` is generated from them.
pub const TABLE: [(ExitCode, &str); 13] = [
    (ExitCode::OK, "success; for `policy explain`: allowed"),
    (ExitCode::USAGE, "wrong usage of runner itself"),
    (ExitCode::TAMPERED, "`audit verify`: the ledger is not what was recorded"),
    (ExitCode::BUSY, "busy: too many calls at once, try again later"),
    (ExitCode::APPROVAL_NEEDED, "the policy asks for approval"),
    (ExitCode::LIMIT, "a limit other than time or memory ended the call"),
    (ExitCode::TIMEOUT, "the call ran out of time"),
    (ExitCode::ERROR, "error of runner, its engine, a policy or the configuration"),
    (ExitCode::DENIED, "the policy denies the call"),
    (ExitCode::NOT_FOUND, "program not found"),
    (ExitCode::INTERRUPTED, "interrupted (SIGINT)"),
    (ExitCode::OUT_OF_MEMORY, "the call ran out of memory"),
    (ExitCode::TERMINATED, "terminated (SIGTERM)"),
];

/// The word for how a run ended, in `--json` and on `--status-fd`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It ran and ended with code 0.
    Completed,
    /// It ran and ended with its own code.
    Failed,
    /// The policy denies it.
    Denied,
    /// The policy wants approval first.
    NeedsApproval,
    /// It ran out of time.
    Timeout,
    /// It ran out of memory.
    Oom,
    /// Another limit ended it.
    Limit,
    /// Someone ended it.
    Cancelled,
    /// It could not be run, or the run broke.
    Error,
}

impl Status {
    /// The word as JSON has it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Denied => "denied",
            Self::NeedsApproval => "needs_approval",
            Self::Timeout => "timeout",
            Self::Oom => "oom",
            Self::Limit => "limit",
            Self::Cancelled => "cancelled",
            Self::Error => "error",
        }
    }
}

/// What went wrong, as far as the exit code is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The command line of `runner` is wrong.
    Usage,
    /// The ledger is not what was recorded.
    Tampered,
    /// Too much at once.
    Busy,
    /// A person has to approve.
    ApprovalNeeded,
    /// A limit other than time or memory.
    Limit,
    /// Out of time.
    Timeout,
    /// Broken: runner, engine or policy.
    Broken,
    /// Denied by policy.
    Denied,
    /// No such program.
    ProgramNotFound,
    /// SIGINT.
    Interrupted,
    /// SIGTERM.
    Terminated,
    /// Out of memory.
    OutOfMemory,
}

impl Kind {
    /// The documented exit code.
    #[must_use]
    pub const fn exit(self) -> ExitCode {
        match self {
            Self::Usage => ExitCode::USAGE,
            Self::Tampered => ExitCode::TAMPERED,
            Self::Busy => ExitCode::BUSY,
            Self::ApprovalNeeded => ExitCode::APPROVAL_NEEDED,
            Self::Limit => ExitCode::LIMIT,
            Self::Timeout => ExitCode::TIMEOUT,
            Self::Broken => ExitCode::ERROR,
            Self::Denied => ExitCode::DENIED,
            Self::ProgramNotFound => ExitCode::NOT_FOUND,
            Self::Interrupted => ExitCode::INTERRUPTED,
            Self::Terminated => ExitCode::TERMINATED,
            Self::OutOfMemory => ExitCode::OUT_OF_MEMORY,
        }
    }

    /// The word that tells it apart from a command's own code.
    #[must_use]
    pub const fn status(self) -> Status {
        match self {
            Self::Usage | Self::Tampered | Self::Busy | Self::Broken | Self::ProgramNotFound => {
                Status::Error
            }
            Self::ApprovalNeeded => Status::NeedsApproval,
            Self::Limit => Status::Limit,
            Self::Timeout => Status::Timeout,
            Self::Denied => Status::Denied,
            Self::Interrupted | Self::Terminated => Status::Cancelled,
            Self::OutOfMemory => Status::Oom,
        }
    }
}

/// How a run ended: what the process returns and what `--status-fd` says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Ending {
    /// The word.
    pub status: Status,
    /// The number.
    pub exit: ExitCode,
    /// The stable code of a denial or an error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<Code>,
}

impl Ending {
    /// Everything went well.
    #[must_use]
    pub const fn ok() -> Self {
        Self { status: Status::Completed, exit: ExitCode::OK, code: None }
    }

    /// The command ran and ended with this code.
    #[must_use]
    pub const fn of_command(code: u8) -> Self {
        let status = if code == 0 { Status::Completed } else { Status::Failed };
        Self { status, exit: ExitCode::of_command(code), code: None }
    }

    /// It went wrong in this way, with this stable code.
    #[must_use]
    pub const fn of_kind(kind: Kind, code: Code) -> Self {
        Self { status: kind.status(), exit: kind.exit(), code: Some(code) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [Kind; 12] = [
        Kind::Usage,
        Kind::Tampered,
        Kind::Busy,
        Kind::ApprovalNeeded,
        Kind::Limit,
        Kind::Timeout,
        Kind::Broken,
        Kind::Denied,
        Kind::ProgramNotFound,
        Kind::Interrupted,
        Kind::OutOfMemory,
        Kind::Terminated,
    ];

    #[test]
    fn every_kind_has_its_own_documented_code_in_order() {
        let documented: Vec<_> = TABLE.iter().skip(1).map(|(code, _)| *code).collect();
        let mapped: Vec<_> = KINDS.iter().map(|kind| kind.exit()).collect();
        assert_eq!(documented, mapped);
        assert!(documented.is_sorted());
    }

    #[test]
    fn a_status_has_one_word() {
        for status in [Status::Completed, Status::NeedsApproval, Status::Oom, Status::Error] {
            assert_eq!(serde_json::to_value(status).unwrap(), status.word());
        }
    }

    #[test]
    fn a_commands_own_126_is_not_a_denial() {
        let own = Ending::of_command(126);
        let denied = Ending::of_kind(Kind::Denied, Code::NoRule);
        assert_eq!(own.exit, denied.exit);
        assert_ne!(own.status, denied.status);
    }
}
