//! `run_command` and `explain`: a request of `call`, and its result in words for a model.

use std::sync::Arc;

use runner_policy::decide::Explanation;
use serde_json::json;

use super::calls::Ended;
use super::host::Host;
use super::output::Sink;
use super::who::Who;
use super::work::{CommandWork, Started};
use crate::approvals::QuestionRef;
use crate::audit::Redactor;
use crate::call::launch::run::{Keep, Streams};
use crate::call::{
    self, Always, Asking, CallError, CallResult, Command, Context, Decided, Details, ErrorObject,
    OnHeld, Output, Reply, Request, Shortfall, Spent, Variables, Warmth, shortfall_line,
};
use crate::error::Failure;
use crate::exit::Status;
use crate::policy_files::Places;
use crate::sandbox::cancel::Cancel;
use crate::workspace::Workspace;

/// Decides a command in the workspace of the server; a folder elsewhere is refused.
fn decide(host: &Host, context: &Context, work: &CommandWork) -> Result<Decided, CallError> {
    let folder = work.folder(&host.cwd);
    let workspace = Workspace::open_at(&host.root, &folder, &context.environment)?;
    let places = Places::of(&context.environment, Some(workspace.root()));
    let config = Arc::new(crate::config::load(&places)?);
    let request = Request {
        command: work.command.clone(),
        cwd: Some(folder),
        policy: host.settings.policy.clone(),
        image: host.settings.image.clone(),
        engine: host.settings.engine.clone(),
        tighten: work.tighten.clone(),
        warmth: Warmth::Pool,
        variables: Variables::Told,
        writes: Default::default(),
        on_held: OnHeld::Tell,
    };
    request.decide_at(workspace, places, config, context)
}

/// Runs work that reads files in a thread of its own: other calls go on meanwhile.
pub(super) async fn beside<T: Send + 'static>(
    what: &'static str,
    work: impl FnOnce() -> Result<T, CallError> + Send + 'static,
) -> Result<T, CallError> {
    let died = |error| CallError::Local(what, std::io::Error::other(error));
    tokio::task::spawn_blocking(work).await.map_err(died)?
}

/// Decides and runs a command.
pub(super) async fn run(started: &Started, work: CommandWork, mut cancel: Cancel) -> Ended {
    match try_run(started, work, &mut cancel).await {
        Ok(result) => ended(&started.host, &started.owner, &result),
        Err(error) => failed(&error),
    }
}

async fn try_run(
    started: &Started,
    work: CommandWork,
    cancel: &mut Cancel,
) -> Result<CallResult, CallError> {
    let source = work.source();
    let (host, context) = (Arc::clone(&started.host), started.context.clone());
    let mut decided = beside("decide", move || decide(&host, &context, &work)).await?;
    let asking = decided
        .asks()
        .then(|| Arc::new(asking(started, &decided.places, decided.config.approvals())));
    let sink = || {
        let sink: std::pin::Pin<Box<dyn tokio::io::AsyncWrite + Send>> =
            Box::pin(Sink(Arc::clone(&started.entry.output)));
        Some(sink)
    };
    let streams = Streams {
        network: None,
        stdin: source,
        stdout: sink(),
        stderr: sink(),
        talk: None,
        keep: Keep::default(),
    };
    call::run(&mut decided, Output::Streamed(streams), asking, cancel).await
}

/// No person is there to ask: questions wait in the book, and answers that it has count.
pub(super) fn asking(
    started: &Started,
    places: &Places,
    times: crate::config::Approvals,
) -> Asking {
    Asking {
        approver: Arc::new(Always(Reply::Nobody)),
        named: started.named.iter().cloned().collect(),
        places: places.clone(),
        times,
        redactor: Redactor::new(),
        spent: Spent::default(),
        caller: started.context.caller.clone(),
    }
}

/// What an error of the call itself comes to.
pub(super) fn failed(error: &CallError) -> Ended {
    let code = error.code();
    let mut words = format!("error [{}]: {error}", code.as_str());
    if let Some(hint) = error.hint() {
        words = format!("{words}\nnext: {hint}");
    }
    let mut ended = Ended::error(words);
    ended.meta.insert("runner/error".to_owned(), json!(code));
    ended
}

