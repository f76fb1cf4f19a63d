//! What can go wrong with agents, their configuration and their hooks.

use std::io;
use std::path::PathBuf;

use super::kind::{Agent, Layer};
use crate::call::CallError;
use crate::codes::Code;
use crate::config::ConfigError;
use crate::error::{Failure, Fault};
use crate::exit::Kind;
use crate::policy_files::PolicyError;
use crate::workspace::WorkspaceError;

/// Why an agent's call cannot be judged, or its configuration not be edited.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The account that runs this process has no home.
    #[error("the account of this process has no home folder, so there is no place for pins")]
    NoAccount,
    /// Nothing is installed for the agent.
    #[error("no hook for {} is installed here", .0.title())]
    NotInstalled(Agent),
    /// It is installed already.
    #[error("a hook for {} is installed in the {} layer already", .0.title(), .1.word())]
    Installed(Agent, Layer),
    /// The agent has no such layer.
    #[error("{} has no {} configuration that can hold a hook", .0.title(), .1.word())]
    NoLayer(Agent, Layer),
    /// A file of ours or of the agent cannot be read or written.
    #[error("cannot use {path}: {source}")]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Another user owns a file of ours, or can write to it.
    #[error("{0} belongs to, or can be changed by, another user")]
    Unsafe(PathBuf),
    /// A file of ours is not what was written.
    #[error("{path} is damaged: {why}")]
    Damaged {
        /// Which.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// The agent's configuration cannot be edited.
    #[error("{path}:{line}:{column}: {why}")]
    Config {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// What is wrong there.
        why: String,
    },
    /// Uninstalling found something else than was installed.
    #[error("{0} was changed since, and what was installed is not found in it")]
    Changed(PathBuf),
    /// The agent sent no tool call that can be read.
    #[error("the agent's hook input cannot be read: {0}")]
    Input(String),
    /// The agent's shell call has no line.
    #[error("the agent's call of `{0}` has no command that can be read")]
    NoCommand(String),
    /// The line was not written by the hook, or not for this session and workspace.
    #[error("this line was not wrapped by runner's hook for this session and workspace")]
    Ticket,
    /// The words of `agent exec` are not those that the hook writes.
    #[error("`runner agent exec` is only for lines that runner's hook wrapped")]
    Words,
    /// The policy or the engine of the pin cannot be read.
    #[error("the pin of {} names {what}", .agent.title())]
    Pin {
        /// Whose.
        agent: Agent,
        /// What is wrong with it.
        what: String,
    },
    /// The hook did not come to an answer.
    #[error("runner's hook {0}")]
    Hook(&'static str),
    /// The agent's program cannot be found or started.
    #[error("cannot start {program}: {source}")]
    Start {
        /// Which.
        program: String,
        /// Why.
        source: io::Error,
    },
    /// Nobody agreed to the change.
    #[error("the configuration of {} was not changed", .0.title())]
    Declined(Agent),
    /// Editing an agent's configuration needs a yes.
    #[error("editing the configuration of {} needs a person at a terminal, or --yes", .0.title())]
    NoTerminal(Agent),
    /// There is no workspace.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// The configuration cannot be used.
    #[error(transparent)]
    Settings(#[from] ConfigError),
    /// The policy cannot be used.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The call cannot be decided or run.
    #[error(transparent)]
    Call(Box<CallError>),
}

impl From<CallError> for AgentError {
    fn from(error: CallError) -> Self {
        Self::Call(Box::new(error))
    }
}

impl Failure for AgentError {
    fn code(&self) -> Code {
        match self {
            Self::NoAccount | Self::NotInstalled(_) => Code::AgentNotInstalled,
            Self::Installed(..) | Self::NoLayer(..) | Self::Changed(_) => Code::AgentConfig,
            Self::Config { .. } => Code::AgentConfig,
            Self::Io { .. } => Code::IoError,
            Self::Unsafe(_) | Self::Damaged { .. } | Self::Pin { .. } => Code::AgentPin,
            Self::Input(_) | Self::NoCommand(_) | Self::Hook(_) => Code::AgentInput,
            Self::Ticket | Self::Words => Code::AgentTicket,
            Self::Start { .. } => Code::AgentStart,
            Self::Declined(_) => Code::ApprovalDeclined,
            Self::NoTerminal(_) => Code::ApprovalNeedsTerminal,
            Self::Workspace(error) => error.code(),
            Self::Settings(error) => error.code(),
            Self::Policy(error) => error.code(),
            Self::Call(error) => error.code(),
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Self::Ticket | Self::Words => Kind::Denied,
            Self::NoLayer(..) => Kind::Usage,
            Self::Declined(_) | Self::NoTerminal(_) => Kind::ApprovalNeeded,
            Self::Workspace(error) => error.kind(),
            Self::Settings(error) => error.kind(),
            Self::Policy(error) => error.kind(),
            Self::Call(error) => error.kind(),
            _ => Kind::Broken,
        }
    }

    fn fault(&self) -> Fault {
        match self {
            Self::Ticket | Self::Words => Fault::Command,
            Self::NoLayer(..) | Self::Declined(_) | Self::NoTerminal(_) => Fault::Usage,
            Self::Workspace(error) => error.fault(),
            Self::Settings(error) => error.fault(),
            Self::Policy(error) => error.fault(),
            Self::Call(error) => error.fault(),
            Self::Hook(_) => Fault::Runner,
            _ => Fault::Configuration,
        }
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::NotInstalled(agent) => format!("runner agent install {}", agent.word()),
            Self::Installed(agent, _) => format!("runner agent uninstall {}", agent.word()),
            Self::NoLayer(..) => "leave the option out, or use --user".to_owned(),
            Self::Unsafe(path) => {
                format!("make it your own, for nobody else to write: {}", path.display())
            }
            Self::Damaged { .. } | Self::Pin { .. } => {
                "install the hook again: runner agent install AGENT".to_owned()
            }
            Self::Config { .. } => "mend the file, then try again".to_owned(),
            Self::Changed(_) => "remove runner's hook from it by hand".to_owned(),
            Self::Ticket | Self::Words => "write the command itself; the hook wraps it".to_owned(),
            Self::Start { .. } => "name the program with --program PATH".to_owned(),
            Self::NoTerminal(_) => "look at the change with --dry-run, then add --yes".to_owned(),
            Self::Workspace(error) => return error.hint(),
            Self::Settings(error) => return error.hint(),
            Self::Policy(error) => return error.hint(),
            Self::Call(error) => return error.hint(),
            _ => return None,
        })
    }

    fn findings(&self) -> &[runner_policy::finding::Finding] {
        match self {
            Self::Settings(error) => error.findings(),
            Self::Policy(error) => error.findings(),
            Self::Call(error) => error.findings(),
            _ => &[],
        }
    }
}
