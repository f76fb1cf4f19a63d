//! `runner pool`: sandboxes that wait for a call.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::event_loop::{cancellable, in_event_loop};
use super::policy::place::choice;
use super::printer::{Format, Printer};
use super::table::Table;
use super::usage::UsageError;
use crate::call::Context;
use crate::call::tool::{Given, ToolRequest};
use crate::call::{self, CallError, Request, Variables, Warmed, Warmth};
use crate::cli::Error;
use crate::config;
use crate::engine;
use crate::error::Failure as _;
use crate::exit::Ending;
use crate::ids::ToolName;
use crate::policy_files::{Choice, Places};
use crate::pool::{self, Drained, Entry, Pool, Status};
use crate::text::counted;
use crate::workspace::Workspace;

/// Said where nothing may wait.
const OFF: &str = "the pool is off (see pool.size and pool.ttl in runner config show)";

/// What to do with the pool.
#[derive(Debug, clap::Subcommand)]
#[command(
    after_help = concat!(
        "Examples:\n",
        "  runner pool status\n",
        "  runner pool warm 2",
    )
)]
pub enum Command {
    /// Show the waiting sandboxes and the bounds of the pool
    #[command(
        after_help = concat!(
            "Examples:\n",
            "  runner pool status\n",
            "  runner pool status --json",
        )
    )]
    Status,
    /// Make sandboxes for future calls
    Warm(Warm),
    /// Remove all waiting sandboxes
    #[command(
        after_help = concat!(
            "Examples:\n",
            "  runner pool drain\n",
            "  runner pool drain --json",
        )
    )]
    Drain,
}

/// As typed.
#[derive(Debug, clap::Args)]
#[command(
    after_help = concat!(
        "A waiting sandbox serves calls of the same workspace, policy, limits and kind: ",
        "calls that only read, or calls that may write. A tool's sandbox has Node started ",
        "and the runtime loaded. It serves any call of that tool under that policy.\n\n",
        "Examples:\n",
        "  runner pool warm\n",
        "  runner pool warm 4 --policy develop -- npm test\n",
        "  runner pool warm 2 --tool todo_finder",
    )
)]
pub struct Warm {
    /// How many
    #[arg(value_name = "N", default_value_t = 1)]
    count: usize,
    /// The policy of the calls [default: the configuration's, else readonly]
    #[arg(long, short = 'p', value_name = "POLICY")]
    policy: Option<Choice>,
    /// The folder of the calls
    #[arg(long, short = 'C', visible_alias = "cwd", value_name = "DIR")]
    workdir: Option<PathBuf>,
    /// What makes the sandboxes [default: auto]
    #[arg(long, value_name = "ENGINE", value_parser = super::engine::choice())]
    engine: Option<engine::Choice>,
    /// For calls of this tool, instead of a command
    #[arg(long, value_name = "NAME", conflicts_with = "command")]
    tool: Option<ToolName>,
    /// A further folder with tools
    #[arg(long, value_name = "DIR", requires = "tool")]
    tools: Vec<PathBuf>,
    /// A command like those that will come; `true` unless given
    #[arg(value_name = "CMD", last = true)]
    command: Vec<OsString>,
}

/// Does it.
pub(super) fn run(
    command: Command,
    context: &Context,
    printer: &mut Printer,
) -> Result<Ending, Error> {
    match command {
        Command::Status => status(context, printer),
        Command::Warm(args) => warm(args, context, printer),
        Command::Drain => drain(context, printer),
    }
}

/// Where our files are; a folder that is no workspace will do.
fn places(context: &Context) -> Places {
    let workspace = Workspace::find(None, &context.environment).ok();
    Places::of(&context.environment, workspace.as_ref().map(Workspace::root))
}

fn state(places: &Places) -> Result<&Path, CallError> {
    Ok(places.state.as_deref().ok_or(crate::store::StoreError::NoFolder)?)
}

fn status(context: &Context, printer: &mut Printer) -> Result<Ending, Error> {
    let places = places(context);
    let bounds = config::load(&places).map_err(CallError::from)?.pool();
    let pool = Pool::new(state(&places)?);
    let Status { waiting, being_made } = pool.status().map_err(local)?;
    match printer.format() {
        Format::Json => printer.json(&json!({
            "bounds": { "size": bounds.size, "ttl_ms": millis(bounds.ttl), "memory_bytes": bounds.memory },
            "waiting": waiting.iter().map(row).collect::<Vec<_>>(),
            "being_made": being_made,
        }))?,
        Format::Text => {
            if waiting.is_empty() {
                printer.data(format_args!("nothing waits\n"))?;
            } else {
                let mut table = Table::new(["SANDBOX", "FOR", "POLICY", "WAITED", "LEFT", "PROJECT"]);
                for entry in &waiting {
                    table.row([
                        entry.sandbox.get(..12).unwrap_or(&entry.sandbox).to_owned(),
                        entry.tool().map_or(entry.class.word().to_owned(), |it| format!("tool {it}")),
                        entry.policy.clone(),
                        seconds(entry.waited()),
                        seconds(entry.left()),
                        entry.project.display().to_string(),
                    ]);
                }
                printer.data(table)?;
            }
            if being_made > 0 {
                printer.data(format_args!("{} being made\n", counted(being_made, "sandbox")))?;
            }
            printer.talk(match bounds.size {
                0 => OFF.to_owned(),
                size => format!(
                    "at most {size}, for {}, in {} MiB (runner config show)",
                    seconds(bounds.ttl),
                    bounds.memory >> 20
                ),
            });
        }
    }
    Ok(Ending::ok())
}

