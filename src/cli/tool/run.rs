//! `runner tool run`: a tool, decided request by request, in a sandbox of its own.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use serde_json::Value;
use tokio::io::AsyncWrite;

use super::live::Live;
use super::shared_stderr::{SharedStderr, Shown};
use crate::approvals::ApprovalId;
use crate::audit::Redactor;
use crate::call::Context;
use crate::call::launch::run::Streams;
use crate::call::tool::{self, Front, Given, ToolRequest};
use crate::call::{Asking, CallResult, Shortfall, ShortfallKind, Spent, Warmth, shortfall_line};
use crate::cli::Error;
use crate::cli::ask::{Yes, approver};
use crate::cli::event_loop::cancellable;
use crate::cli::exec::{kept, limit, tightened};
use crate::cli::policy::place;
use crate::cli::printer::{Format, Printer};
use crate::cli::style;
use crate::cli::usage::UsageError;
use crate::cli::visible::{visible, visible_block, visible_inside};
use crate::config;
use crate::engine;
use crate::exit::Ending;
use crate::ids::ToolName;
use crate::policy_files::Choice;
use crate::sandbox::streams::Sink;
use crate::tool::{RETRY_WORDS, RetryPolicy, Schema, builtin};

/// The largest file of arguments.
const ARGS_FILE_MAX: u64 = 16 << 20;

/// As typed.
#[derive(Debug, clap::Args)]
#[command(
    after_help = concat!(
        "If the tool returns a string, it is printed as text; any other value is printed as ",
        "JSON. The tool's log goes to standard error.\n\n",
        "Examples:\n",
        "  runner tool run file_operations --arg operation=read --arg path=README.md\n",
        "  runner tool run todo_finder\n",
        "  runner tool run json_query --arg file=package.json --arg query=.scripts\n",
        "  runner tool run run_tests --policy develop --args '{\"pattern\": \"auth\"}'",
    )
)]
pub struct Args {
    /// The tool, by name
    #[arg(value_name = "NAME")]
    name: ToolName,
    /// All arguments as one JSON object
    #[arg(long, value_name = "JSON", conflicts_with = "args_file")]
    args: Option<String>,
    /// The same, from a file; `-` is standard input
    #[arg(long, value_name = "FILE")]
    args_file: Option<PathBuf>,
    /// One argument: NAME=VALUE, read by the type that the tool's schema gives it, or NAME:=JSON
    #[arg(long = "arg", value_name = "NAME=VALUE")]
    pairs: Vec<String>,
    /// The policy that decides: a name, or the path of a .yml file [default: the configuration's, else readonly]
    #[arg(long, short = 'p', value_name = "POLICY")]
    policy: Option<Choice>,
    /// Run for this folder
    #[arg(long, short = 'C', visible_alias = "cwd", value_name = "DIR")]
    workdir: Option<PathBuf>,
    /// A further folder with tools
    #[arg(long, value_name = "DIR")]
    tools: Vec<PathBuf>,
    /// Make sandboxes for this call, and leave none waiting for the next
    #[arg(long)]
    cold: bool,
    /// The image: `host`, or an OCI reference that has node
    #[arg(long, value_name = "IMAGE")]
    image: Option<String>,
    /// What makes the sandboxes [default: auto]
    #[arg(long, value_name = "ENGINE", value_parser = crate::cli::engine::choice())]
    engine: Option<engine::Choice>,
    /// With --json: keep so much of each output stream, such as 1MiB, within the policy's `output` limit [default: 32KiB]
    #[arg(long, value_name = "SIZE")]
    output: Option<String>,
    /// End the call after this time, such as 30s; can only tighten
    #[arg(long, value_name = "TIME")]
    timeout: Option<String>,
    /// Any limit by its key, such as broker-calls=10; can only tighten
    #[arg(long = "limit", value_name = "KEY=VALUE")]
    limits: Vec<String>,
    /// Approve what the tool or the policy would ask about; needs a terminal, as every answer does
    #[arg(long, short = 'y')]
    yes: bool,
    /// When to try again if it fails: NONE, QUICK, STANDARD or AGGRESSIVE, instead of what the tool says
    #[arg(long, value_name = "POLICY")]
    retry: Option<String>,
    /// Use this approval, given with `runner approve`
    #[arg(long, value_name = "ID")]
    approve: Vec<ApprovalId>,
}

