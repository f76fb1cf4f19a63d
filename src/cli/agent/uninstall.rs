//! `runner agent uninstall`: puts an agent's configuration back.

use super::super::printer::{Format, Printer};
use super::super::visible::visible;
use super::{Which, agent_parser};
use crate::agent::{Agent, AgentError, Layer, Place, install};
use crate::call::Context;
use crate::cli::Error;
use crate::exit::Ending;
use crate::workspace::Workspace;

/// As typed.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "A file that did not change since is put back byte by byte; from one that did, runner's entries alone are removed.\n\nExamples:\n  runner agent uninstall claude\n  runner agent uninstall codex --project"
)]
pub struct Args {
    /// The agent
    #[arg(value_name = "AGENT", value_parser = agent_parser())]
    agent: Agent,
    #[command(flatten)]
    which: Which,
}

pub(super) fn run(args: &Args, context: &Context, printer: &mut Printer) -> Result<Ending, Error> {
    let place = Place::of_account()?;
    let layer = args.which.layer();
    let workspace = match layer {
        Layer::Project => {
            let found = Workspace::find(None, &context.environment).map_err(AgentError::from)?;
            Some(found.root().to_owned())
        }
        Layer::User | Layer::Managed => None,
    };
    let files = install::uninstall(&place, args.agent, layer, workspace.as_deref())?;
    match printer.format() {
        Format::Json => {
            let files: Vec<_> = files.iter().map(|edited| &edited.path).collect();
            printer.json(
                &serde_json::json!({ "agent": args.agent, "layer": layer, "files": files }),
            )?;
        }
        Format::Text => {
            for edited in files {
                printer.data(format_args!("{}\n", visible(&edited.path.display().to_string())))?;
            }
        }
    }
    Ok(Ending::ok())
}
