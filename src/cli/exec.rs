//! `runner exec`: a command or a shell line, decided and run in a sandbox.

use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use runner_policy::limits::Limit;
use runner_policy::model::Writes;
use tokio::io::AsyncWrite;

use super::ask::{Yes, approver};
use super::event_loop::{cancellable, in_event_loop};
use super::policy::place::choice;
use super::policy::view::View;
use super::printer::{Format, Printer};
use super::style;
use super::terminal_sink::TerminalSink;
use super::tool::shared_stderr::SharedStderr;
use super::usage::UsageError;
use super::visible::visible;
use crate::approvals::ApprovalId;
use crate::audit::Redactor;
use crate::call::Context;
use crate::call::launch::run::{Keep, Streams};
use crate::call::stage::Changes;
use crate::call::{
    self, Asking, CallResult, Command, Decided, ErrorObject, OnHeld, Output, Request, Shortfall,
    ShortfallKind, Spent, Variables, Warmth, shortfall_line,
};
use crate::cli::Error;
use crate::codes::Code;
use crate::engine;
use crate::exit::Ending;
use crate::policy_files::Choice;
use crate::sandbox::streams::Source;

/// As typed.
#[derive(Debug, clap::Args)]
#[command(
    group = clap::ArgGroup::new("what").required(true).multiple(false),
    after_help = concat!(
        "Examples:\n",
        "  runner exec -- git log --oneline\n",
        "  runner exec --policy develop -- npm test\n",
        "  runner exec --policy develop --shell 'cd web && FOO=1 npm test 2>&1 | tail -5'\n",
        "  runner exec --dry-run -- cat README.md\n\n",
        "Exit code: the command's own. `runner --help` lists the codes that are runner's.",
    )
)]
pub struct Args {
    /// The policy that decides: a name, or the path of a .yml file [default: the configuration's,
    /// else readonly]
    #[arg(long, short = 'p', value_name = "POLICY")]
    policy: Option<Choice>,
    /// Run in this folder
    #[arg(long, short = 'C', visible_alias = "cwd", value_name = "DIR")]
    workdir: Option<PathBuf>,
    /// The image: `host`, or an OCI reference that the engine has
    #[arg(long, value_name = "IMAGE")]
    image: Option<String>,
    /// The engine that makes the sandbox [default: auto]
    #[arg(long, value_name = "ENGINE", value_parser = super::engine::choice())]
    engine: Option<engine::Choice>,
    /// End the call after this time, such as 30s; can only tighten
    #[arg(long, value_name = "TIME")]
    timeout: Option<String>,
    /// Memory of the call, such as 256MiB; can only tighten
    #[arg(long, value_name = "SIZE")]
    memory: Option<String>,
    /// Any limit by its key, such as pids=64; can only tighten (`runner policy limits` lists them)
    #[arg(long = "limit", value_name = "KEY=VALUE")]
    limits: Vec<String>,
    /// With --json: bytes kept of each output stream, such as 1MiB, within the policy's `output`
    /// limit [default: 32KiB]
    #[arg(long, value_name = "SIZE")]
    output: Option<String>,
    /// Make a new sandbox for this call, and prepare none for the next call
    #[arg(long)]
    cold: bool,
    /// Hold back all changes of the command; `runner stage` shows and applies them
    #[arg(long)]
    stage: bool,
    /// Fail if a change of the command is held back
    #[arg(long)]
    strict_writes: bool,
    /// Run nothing; show the command, the sandbox and its protections
    #[arg(long)]
    dry_run: bool,
    /// Use this approval, given with `runner approve`
    #[arg(long, value_name = "ID")]
    approve: Vec<ApprovalId>,
    /// A shell line; runner parses and executes it, no shell runs
    #[arg(long, value_name = "LINE", group = "what", allow_hyphen_values = true)]
    shell: Option<OsString>,
    /// A command and its arguments
    #[arg(value_name = "CMD", group = "what", trailing_var_arg = true,
        value_hint = clap::ValueHint::CommandWithArguments)]
    command: Vec<OsString>,
}

/// Runs it.
pub(super) fn run(args: Args, context: &Context, printer: &mut Printer) -> Result<Ending, Error> {
    let dry_run = args.dry_run;
    let named = args.approve.clone();
    let keep = kept(args.output.as_deref())?;
    let mut decided = args.resolve(context)?.decide(context)?;
    if dry_run {
        return plan(&decided, printer);
    }
    let output = match printer.format() {
        Format::Json => Output::Kept(input(), keep),
        Format::Text => Output::Streamed(streams()),
    };
    if (decided.is_allowed() || decided.asks()) && printer.format() == Format::Text {
        wants_terminal(&decided, printer);
        not_widened(&decided, printer);
    }
    let asking = if decided.asks() { Some(Arc::new(asking(&decided, named)?)) } else { None };
    let result =
        cancellable(async |cancel| Ok(call::run(&mut decided, output, asking, cancel).await?))?;
    report(&decided, &result, printer)?;
    if let Some(farewell) = result.farewell {
        farewell.with_us();
    }
    Ok(result.ending)
}