fn warm(mut args: Warm, context: &Context, printer: &mut Printer) -> Result<Ending, Error> {
    let count = args.count;
    let text = printer.format() == Format::Text;
    let mut told = |entry: &Entry| {
        if text {
            printer.talk(format_args!("waiting: {}", entry.sandbox.get(..12).unwrap_or_default()));
        }
    };
    let warmed = match args.tool.take() {
        Some(name) => warm_tool(name, args, context, &mut told),
        None => warm_command(args, context, &mut told),
    }?;
    let (made, note) = match &warmed {
        Warmed::Made(entries) if entries.len() < count => {
            (entries.len(), Some("there is no room for more (runner pool status)".to_owned()))
        }
        Warmed::Made(entries) => (entries.len(), None),
        Warmed::Refused(why) => {
            let option = "CMD".to_owned();
            return Err(UsageError::Option { option, why: why.clone() }.into());
        }
        Warmed::Off => (0, Some(OFF.to_owned())),
        Warmed::MadeAtOnce(engine) => (
            0,
            Some(format!(
                "sandboxes for commands do not wait on the engine {engine}, which makes one as quickly as it would take one; \
                 those of tools do (--tool)"
            )),
        ),
        Warmed::Ourselves => return Err(no_sandbox("it is built in, and needs none".to_owned())),
        Warmed::Command(command) => {
            let why = format!("it takes one of commands: runner pool warm -- {command}");
            return Err(no_sandbox(why));
        }
    };
    match printer.format() {
        Format::Json => printer.json(&json!({ "made": made, "note": note }))?,
        Format::Text => {
            if let Some(note) = note {
                printer.talk(format_args!("note: {note}"));
            }
        }
    }
    Ok(Ending::ok())
}

fn warm_command(
    args: Warm,
    context: &Context,
    told: &mut dyn FnMut(&Entry),
) -> Result<Warmed, Error> {
    let command = if args.command.is_empty() { vec!["true".into()] } else { args.command };
    let request = Request {
        command: call::Command::Argv(command),
        cwd: args.workdir,
        policy: choice(args.policy, &context.environment)?,
        image: None,
        engine: args.engine,
        tighten: Vec::new(),
        warmth: Warmth::Pool,
        variables: Variables::Told,
        writes: runner_policy::model::Writes::default(),
        on_held: crate::call::OnHeld::default(),
    };
    let decided = request.decide(context)?;
    Ok(in_event_loop(call::warm(&decided, args.count, told))??)
}

fn warm_tool(
    name: ToolName,
    args: Warm,
    context: &Context,
    told: &mut dyn FnMut(&Entry),
) -> Result<Warmed, Error> {
    let request = ToolRequest {
        name,
        given: Given::default(),
        cwd: args.workdir,
        policy: choice(args.policy, &context.environment)?,
        tools: args.tools,
        image: None,
        engine: args.engine,
        tighten: Vec::new(),
        warmth: Warmth::Pool,
    };
    cancellable(async |cancel| {
        Ok(call::tool::warm(request, args.count, told, context, cancel).await?)
    })
}

/// A tool whose calls take no sandbox with Node.
fn no_sandbox(why: String) -> Error {
    let why = format!("this tool has no sandbox of its own: {why}");
    UsageError::Option { option: "--tool".to_owned(), why }.into()
}

fn drain(context: &Context, printer: &mut Printer) -> Result<Ending, Error> {
    let places = places(context);
    let state = state(&places)?;
    let Drained { ended, left } = in_event_loop(pool::drain(state))?.map_err(local)?;
    match printer.format() {
        Format::Json => printer.json(&json!({
            "ended": ended,
            "left": left.iter().map(|(trace, error)| json!({
                "call": trace.label,
                "engine": trace.address.engine(),
                "endpoint": trace.address.place(),
                "why": error.to_string(),
            })).collect::<Vec<_>>(),
        }))?,
        Format::Text => {
            printer.data(format_args!("{} ended\n", counted(ended, "sandbox")))?;
            for (trace, error) in &left {
                printer.talk(format_args!("note: {} is still there: {error}", trace.label));
            }
        }
    }
    Ok(left.first().map_or(Ending::ok(), |(_, error)| Ending::of_kind(error.kind(), error.code())))
}

fn row(entry: &Entry) -> Value {
    json!({
        "sandbox": entry.sandbox,
        "for": entry.class,
        "tool": entry.tool(),
        "policy": entry.policy,
        "project": entry.project,
        "workspace": entry.workspace,
        "key": entry.key.as_str(),
        "waited_ms": millis(entry.waited()),
        "left_ms": millis(entry.left()),
    })
}

fn local(error: crate::pool::PoolError) -> CallError {
    CallError::Local("use the pool", std::io::Error::other(error))
}

fn millis(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn seconds(time: std::time::Duration) -> String {
    match time.as_secs() {
        seconds if seconds < 120 => format!("{seconds}s"),
        seconds => format!("{}m", seconds / 60),
    }
}
