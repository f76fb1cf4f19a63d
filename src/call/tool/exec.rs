//! A tool's commands: each is a call of its own, decided and sandboxed like any other.

use std::path::PathBuf;
use std::sync::Arc;

use runner_policy::Effective;
use runner_policy::limits::Limit;
use runner_policy::model::RunPlace;
use tokio::io::AsyncWriteExt as _;

use super::approval::{Asker, failed, refused};
use crate::broker::{Body, Boxed, Code, Command, Exec, ExecReply, ExecRequest, Refusal};
use crate::call::approval::{Answer, Fed, Question, Unapproved, deeds};
use crate::call::record::{Record, Unrecorded};
use crate::call::request::{Approval, Decided, Request, Variables};
use crate::call::run::{Output, carry_out, refuse};
use crate::call::supply::Warmth;
use crate::call::{self, CallError, CallResult};
use crate::config::Config;
use crate::error::Failure as _;
use crate::policies::{Choice, Places};
use crate::sandbox::streams::Source;
use crate::sandbox::workspace::Workspace;

/// Bytes of a command's standard input that may wait for it.
const STDIN_WAITING: usize = 64 << 10;

/// Runs the commands of one tool call.
pub(super) struct ToolExec {
    /// The policy, within the tool's permissions.
    pub policy: Arc<Effective>,
    /// The workspace of the call.
    pub root: PathBuf,
    /// Where our own files are.
    pub places: Places,
    /// The image, instead of the policy's.
    pub image: Option<String>,
    /// Who is asked where the policy asks, about which tool and call.
    pub asker: Asker,
    /// Limits of the caller that are tighter than the policy's.
    pub tighten: Vec<(Limit, u64)>,
    /// The configuration.
    pub config: Arc<Config>,
    /// Whether sandboxes that wait may be used.
    pub warmth: Warmth,
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
            tighten: milliseconds
                .map(|time| (Limit::Wall, time))
                .into_iter()
                .chain(self.tighten.iter().copied())
                .collect(),
            warmth: self.warmth,
            variables: Variables::Told,
        };
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let workspace = Workspace::open_at(&self.root, &cwd, home.as_deref())
            .map_err(|error| Refusal::new(Code::InvalidArgument, error.to_string()))?;
        let policy = Arc::clone(&self.policy);
        let mut decided = asked
            .decide_under(policy, workspace, self.places.clone(), Arc::clone(&self.config))
            .map_err(broken)?;
        let given = tokio::select! {
            source = input(stdin) => source?,
            _ = cancel.asked() => return Err(ended()),
        };
        if decided.asks() {
            let (question, arguments) =
                Question::of_command(Some(&self.asker.about.tool), &decided, Fed::of(&given));
            let deeds = deeds(&decided);
            let answer = tokio::select! {
                answer = self.asker.put("exec", question, arguments, deeds) => answer,
                _ = cancel.asked() => return Err(ended()),
            };
            let refusal = match answer {
                Ok(Answer::Yes) => None,
                Ok(Answer::No(why)) => {
                    self.record(&decided, Some(&why))?;
                    Some(refused(&why, "the command"))
                }
                Err(error) => {
                    self.record(&decided, None)?;
                    Some(failed(&error))
                }
            };
            if let Some(refusal) = refusal {
                let rule = decided.decision.rule.map(Box::new);
                return Err(Refusal { rule, ..refusal });
            }
            decided.approval = Approval::Given;
        }
        if !decided.is_allowed() {
            return Err(self.refused(&decided));
        }
        if decided.decision.grant.place == RunPlace::Host {
            return Err(Refusal::new(
                Code::HostNotOffered,
                "the rule says `where: host`, and commands of tools run in sandboxes only",
            ));
        }
        let call = Unrecorded::new(&self.places).map_err(broken)?;
        let (output, parent) = (Output::Kept(given), Some(&self.asker.call));
        let result = carry_out(call, &decided, output, &mut cancel, parent).await;
        reply(result.map_err(broken)?, begun.elapsed())
    }

    /// Records the refusal, and says it to the tool.
    fn refused(&self, decided: &Decided) -> Refusal {
        let code = match decided.decision.approvable {
            true => Code::ApprovalNeeded,
            false => Code::AccessDenied,
        };
        let refusal = Refusal::of_decision(code, &decided.decision);
        match self.record(decided, None) {
            Ok(better) => Refusal { suggestion: better.or(refusal.suggestion), ..refusal },
            Err(refusal) => refusal,
        }
    }

    /// Records that a command may not run; the next step. What cannot be recorded is refused all the same, and says so.
    fn record(
        &self,
        decided: &Decided,
        why: Option<&Unapproved>,
    ) -> Result<Option<String>, Refusal> {
        let record = Record::open(&self.places);
        let result = record.and_then(|record| refuse(record, decided, Some(&self.asker.call), why));
        Ok(result.map_err(broken)?.error.and_then(|error| error.suggestion))
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
        "busy" => Code::Busy,
        "timeout" => Code::Timeout,
        "cancelled" => Code::Cancelled,
        _ => Code::EngineError,
    };
    let mut refusal = Refusal::new(code, error.to_string());
    refusal.suggestion = error.hint();
    refusal
}

fn reply(result: CallResult, duration: std::time::Duration) -> Result<ExecReply, Refusal> {
    if let Some(error) = result.error.as_ref().filter(|error| error.code == "program_not_found") {
        let mut refusal = Refusal::new(Code::ProgramNotFound, error.message.clone());
        refusal.suggestion.clone_from(&error.suggestion);
        return Err(refusal);
    }
    let exit = i32::from(result.exit.get());
    let signalled = result.error.as_ref().is_some_and(|error| error.code == "signalled");
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
