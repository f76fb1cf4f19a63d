//! `runner agent install`: shows what would change in an agent's configuration, asks, and writes it.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::super::ask::{answer, is_terminal};
use super::super::diff_view::DiffView;
use super::super::printer::{Format, Printer};
use super::super::usage::UsageError;
use super::super::visible::visible;
use super::{Which, agent_parser};
use crate::agent::install::{Change, Plan, Request};
use crate::agent::{Agent, AgentError, Layer, Place, Prompts, rules_of};
use crate::call::Context;
use crate::cli::Error;
use crate::cli::engine;
use crate::engine::Choice as Engine;
use crate::exit::Ending;
use crate::policy_files::Choice;
use crate::stage::diff::{Content, Line, Side, diff};
use crate::workspace::Workspace;

/// As typed.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Shows the change of each file first, and asks at a terminal. What holds for the agent's commands (policy, engine, folders, this program's path) is pinned in a file below the home of your account; no setting or variable of the agent changes it.\n\nExamples:\n  runner agent install claude --policy develop\n  runner agent install codex --project --dry-run\n  runner agent check claude"
)]
pub struct Args {
    /// The agent
    #[arg(value_name = "AGENT", value_parser = agent_parser())]
    agent: Agent,
    #[command(flatten)]
    which: Which,
    /// The policy of its commands [default: the configuration's, else readonly]
    #[arg(long, short = 'p', value_name = "POLICY")]
    policy: Option<Choice>,
    /// What makes its sandboxes [default: the configuration's]
    #[arg(long, value_name = "ENGINE", value_parser = engine::choice())]
    engine: Option<Engine>,
    /// Let the agent ask before shell commands as before
    #[arg(long)]
    keep_prompts: bool,
    /// Write no rules for the agent's own file tools
    #[arg(long)]
    no_rules: bool,
    /// Show the change, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not ask
    #[arg(long, short = 'y')]
    yes: bool,
}

pub(super) fn run(args: Args, context: &Context, printer: &mut Printer) -> Result<Ending, Error> {
    let place = Place::of_account()?;
    let (agent, layer) = (args.agent, args.which.layer());
    let workspace = match layer {
        Layer::Project => {
            let found = Workspace::find(None, &context.environment).map_err(AgentError::from)?;
            Some(found.root().to_owned())
        }
        Layer::User | Layer::Managed => None,
    };
    let policy = args.policy.as_ref().map(named).transpose()?;
    let rules = match args.no_rules {
        true => Default::default(),
        false => rules_of(agent, args.policy.clone(), &place, context)?,
    };
    let failed = |source| AgentError::Io { path: "/proc/self/exe".into(), source };
    let request = Request {
        agent,
        layer,
        workspace,
        policy,
        engine: args.engine.map(|engine| engine.to_string()),
        prompts: if args.keep_prompts { Prompts::Keep } else { Prompts::Replace },
        program: std::env::current_exe().map_err(failed)?,
        rules,
    };
    let plan = request.plan(&place, &context.environment)?;
    show(&plan, printer)?;
    if args.dry_run {
        return Ok(Ending::ok());
    }
    if !args.yes {
        agreed(agent)?;
    }
    plan.carry_out(&place)?;
    printer.talk(format_args!("installed; see that it works: runner agent check {}", agent.word()));
    Ok(Ending::ok())
}

/// The policy for the pin: a name, or the absolute path of a file.
fn named(policy: &Choice) -> Result<String, Error> {
    match policy {
        Choice::Named(name) => Ok(name.clone()),
        Choice::File(path) => {
            let wrong = |why: String| UsageError::Option { option: "--policy".to_owned(), why };
            let path: PathBuf = path.canonicalize().map_err(|error| wrong(error.to_string()))?;
            let text = path.into_os_string().into_string();
            Ok(text.map_err(|path| UsageError::NotText(path.to_string_lossy().into_owned()))?)
        }
        Choice::Default | Choice::Configured(_) => Ok(String::new()),
    }
}

fn show(plan: &Plan, printer: &mut Printer) -> Result<(), Error> {
    if printer.format() == Format::Json {
        let files: Vec<_> = plan.changes.iter().map(|change| {
            serde_json::json!({ "path": change.path, "before": change.before, "after": change.after })
        }).collect();
        printer.json(&serde_json::json!({
            "agent": plan.agent, "layer": plan.pin.layer, "workspace": plan.pin.workspace,
            "policy": plan.pin.policy, "engine": plan.pin.engine, "program": plan.pin.program,
            "files": files, "notes": plan.notes,
        }))?;
        return Ok(());
    }
    for change in &plan.changes {
        printer.data(DiffView(&lines(change)))?;
    }
    let policy = plan.pin.policy.as_deref().unwrap_or("the configuration's default");
    printer.talk(format_args!(
        "policy: {}; program: {}",
        visible(policy),
        visible(&plan.pin.program.display().to_string())
    ));
    for note in &plan.notes {
        printer.talk(format_args!("note: {}", visible(note)));
    }
    Ok(())
}

/// How long two texts are compared at most.
const PATIENCE: Duration = Duration::from_secs(2);

/// What differs.
fn lines(change: &Change) -> Vec<Line> {
    let before = change.before.as_deref().map_or(Side::Absent, |text| Side::File {
        content: Content::Bytes(text.as_bytes()),
        mode: 0o644,
    });
    let path = change.path.as_os_str().as_encoded_bytes();
    diff(
        path,
        before,
        Side::File { content: Content::Bytes(change.after.as_bytes()), mode: 0o644 },
        Instant::now() + PATIENCE,
    )
}

/// Asks the person.
fn agreed(agent: Agent) -> Result<(), Error> {
    if !is_terminal() {
        return Err(AgentError::NoTerminal(agent).into());
    }
    let read = |typed: &str| match typed {
        "y" | "Y" | "yes" => Some(true),
        "" | "n" | "N" | "no" => Some(false),
        _ => None,
    };
    match answer("Write it? [y/n]: ", read) {
        Some(true) => Ok(()),
        Some(false) | None => Err(AgentError::Declined(agent).into()),
    }
}
