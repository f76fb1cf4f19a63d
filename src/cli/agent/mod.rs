//! `runner agent`: puts coding agents behind runner, shows and proves it.

mod check;
mod exec;
mod install;
mod status;
mod uninstall;

use std::ffi::OsString;

use clap::builder::{PossibleValuesParser, TypedValueParser};

use super::hook;
use super::printer::Printer;
use super::visible::visible;
use crate::agent::install::OtherHook;
use crate::agent::{Agent, Layer};
use crate::call::Context;
use crate::cli::Error;
use crate::exit::{Ending, ExitCode};

/// As typed.
#[derive(Debug, clap::Subcommand)]
#[command(
    after_help = concat!(
        "Examples:\n",
        "  runner agent install claude --policy edit\n",
        "  runner agent check claude\n",
        "  runner agent status codex",
    )
)]
pub enum Command {
    /// Put runner's hook into an agent's configuration
    Install(install::Args),
    /// Start the agent against a model of ours and see whether its commands go through runner
    Check(check::Args),
    /// Take the hook out again
    Uninstall(uninstall::Args),
    /// Show what is installed, pinned, and whether it is still as it was
    Status(status::Args),
    /// Run a line that the hook wrapped; for agents, not for people
    Exec(exec::Args),
}

/// The layer of an agent's configuration, as typed.
#[derive(Debug, Clone, Copy, clap::Args)]
#[group(multiple = false)]
pub struct Which {
    /// The user's configuration of the agent [default]
    #[arg(long)]
    user: bool,
    /// The configuration of this workspace
    #[arg(long)]
    project: bool,
    /// The configuration of the machine; needs its administrator
    #[arg(long)]
    managed: bool,
}

impl Which {
    fn layer(self) -> Layer {
        match (self.project, self.managed) {
            (true, _) => Layer::Project,
            (_, true) => Layer::Managed,
            _ => Layer::User,
        }
    }
}

/// Reads the word of an agent.
pub(super) fn agent_parser() -> impl TypedValueParser<Value = Agent> {
    PossibleValuesParser::new(Agent::ALL.map(Agent::word))
        .map(|word| Agent::named(&word).unwrap_or(Agent::Claude))
}

pub(super) fn run(
    command: Command,
    context: &Context,
    printer: &mut Printer,
) -> Result<Ending, Error> {
    match command {
        Command::Install(args) => install::run(args, context, printer),
        Command::Check(args) => check::run(&args, printer),
        Command::Uninstall(args) => uninstall::run(&args, context, printer),
        Command::Status(args) => status::run(&args, printer),
        Command::Exec(args) => exec::run(&args.words, printer),
    }
}

/// A line on a hook beside ours.
fn other_hook(agent: Agent, hook: &OtherHook) -> String {
    format!(
        "warning: {} has another hook for shell commands, which can replace what runner's hook answers: {}: {}",
        agent.title(),
        visible(&hook.path.display().to_string()),
        visible(&hook.what),
    )
}

/// What agents start is carried out before anything of this process's environment is read: a repository's agent settings
/// can set variables. `None` for all other words.
pub fn for_agents(words: &[OsString]) -> Option<ExitCode> {
    let text = |at: usize| words.get(at).and_then(|word| word.to_str());
    match (text(1)?, text(2)) {
        ("hook", Some(word)) if !word.starts_with('-') => Some(match Agent::named(word) {
            Some(agent) if words.len() == 3 => hook::answer(agent),
            Some(_) => hook::refuse_unknown("with more words"),
            None => hook::refuse_unknown(word),
        }),
        ("agent", Some("exec")) if text(3).is_none_or(|word| !["-h", "--help"].contains(&word)) => {
            Some(exec::alone(&words[3..]))
        }
        _ => None,
    }
}