/// Runs it.
pub(super) fn run(args: Args, context: &Context, printer: &mut Printer) -> Result<Ending, Error> {
    // A tool of ours has no schema that must be looked at.
    if builtin::find(args.name.as_str()).is_none() {
        Schema::get_ready();
    }
    // Before anything runs: preparing may ask a module what it is.
    let yes = Yes::typed(args.yes, || {
        let here = place::Args { policy: None, cwd: args.workdir.clone() };
        Ok(config::load(&here.resolve(context)?.places)?)
    })?;
    let named = args.approve.clone();
    let keep = kept(args.output.as_deref())?;
    let retry = args.retry.as_deref().map(retry).transpose()?;
    let name = args.name.to_string();
    let request = args.resolve(context)?;
    let (result, front, desk) = cancellable(async |cancel| {
        let prepared = request.prepare(context, cancel).await?;
        if prepared.replaces_shipped {
            printer.talk(format_args!(
                "note: {} stands in for the tool of that name that comes with runner",
                visible(&prepared.file)
            ));
        }
        let redactor = Redactor::new();
        let desk = Arc::new(SharedStderr::new());
        let (format, printing, hides) = (printer.format(), Arc::downgrade(&desk), redactor.clone());
        let streams = move || match (format, printing.upgrade()) {
            (Format::Text, Some(desk)) => {
                let sink = || prints(&desk, &hides);
                Streams { stdout: sink(), stderr: sink(), ..Streams::default() }
            }
            (Format::Json | Format::Text, _) => Streams { keep, ..Streams::default() },
        };
        let events = Live::new(&name, printer.color(), redactor.clone(), Arc::clone(&desk));
        let asking = Asking {
            approver: approver(yes, Arc::clone(&desk), &context.caller),
            named,
            times: prepared.config().approvals(),
            places: prepared.places().clone(),
            redactor: redactor.clone(),
            spent: Spent::default(),
            caller: context.caller.clone(),
        };
        let front = Front {
            events: Arc::new(events),
            streams: Arc::new(streams),
            asking: Arc::new(asking),
            redactor,
            retry,
        };
        let result = tool::run(&prepared, &front, cancel).await?;
        Ok((result, front, desk))
    })?;
    drop(front);
    // What the tool said comes before what came of it.
    drop(desk);
    report(&result, printer)?;
    if let Some(farewell) = result.farewell {
        farewell.with_us();
    }
    Ok(result.ending)
}

/// A policy for retries, by its word.
fn retry(word: &str) -> Result<RetryPolicy, UsageError> {
    RetryPolicy::by_word(word).ok_or_else(|| UsageError::Option {
        option: "--retry".to_owned(),
        why: format!("`{word}` is not a retry policy; known: {}", RETRY_WORDS.join(", ")),
    })
}

impl Args {
    fn resolve(self, context: &Context) -> Result<ToolRequest, Error> {
        let policy = place::choice(self.policy, &context.environment)?;
        let json = match &self.args_file {
            Some(path) => Some(read(path)?),
            None => self.args,
        };
        let mut tighten = tightened(&self.limits)?;
        if let Some(figure) = &self.timeout {
            tighten.push(limit("--timeout", "wall", figure)?);
        }
        Ok(ToolRequest {
            name: self.name,
            given: Given { json, pairs: self.pairs },
            cwd: self.workdir,
            policy,
            tools: self.tools,
            image: self.image,
            engine: self.engine,
            tighten,
            warmth: if self.cold { Warmth::Cold } else { Warmth::Pool },
        })
    }
}

/// Reads a file of arguments; `-` is standard input.
fn read(path: &PathBuf) -> Result<String, UsageError> {
    use std::io::Read as _;
    let wrong = |why: String| UsageError::Option { option: "--args-file".to_owned(), why };
    let failed = |error: std::io::Error| wrong(format!("{}: {error}", path.display()));
    let mut source: Box<dyn std::io::Read> = if path.as_os_str() == "-" {
        Box::new(std::io::stdin())
    } else {
        Box::new(std::fs::File::open(path).map_err(failed)?)
    };
    let mut text = String::new();
    source.by_ref().take(ARGS_FILE_MAX + 1).read_to_string(&mut text).map_err(failed)?;
    if text.len() as u64 > ARGS_FILE_MAX {
        return Err(wrong(format!("{} is larger than {ARGS_FILE_MAX} bytes", path.display())));
    }
    Ok(text)
}