/// What a result comes to.
pub(super) fn ended(host: &Host, owner: &str, result: &CallResult) -> Ended {
    host.history.add(owner, &result.call);
    let mut lines = Vec::new();
    let waits = question(result).map(|question| question.id.clone());
    match (&result.error, result.status) {
        (Some(error), _) => lines.extend(error_lines(result, error)),
        (None, _) => lines.push(format!("[exit code {}]", result.exit.get())),
    }
    let said = result.error.is_some();
    let told = |entry: &Shortfall| said && entry.code == call::ShortfallKind::Limit;
    lines.extend(shortfall_line(&result.sandbox, told).map(|line| format!("note: {line}")));
    let held = result.changes.as_ref().and_then(call::stage::Changes::held_line);
    lines.extend(held.map(|line| format!("note: {line}")));
    let mut ended = Ended {
        words: lines.join("\n"),
        is_error: said,
        structured: None,
        meta: Default::default(),
        waits: waits.clone(),
    };
    ended.meta.insert("runner/call".to_owned(), json!(result.call));
    ended.meta.insert("runner/status".to_owned(), json!(result.status));
    ended.meta.insert("runner/exit".to_owned(), json!(result.exit));
    if let Some(error) = &result.error {
        ended.meta.insert("runner/error".to_owned(), json!(error.code));
    }
    if let Some(id) = waits {
        ended.meta.insert("runner/approval".to_owned(), json!(id.as_str()));
    }
    ended
}

/// The question that a call waits for.
fn question(result: &CallResult) -> Option<&QuestionRef> {
    match result.error.as_ref()?.details.as_ref()? {
        Details::Question { approval } if result.status == Status::NeedsApproval => Some(approval),
        _ => None,
    }
}

/// Why it did not run or did not end by itself, and the next step.
pub(super) fn error_lines(result: &CallResult, error: &ErrorObject) -> Vec<String> {
    let word = match result.status {
        Status::Denied => "denied",
        Status::NeedsApproval => "needs approval",
        Status::Cancelled => "cancelled",
        Status::Timeout => "timeout",
        _ => "error",
    };
    let mut lines = vec![format!("{word} [{}]: {}", error.code.as_str(), error.message)];
    let explanation = result.decision.refused();
    let decision = explanation.map(|told| &told.decision);
    if let Some(reason) = decision.and_then(|decision| decision.reason.as_ref()) {
        lines.push(format!("reason: {reason}"));
    }
    if let Some(rule) = &error.rule {
        lines.push(format!("rule: {} ({}:{})", rule.id, rule.file, rule.line));
    }
    if let Some(owner) = decision.and_then(|decision| decision.owner.as_ref()) {
        lines.push(format!("owner of the policy: {owner}"));
    }
    if let Some(question) = question(result) {
        lines.push(format!(
            "next: ask the user to run `runner approve {}` in a terminal, then make the same call again",
            question.id
        ));
    } else if let Some(told) = explanation {
        lines.extend(ways_out(told));
    } else if let Some(suggestion) = &error.suggestion {
        lines.push(format!("next: {suggestion}"));
    }
    lines
}

/// What a model can do about a refusal. It cannot choose another policy.
fn ways_out(told: &Explanation) -> Vec<String> {
    let mut lines: Vec<String> =
        told.nearest.iter().map(|form| format!("allowed instead: {form}")).collect();
    if told.decision.reaches_out {
        lines.push(format!("note: {}", runner_policy::decide::NO_NETWORK));
    }
    if lines.is_empty() {
        lines.push(
            "next: use another way, or ask the user for a policy that allows this; explain shows what it does"
                .to_owned(),
        );
    }
    lines
}

/// What the policy decides about a line, in words.
pub(super) async fn explain(
    host: &Arc<Host>,
    who: &Who,
    line: String,
) -> Result<String, CallError> {
    let (host, context) = (Arc::clone(host), host.context(who, None));
    let work = CommandWork {
        command: Command::Line(line.clone()),
        cwd: None,
        tighten: Vec::new(),
        stdin: None,
    };
    beside("explain", move || {
        let decided = decide(&host, &context, &work)?;
        let explanation = decided.explain()?;
        Ok((host.settings.words.decision)(&line, &explanation, decided.configured.as_ref()))
    })
    .await
}
