//! `runner agent check`: the agent's own program at a model of ours, and what came through runner.

use std::path::PathBuf;

use super::super::printer::{Format, Printer};
use super::super::table::Table;
use super::super::visible::visible_block;
use super::{agent_parser, other_hook};
use crate::agent::check::{Checked, Seen, check};
use crate::agent::{Agent, AgentError};
use crate::cli::Error;
use crate::exit::{Ending, ExitCode};

/// As typed.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Starts the installed agent program with a model of ours on loopback, which asks for a command that every policy allows and for one that none does, and looks in the ledger and on disk what became of them. It talks to no other server. Other hooks for shell commands in the agent's configuration are named. Not looked at: the agent's own file tools, its MCP servers, and what its extensions bring.\n\nExit codes: 0 both as promised, 125 something is not.\n\nExamples:\n  runner agent check claude\n  runner agent check codex --json"
)]
pub struct Args {
    /// The agent
    #[arg(value_name = "AGENT", value_parser = agent_parser())]
    agent: Agent,
    /// The agent's program [default: the one of its name on the pinned PATH]
    #[arg(long, value_name = "PATH")]
    program: Option<PathBuf>,
}

pub(super) fn run(args: &Args, printer: &mut Printer) -> Result<Ending, Error> {
    if args.agent == Agent::Cursor {
        let source = std::io::Error::other("it cannot be led to another model");
        return Err(AgentError::Start { program: "cursor-agent".to_owned(), source }.into());
    }
    let here = std::env::current_dir().ok();
    let checked = check(args.agent, args.program.clone(), here.as_deref())?;
    match printer.format() {
        Format::Json => printer.json(&checked)?,
        Format::Text => show(&checked, printer)?,
    }
    Ok(match checked.holds() {
        true => Ending::ok(),
        false => Ending::of_command(ExitCode::ERROR.get()),
    })
}

fn show(checked: &Checked, printer: &mut Printer) -> Result<(), Error> {
    let word = |seen| match seen {
        Seen::AsPromised => "as promised",
        Seen::NotThroughRunner => "NOT THROUGH RUNNER",
        Seen::RanOnHost => "RAN ON THE HOST",
        Seen::NotCalled => "NOT CALLED",
    };
    let mut table = Table::new(["AGENT", "VERSION", "ALLOWED COMMAND", "FORBIDDEN COMMAND"]);
    table.row([
        checked.agent.title().to_owned(),
        checked.version.clone(),
        word(checked.harmless).to_owned(),
        word(checked.forbidden).to_owned(),
    ]);
    let width = printer.width();
    printer.data(table.fitting(width))?;
    if let Some(said) = &checked.said {
        printer.talk(format_args!("the agent said:\n{}", visible_block(said)));
    }
    for hook in &checked.other_hooks {
        printer.talk(other_hook(checked.agent, hook));
    }
    printer.talk(
        "note: the agent's own file tools, MCP servers and other hooks do not go through runner",
    );
    if !checked.agent.rewrites() {
        printer.talk(
            "note: an allowed command of this agent runs on the host, outside of any sandbox",
        );
    }
    Ok(())
}