/// Who is asked, if the policy asks.
fn asking(decided: &Decided, named: Vec<ApprovalId>) -> Result<Asking, Error> {
    Ok(Asking {
        approver: approver(Yes::NotTyped, Arc::new(SharedStderr::new()), &decided.context.caller),
        named,
        times: decided.config.approvals(),
        places: decided.places.clone(),
        redactor: Redactor::new(),
        spent: Spent::default(),
        caller: decided.context.caller.clone(),
    })
}

impl Args {
    fn resolve(self, context: &Context) -> Result<Request, Error> {
        let policy = choice(self.policy, &context.environment)?;
        let command = match self.shell {
            Some(line) => Command::Line(
                line.into_string()
                    .map_err(|line| UsageError::NotText(line.to_string_lossy().into_owned()))?,
            ),
            None => Command::Argv(self.command),
        };
        let mut tighten = Vec::new();
        let named = [("wall", "--timeout", self.timeout), ("memory", "--memory", self.memory)];
        for (key, option, figure) in named {
            if let Some(figure) = figure {
                tighten.push(limit(option, key, &figure)?);
            }
        }
        tighten.extend(tightened(&self.limits)?);
        Ok(Request {
            command,
            cwd: self.workdir,
            policy,
            image: self.image,
            engine: self.engine,
            tighten,
            warmth: if self.cold { Warmth::Cold } else { Warmth::Pool },
            variables: Variables::Told,
            writes: if self.stage { Writes::Review } else { Writes::default() },
            on_held: if self.strict_writes { OnHeld::Fail } else { OnHeld::Tell },
        })
    }
}

/// Bytes that a result keeps of each output stream by default: what fits an agent's context.
const OUTPUT: u64 = 32 << 10;

/// What is kept of each output stream, by `--output`.
pub(super) fn kept(size: Option<&str>) -> Result<Keep, UsageError> {
    let bytes = size.map(|size| limit("--output", Limit::Output.row().key, size)).transpose()?;
    Ok(Keep::AtMost(bytes.map_or(OUTPUT, |(_, bytes)| bytes)))
}

/// The limits of `--limit KEY=VALUE`.
pub(super) fn tightened(limits: &[String]) -> Result<Vec<(Limit, u64)>, UsageError> {
    let one = |text: &String| {
        let (key, figure) = text.split_once('=').ok_or_else(|| UsageError::Option {
            option: "--limit".to_owned(),
            why: format!("`{text}` has no value; write KEY=VALUE, such as pids=64"),
        })?;
        limit("--limit", key, figure)
    };
    limits.iter().map(one).collect()
}

/// One limit, as typed.
pub(super) fn limit(option: &str, key: &str, figure: &str) -> Result<(Limit, u64), UsageError> {
    let wrong = |why: String| UsageError::Option { option: option.to_owned(), why };
    let Some(limit) = Limit::by_key(key) else {
        let known: Vec<&str> = runner_policy::limits::TABLE.iter().map(|row| row.key).collect();
        return Err(wrong(format!("there is no limit `{key}`; known: {}", known.join(", "))));
    };
    match limit.row().unit.parse(figure) {
        Ok(figure) => Ok((limit, figure)),
        Err(form) => Err(wrong(format!("`{figure}` is not a value of `{key}`; write {form}"))),
    }
}

/// Standard input of the call: that of this process, unless it is a terminal. The command would get a pipe in its place,
/// and programs that distinguish the two (ripgrep does) would wait for input.
fn input() -> Source {
    use rustix::fs::{FileType, fstat, major, minor};
    /// The device number of `/dev/null`.
    const NULL: (u32, u32) = (1, 3);
    let stat = fstat(std::io::stdin()).ok()?;
    let device = FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice;
    let null = device && (major(stat.st_rdev), minor(stat.st_rdev)) == NULL;
    if null || std::io::stdin().is_terminal() { None } else { Some(Box::pin(tokio::io::stdin())) }
}

fn streams() -> Streams {
    let out: Pin<Box<dyn AsyncWrite + Send>> = if std::io::stdout().is_terminal() {
        Box::pin(TerminalSink::new(tokio::io::stdout()))
    } else {
        Box::pin(tokio::io::stdout())
    };
    let err: Pin<Box<dyn AsyncWrite + Send>> = if std::io::stderr().is_terminal() {
        Box::pin(TerminalSink::new(tokio::io::stderr()))
    } else {
        Box::pin(tokio::io::stderr())
    };
    Streams {
        network: None,
        stdin: input(),
        stdout: Some(out),
        stderr: Some(err),
        talk: None,
        keep: Keep::default(),
    }
}

