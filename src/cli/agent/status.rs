//! `runner agent status`: what is installed where, and whether it is still as it was.

use std::collections::BTreeSet;

use super::super::printer::{Format, Printer};
use super::super::table::Table;
use super::super::visible::visible;
use super::{agent_parser, other_hook};
use crate::agent::install::Intact;
use crate::agent::{Agent, Place, Prompts, standing};
use crate::cli::Error;
use crate::exit::Ending;

/// As typed.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  runner agent status\n  runner agent status claude --json")]
pub struct Args {
    /// Only this agent
    #[arg(value_name = "AGENT", value_parser = agent_parser())]
    agent: Option<Agent>,
}

pub(super) fn run(args: &Args, printer: &mut Printer) -> Result<Ending, Error> {
    let place = Place::of_account()?;
    let agents = args.agent.map_or_else(|| Agent::ALL.to_vec(), |agent| vec![agent]);
    let here = std::env::current_dir().ok();
    let all = standing(&place, &agents, here.as_deref())?;
    if printer.format() == Format::Json {
        printer.json(&serde_json::json!({ "agents": all }))?;
        return Ok(Ending::ok());
    }
    if all.is_empty() {
        printer.data("no hook of an agent is installed\n")?;
        return Ok(Ending::ok());
    }
    let mut others = BTreeSet::new();
    let mut table = Table::new(["AGENT", "LAYER", "POLICY", "PROMPTS", "STATE", "FILE"]);
    for one in all {
        others.extend(one.other_hooks.iter().map(|hook| other_hook(one.agent, hook)));
        let policy = one.policy.unwrap_or_else(|| "(configuration)".to_owned());
        let prompts = match one.prompts {
            Prompts::Replace => "replaced",
            Prompts::Keep => "kept",
        };
        for (path, intact) in one.files {
            let state = match (one.program_there, intact) {
                (false, _) => "program is gone",
                (_, Intact::Intact) => "intact",
                (_, Intact::Changed) => "file changed",
                (_, Intact::Gone) => "hook is gone",
            };
            table.row([
                one.agent.title().to_owned(),
                one.layer.word().to_owned(),
                visible(&policy).into_owned(),
                prompts.to_owned(),
                state.to_owned(),
                visible(&path.display().to_string()).into_owned(),
            ]);
        }
    }
    let width = printer.width();
    printer.data(table.fitting(width))?;
    for other in others {
        printer.talk(other);
    }
    Ok(Ending::ok())
}