/// What a tool prints is talk, not its result: all of it goes to standard error.
fn prints(desk: &SharedStderr, redactor: &Redactor) -> Sink {
    let shown = if std::io::stderr().is_terminal() { Shown::AsText } else { Shown::AsItIs };
    desk.sink(shown, redactor).map(|sink| Box::pin(sink) as Pin<Box<dyn AsyncWrite + Send>>)
}

/// The value on standard output; what went wrong on standard error.
fn report(result: &CallResult, printer: &mut Printer) -> Result<(), Error> {
    if printer.format() == Format::Json {
        printer.json(&result.told(printer.detail()))?;
        return Ok(());
    }
    match &result.value {
        None | Some(Value::Null) => {}
        Some(Value::String(text)) => {
            let shown = visible_value(text);
            let end = if text.ends_with('\n') { "" } else { "\n" };
            printer.data(format_args!("{shown}{end}"))?;
        }
        Some(value) => {
            let text = serde_json::to_string_pretty(value).unwrap_or_else(|_| value.to_string());
            printer.data(format_args!("{}\n", visible_value(&text)))?;
        }
    }
    let metadata = result.metadata.as_ref();
    if let Some(of) = metadata.and_then(|metadata| metadata.fallback_of.as_ref()) {
        let name = result.tool.as_ref().map_or("another tool", |tool| &tool.name);
        let failed = of.tool.as_ref().map_or("", |tool| &tool.name);
        let (code, why) =
            of.error.as_ref().map_or(("", ""), |error| (error.code.as_str(), &error.message));
        printer.talk(format_args!(
            "note: {} failed ({code}: {}), so {name} was called instead",
            visible(failed),
            visible(why)
        ));
    }
    if let Some(error) = &result.error {
        let bad = style::BAD;
        // The author's own word stands beside ours, never in its place.
        let details = error.details.as_ref();
        let own = details.and_then(|details| details.thrown()?.code.as_deref());
        let own = own.map(|code| format!(" ({})", visible(code))).unwrap_or_default();
        printer.talk(format_args!(
            "{bad}{}{own}:{bad:#} {}",
            error.code,
            visible_inside(&error.message)
        ));
        if let Some(stack) = error.stack.as_deref().map(places).filter(|text| !text.is_empty()) {
            printer.talk(visible_inside(stack));
        }
        // What we told the tool, or a tool of ours says, comes as our own hint.
        let said = details.and_then(|details| details.data()?["suggestion"].as_str());
        if let Some(said) = said.filter(|said| error.suggestion.as_deref() != Some(*said)) {
            printer.talk(format_args!("  the tool suggests: {}", visible(said)));
        }
        if let Some(rule) = &error.rule {
            printer.talk(format_args!(
                "  rule: {} ({}:{})",
                rule.id,
                visible(&rule.file),
                rule.line
            ));
        }
        if let Some(suggestion) = &error.suggestion {
            printer.hint(suggestion);
        }
    }
    let said = result.error.is_some();
    let told = |entry: &Shortfall| said && entry.code == ShortfallKind::Limit;
    if let Some(line) = shortfall_line(&result.sandbox, told) {
        printer.talk(format_args!("runner: {}", visible(&line)));
    }
    if let Some(other) = metadata.and_then(|metadata| metadata.fallback.as_ref()) {
        let why = other.error.as_ref().map_or("", |error| &error.message);
        let (name, why) = (&other.tool.name, visible(why));
        printer.talk(format_args!("note: its fallback {name} could not stand in: {why}"));
    }
    Ok(())
}

/// The places of a stack, without the message that stands above them.
fn places(stack: &str) -> &str {
    let stack = stack.trim_end();
    let first = if stack.starts_with("    at ") { Some(0) } else { stack.find("\n    at ") };
    first.map_or("", |at| stack[at..].trim_start_matches('\n'))
}

/// A tool's value is foreign text: on a terminal it is shown as text, elsewhere it goes on unchanged.
fn visible_value(text: &str) -> std::borrow::Cow<'_, str> {
    if std::io::stdout().is_terminal() { visible_block(text) } else { text.into() }
}
