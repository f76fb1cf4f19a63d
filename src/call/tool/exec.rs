//! A tool's commands: each is a call of its own, decided and sandboxed like any other.

use std::path::PathBuf;
use std::sync::Arc;

use runner_policy::Effective;
use runner_policy::limits::Limit;
use tokio::io::AsyncWriteExt as _;

use super::approval::{Asker, refused};
use super::shortfalls::Shortfalls;
use crate::broker::{Body, Boxed, Command, Exec, ExecReply, ExecRequest, Refusal};
use crate::call::approval::{Action, Fed, Question};
use crate::call::gate::{Consent, Gate, NotApproved, Shut, pass};
use crate::call::launch::run::Keep;
use crate::call::record::Unrecorded;
use crate::call::request::{Decided, Request, Variables};
use crate::call::run::{Output, carry_out};
use crate::call::supply::Warmth;
use crate::call::{self, CallError, CallResult, Context};
use crate::codes::Code;
use crate::config::Config;
use crate::engine;
use crate::error::Failure as _;
use crate::policy_files::{Choice, Places};
use crate::sandbox::streams::Source;
use crate::workspace::Workspace;

/// Bytes of a command's standard input that may wait for it.
const STDIN_WAITING: usize = 64 << 10;

/// Runs the commands of one tool call.
pub(super) struct ToolExec {
    /// The policy, within what the tool's permissions leave to its commands.
    pub policy: Arc<Effective>,
    /// The workspace of the call.
    pub root: PathBuf,
    /// Where our own files are.
    pub places: Places,
    /// The image, instead of the policy's.
    pub image: Option<String>,
    /// Which engines may make the sandboxes.
    pub engine: Option<engine::Choice>,
    /// Who is asked where the policy asks, about which tool and call.
    pub asker: Asker,
    /// Limits of the caller that are tighter than the policy's.
    pub tighten: Vec<(Limit, u64)>,
    /// The configuration.
    pub config: Arc<Config>,
    /// Whether sandboxes that wait may be used.
    pub warmth: Warmth,
    /// On whose behalf.
    pub context: Context,
    /// What their sandboxes keep from them.
    pub shortfalls: Shortfalls,
}

impl Exec for ToolExec {
    fn run(&self, request: ExecRequest) -> Boxed<'_, Result<ExecReply, Refusal>> {
        Box::pin(self.decide_and_run(request))
    }
}

impl ToolExec {
    async fn decide_and_run(&self, request: ExecRequest) -> Result<ExecReply, Refusal> {
        let ExecRequest { command, cwd, env, timeout, stdin, mut cancel } = request;
        let begun = std::time::Instant::now();
        let milliseconds = timeout.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        let asked = Request {
            command: with_variables(command, &env)?,
            cwd: Some(cwd.clone()),
            policy: Choice::default(),
            image: self.image.clone(),
            engine: self.engine.clone(),
            tighten: milliseconds
                .map(|time| (Limit::Wall, time))
                .into_iter()
                .chain(self.tighten.iter().copied())
                .collect(),
            warmth: self.warmth,
            variables: Variables::Told,
            writes: runner_policy::model::Writes::default(),
            on_held: crate::call::OnHeld::default(),
        };
        let workspace = Workspace::open_at(&self.root, &cwd, &self.context.environment)
            .map_err(|error| Refusal::new(Code::InvalidArgument, error.to_string()))?;
        let policy = Arc::clone(&self.policy);
        let (places, config) = (self.places.clone(), Arc::clone(&self.config));
        let mut decided = asked
            .decide_under(policy, workspace, places, config, self.context.clone())
            .map_err(broken)?;
        let given = tokio::select! {
            source = input(stdin) => source?,
            _ = cancel.asked() => return Err(ended()),
        };
        let consent = if decided.asks() {
            let action = Action::of_command(&decided).map_err(broken)?;
            let holds = action.holds(&action.files());
            let tool = Some(self.asker.about.tool.as_str());
            let (question, arguments) =
                Question::of_command(tool, &decided, Fed::of(&given), holds);
            self.asker.pending("exec", question, arguments, action).put(&mut cancel).await
        } else {
            Consent::NotAsked
        };
        let call = Unrecorded::new(&self.places, &self.context).map_err(broken)?;
        let parent = &self.asker.call;
        let call = match pass(call, &mut decided, consent, Some(parent)).map_err(broken)? {
            Gate::Open(call) => call,
            Gate::Shut(shut) => return Err(shut_out(shut, &decided)),
        };
        let output = Output::Kept(given, Keep::Limit);
        let result = carry_out(call, &decided, output, &mut cancel, Some(parent)).await;
        let result = result.map_err(broken)?;
        self.shortfalls.add(&result.sandbox);
        reply(result, begun.elapsed())
    }
}