/// Programs that are of no use without a terminal.
const INTERACTIVE: &[&str] = &[
    "vi", "vim", "nvim", "nano", "emacs", "top", "htop", "less", "more", "man", "tmux", "screen",
    "ssh", "mc", "ranger",
];
/// Programs that are so when they are given nothing to do.
const PROMPTS: &[&str] =
    &["sh", "bash", "zsh", "fish", "dash", "python", "python3", "node", "irb", "psql", "sqlite3"];

/// One clear sentence for a command that wants a terminal.
fn wants_terminal(decided: &Decided, printer: &mut Printer) {
    let Command::Argv(argv) = &decided.request.command else { return };
    let Some(name) = argv.first().and_then(|name| name.to_str()) else { return };
    let bare = argv.len() == 1 && std::io::stdin().is_terminal();
    if INTERACTIVE.contains(&name) || (bare && PROMPTS.contains(&name)) {
        printer.talk(format_args!(
            "note: `{}` wants a terminal; a sandbox has none, its standard streams are pipes",
            visible(name)
        ));
    }
}

/// A figure that is wider than the policy's changes nothing, and that is said.
fn not_widened(decided: &Decided, printer: &mut Printer) {
    let limits = decided.limits();
    for (limit, figure) in &decided.request.tighten {
        let (row, stays) = (limit.row(), limits.get(*limit));
        if stays != *figure {
            printer.talk(format_args!(
                "note: `{}` stays {}: a caller can only tighten a limit, not set {}",
                row.key,
                row.unit.show(stays),
                row.unit.show(*figure),
            ));
        }
    }
}

/// What a person sees besides the command's own output.
pub(super) fn report(
    decided: &Decided,
    result: &CallResult,
    printer: &mut Printer,
) -> Result<(), Error> {
    if printer.format() == Format::Json {
        printer.json(&result.told(printer.detail()))?;
        return Ok(());
    }
    // What the policy asks about is over: a person has answered.
    if let Some(error) = result.error.as_ref().filter(|error| error.is_answer()) {
        let (bad, faint) = (style::BAD, style::FAINT);
        printer.talk(format_args!(
            "{bad}deny{bad:#}  {}  {faint}[{}]{faint:#}",
            visible(&decided.request.shown()),
            error.code
        ));
        printer.talk(format_args!("  because     {}", visible(&error.message)));
        printer.hint(error.suggestion.as_deref().unwrap_or_default());
        return Ok(());
    }
    if let Some(explanation) = result.decision.refused() {
        let (asked, configured) = (decided.request.shown(), decided.configured.as_ref());
        printer.talk(
            format_args!("{}", View { asked: &asked, explanation, configured })
                .to_string()
                .trim_end(),
        );
        let approval = result.error.as_ref().filter(|error| error.details.is_some());
        if let Some(suggestion) = approval.and_then(|error| error.suggestion.as_ref()) {
            printer.hint(suggestion);
        }
        return Ok(());
    }
    // Who leaves knows that they left.
    let told = |error: &&ErrorObject| error.code != Code::OutputClosed;
    if let Some(error) = result.error.as_ref().filter(told) {
        printer.talk(format_args!("runner: {}", visible(&error.message)));
        if let Some(suggestion) = &error.suggestion {
            printer.hint(suggestion);
        }
    }
    // The error of a limit has said which, and that of a program where it is.
    let said = result.error.is_some();
    let errors = [ShortfallKind::Limit, ShortfallKind::OutsideSandbox];
    let told = |entry: &Shortfall| said && errors.contains(&entry.code);
    if let Some(line) = shortfall_line(&result.sandbox, told) {
        printer.talk(format_args!("runner: {}", visible(&line)));
    }
    let is_told = result.error.as_ref().is_some_and(|error| error.code == Code::ChangesHeld);
    let changes = result.changes.as_ref().filter(|_| !is_told);
    if let Some(line) = changes.and_then(Changes::held_line) {
        printer.talk(format_args!("runner: {}", visible(&line)));
    }
    Ok(())
}

/// `--dry-run`: the decision and the plan.
fn plan(decided: &Decided, printer: &mut Printer) -> Result<Ending, Error> {
    let explanation = decided.explain()?;
    let ending = super::policy::view::ending(&decided.decision);
    let plan =
        if decided.is_allowed() { Some(in_event_loop(call::dry_run(decided))??) } else { None };
    match printer.format() {
        Format::Json => {
            printer.json(&call::plan_object(&explanation, plan.as_ref()))?;
        }
        Format::Text => {
            let asked = decided.request.shown();
            let configured = decided.configured.as_ref();
            printer.data(View { asked: &asked, explanation: &explanation, configured })?;
            if let Some(dry) = &plan {
                printer.data(super::plan_view::PlanView(&dry.plan))?;
            }
        }
    }
    Ok(ending)
}
