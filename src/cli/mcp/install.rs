//! `runner mcp install AGENT`: the server's entry at a client.

use std::ffi::OsString;
use std::path::PathBuf;

use serde_json::json;

use crate::call::{CallError, Context};
use crate::cli::Error;
use crate::cli::policy::place;
use crate::cli::printer::{Format, Printer};
use crate::cli::visible::{visible, visible_block};
use crate::exit::Ending;
use crate::mcp::{Agent, Scope, install};

/// As typed.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "The entry starts `runner mcp serve`, in the folder that the client starts it in. Entries of other servers stay as they are.\n\nExamples:\n  runner mcp install claude --policy develop\n  runner mcp install codex --project\n  runner mcp install cursor --print"
)]
pub struct Args {
    /// The client
    #[arg(value_enum, value_name = "AGENT")]
    agent: Agent,
    /// The policy that the server is started with [default: the configuration's, else readonly]
    #[arg(long, short = 'p', value_name = "POLICY")]
    policy: Option<String>,
    /// Write the file of this workspace instead of the user's
    #[arg(long)]
    project: bool,
    /// Find the workspace from this folder
    #[arg(long, short = 'C', visible_alias = "cwd", value_name = "DIR")]
    workdir: Option<PathBuf>,
    /// Show the new file, and write nothing
    #[arg(long)]
    print: bool,
}

pub(super) fn run(args: Args, context: &Context, printer: &mut Printer) -> Result<Ending, Error> {
    let place = place::Args { policy: None, cwd: args.workdir }.resolve(context)?;
    let program =
        std::env::current_exe().map_err(|error| CallError::Local("find this program", error))?;
    let mut words: Vec<OsString> = vec![program.into(), "mcp".into(), "serve".into()];
    if let Some(policy) = args.policy {
        words.extend(["--policy".into(), policy.into()]);
    }
    let scope = if args.project { Scope::Project } else { Scope::User };
    let place = (&context.environment, place.workspace.as_path());
    let done = install(args.agent, scope, &words, place, !args.print)?;
    let path = done.path.display().to_string();
    match printer.format() {
        Format::Json => printer.json(&json!({
            "agent": args.agent.name(), "file": path, "changed": done.changed && !args.print,
        }))?,
        Format::Text if args.print => {
            printer.talk(format_args!("{}:", visible(&path)));
            printer.data(visible_block(&done.text))?;
        }
        Format::Text if done.changed => {
            printer.talk(format_args!("{}: entry `runner` written", visible(&path)));
        }
        Format::Text => printer.talk(format_args!("{}: nothing to change", visible(&path))),
    }
    Ok(Ending::ok())
}