/// What a tool is told about a command that may not run.
fn shut_out(shut: Shut, decided: &Decided) -> Refusal {
    let rule = decided.decision.rule.clone().map(Box::new);
    match &shut.why {
        Some(NotApproved::Cancelled(_)) => ended(),
        Some(why) => Refusal { rule, ..refused(why, "the command") },
        None => {
            let code = match decided.decision.approvable {
                true => Code::ApprovalNeeded,
                false => Code::AccessDenied,
            };
            let refusal = Refusal::of_decision(code, &decided.decision);
            match shut.result(decided) {
                Ok(result) => {
                    let better = result.error.and_then(|error| error.suggestion);
                    Refusal { suggestion: better.or(refusal.suggestion), ..refusal }
                }
                Err(error) => broken(error),
            }
        }
    }
}

/// The command with the variables that the tool sets, judged like those of `env NAME=VALUE CMD`.
pub(super) fn with_variables(
    command: Command,
    env: &[(String, String)],
) -> Result<call::Command, Refusal> {
    match command {
        Command::Line(_) if !env.is_empty() => Err(Refusal::new(
            Code::InvalidArgument,
            "a line sets its variables itself: write `NAME=value command`",
        )),
        Command::Line(line) => Ok(call::Command::Line(line)),
        Command::Argv(argv) => {
            let env = env.iter().map(|(name, value)| (name, value));
            Ok(call::Command::with_variables(argv, env))
        }
    }
}

/// Standard input of the command. A tool that gives none gives the null device: programs tell the two
/// apart.
async fn input(mut body: Body) -> Result<Source, Refusal> {
    let Some(first) = body.next().await? else { return Ok(None) };
    let (mut writer, reader) = tokio::io::duplex(STDIN_WAITING);
    tokio::spawn(async move {
        let mut piece = Some(first);
        // A command that reads no more, or a body that broke, is the end of it.
        while let Some(bytes) = piece.take() {
            if writer.write_all(&bytes).await.is_err() {
                return;
            }
            piece = body.next().await.unwrap_or(None);
        }
    });
    Ok(Some(Box::pin(reader)))
}

/// The tool, or the call, did not wait for it.
fn ended() -> Refusal {
    Refusal::new(Code::Cancelled, "the command was cancelled before it ran")
}

fn broken(error: CallError) -> Refusal {
    let code = match error.code() {
        Code::Busy => Code::Busy,
        Code::Timeout => Code::Timeout,
        Code::Cancelled => Code::Cancelled,
        _ => Code::EngineError,
    };
    let mut refusal = Refusal::new(code, error.to_string());
    refusal.suggestion = error.hint();
    refusal
}

fn reply(result: CallResult, duration: std::time::Duration) -> Result<ExecReply, Refusal> {
    if let Some(error) = result.error.as_ref().filter(|error| error.code == Code::ProgramNotFound) {
        let mut refusal = Refusal::new(Code::ProgramNotFound, error.message.clone());
        refusal.suggestion.clone_from(&error.suggestion);
        return Err(refusal);
    }
    let exit = i32::from(result.exit.get());
    let signalled = result.error.as_ref().is_some_and(|error| error.code == Code::Signalled);
    let bytes =
        |stream: Option<call::Stream>| stream.map_or((Vec::new(), false), call::Stream::into_bytes);
    let (stdout, cut_out) = bytes(result.stdout);
    let (stderr, cut_err) = bytes(result.stderr);
    Ok(ExecReply {
        exit_code: exit,
        status: result.status.word(),
        signal: signalled.then(|| signal_name(exit - 128)),
        stdout,
        stderr,
        truncated: cut_out || cut_err,
        duration,
        call: result.call,
    })
}

/// The name of a signal, as Node has them.
fn signal_name(signal: i32) -> String {
    let name = match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        15 => "SIGTERM",
        other => return format!("SIG{other}"),
    };
    name.to_owned()
}
