//! From a prepared tool call to its result: approve, verify, record, run, check, record.

use std::sync::Arc;

use runner_policy::Verdict;
use serde_json::{Map, Value, json};

use super::approval::{Approver, Question, ToolNet, put};
use super::error::ToolCallError;
use super::exec::ToolExec;
use super::outcome::{Judged, judge};
use super::prepare::Prepared;
use super::recorded::{Recorded, RecordedApprover};
use super::sandbox::{Ran, run_job};
use crate::audit::{Redactor, Started};
use crate::broker::{
    Authority, BrokerLimits, BrokerUsage, Brokered, Conversation, Events, Fetcher, Form, Job, Mode,
};
use crate::call::place::place;
use crate::call::record::{End, Record};
use crate::call::request::{Approval, path_text};
use crate::call::result::{ErrorObject, Stream, ending, metadata};
use crate::call::run::in_event_loop;
use crate::call::{CallError, CallResult};
use crate::engine::CallId;
use crate::error::Failure;
use crate::exit::{Ending, Kind};
use crate::limits::{Place, Subject};
use crate::sandbox::cancel::Cancel;
use crate::sandbox::outcome::{CancelCause, Verdict as Outcome};
use crate::sandbox::run::Streams;
use crate::tool::ToolError;
use crate::tool::compile::CompileError;

/// Who listens to a tool while it runs, and who answers questions about it.
pub struct Front {
    /// Hears log lines and progress.
    pub events: Arc<dyn Events>,
    /// Where the tool's prints go, beside what is kept of them.
    pub streams: Streams,
    /// Approves.
    pub approver: Arc<dyn Approver>,
    /// Hides secrets, and learns those that the policy sends.
    pub redactor: Redactor,
}

/// Carries out a prepared call. A refusal is a result, not an error.
///
/// # Errors
/// The call did not come to an outcome. If it had started, its end is recorded.
pub fn run(prepared: &Prepared, front: Front) -> Result<CallResult, CallError> {
    let scene = &prepared.scene;
    let mut record = Record::open(&scene.places)?;
    let id = record.id().clone();
    let started = started(prepared, &front.redactor)?;
    let approver: Arc<dyn Approver> = Arc::new(RecordedApprover {
        inner: Arc::clone(&front.approver),
        call: id.clone(),
        places: scene.places.clone(),
        redactor: front.redactor.clone(),
    });
    let front = Front { approver, ..front };
    let answer = if prepared.definition.auto_accept {
        Answer::Yes
    } else {
        in_event_loop(ask(prepared, Arc::clone(&front.approver)))?
    };
    if answer != Answer::Yes {
        let result = not_approved(&id, prepared, answer);
        let message = result.error.as_ref().map_or_else(String::new, |error| error.message.clone());
        record.refused(&started.refused(Verdict::Ask, "approval_needed", message))?;
        return Ok(result);
    }
    // The question may have taken a while: what was shown is what must run.
    if let Err(changed) = prepared.compiled.verify_inputs() {
        let error = CompileError::Changed(changed);
        record.refused(&started.refused(Verdict::Deny, error.code(), error.to_string()))?;
        return Err(CallError::Tool(ToolCallError::Compile(error)));
    }
    record.start(&started)?;
    let keeps = front.streams.stdout.is_none();
    let redactor = front.redactor.clone();
    let recorded =
        Arc::new(Recorded::new(&scene.places, &id, &redactor, Arc::clone(&front.events)));
    let ran = in_event_loop(serve(&id, prepared, front, &recorded));
    crate::sys::default_signals();
    let requests = recorded.finish();
    let ((ran, place), requests) = match ran.and_then(|ran| Ok((ran, requests?))) {
        Ok(ran) => ran,
        Err(error) => {
            record.end(End::of_error(&error))?;
            return Err(CallError::Started(id, Box::new(error)));
        }
    };
    let mut result = result(&id, prepared, ran, keeps, &redactor);
    place.tell(&mut result.metadata);
    record.end(End {
        ending: result.ending.clone(),
        code: result.error.as_ref().map(|error| error.code.clone()),
        detail: detail(&result.metadata, requests),
    })?;
    Ok(result)
}

/// How a call ran, as its end records it: the requests have records of their own.
fn detail(metadata: &Value, requests: u64) -> Value {
    let mut detail = metadata.clone();
    if let Some(broker) = detail["broker"].as_object_mut() {
        broker.remove("requests");
        broker["usage"]["recorded"] = requests.into();
    }
    detail
}

async fn serve(
    id: &CallId,
    prepared: &Prepared,
    mut front: Front,
    recorded: &Arc<Recorded>,
) -> Result<(Ran, Place), CallError> {
    let scene = &prepared.scene;
    let mut cancel =
        Cancel::on_signals().map_err(|error| CallError::Local("catch signals", error))?;
    let (subject, told) = (Subject::Tool(&prepared.definition.name), &mut front.streams.stderr);
    let place = place(&scene.places, subject, &scene.limits, &mut cancel, told).await?;
    let name = prepared.definition.name.to_string();
    let exec = ToolExec {
        policy: Arc::clone(&scene.policy),
        root: scene.workspace.root().to_owned(),
        places: scene.places.clone(),
        image: scene.image.clone(),
        approver: Arc::clone(&front.approver),
        tool: name.clone(),
        parent: id.clone(),
        tighten: prepared.tighten.clone(),
        config: Arc::clone(&scene.config),
        warmth: scene.warmth,
    };
    let authority = Authority {
        workspace: Arc::clone(&scene.workspace),
        policy: Arc::clone(&scene.policy),
        limits: BrokerLimits::from_limits(&scene.limits),
        exec: Arc::new(exec),
        net: Arc::new(Fetcher::new(
            Arc::clone(&scene.policy),
            front.redactor.clone(),
            Arc::new(ToolNet { approver: Arc::clone(&front.approver), tool: name.clone() }),
        )),
    };
    let job = Job {
        mode: Mode::Run,
        form: match prepared.form {
            crate::tool::Form::Yaml => Form::Yaml,
            crate::tool::Form::Module => Form::Module,
        },
        name,
        file: prepared.file.clone(),
        args: prepared.args.clone(),
        config: Map::new(),
        conversation: Some(Conversation {
            id: id.to_string(),
            working_directory: path_text(scene.workspace.cwd())?.to_owned(),
        }),
        workspace: path_text(scene.workspace.root())?.to_owned(),
        attempt: 1,
        code: prepared.compiled.code.clone().into_bytes(),
    };
    let ran = run_job(id, scene, job, authority, recorded, front.streams, &mut cancel).await?;
    Ok((ran, place))
}

fn started(prepared: &Prepared, redactor: &Redactor) -> Result<Started, CallError> {
    let scene = &prepared.scene;
    Ok(Started::of_tool(
        "run",
        prepared.reference(),
        redactor.json(&prepared.args),
        (path_text(scene.workspace.root())?, path_text(scene.workspace.cwd())?),
        &scene.policy,
    ))
}

/// What came of the question whether a tool may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    /// It may.
    Yes,
    /// It may not, or nobody was there to ask.
    No,
    /// Somebody ended the call instead.
    Cancelled(CancelCause),
}

/// Asks whether the call may start. A signal is an answer too.
async fn ask(prepared: &Prepared, approver: Arc<dyn Approver>) -> Result<Answer, CallError> {
    let definition = &prepared.definition;
    let permissions = &definition.permissions;
    let lists = [
        ("run", &permissions.allowlist),
        ("write", &permissions.write),
        ("reach", &permissions.net),
        ("set", &permissions.env),
    ];
    let asks = lists
        .into_iter()
        .flat_map(|(word, list)| list.iter().map(move |entry| (word, entry.clone())));
    let question = Question::Tool {
        tool: definition.name.to_string(),
        description: definition.description.clone(),
        args: prepared.args.clone(),
        risk: definition.risk.word(),
        file: prepared.file.clone(),
        policy: prepared.scene.policy.name().to_owned(),
        asks: asks.collect(),
    };
    let mut cancel =
        Cancel::on_signals().map_err(|error| CallError::Local("catch signals", error))?;
    Ok(tokio::select! {
        approval = put(approver, question) => match approval {
            Approval::Given => Answer::Yes,
            Approval::None => Answer::No,
        },
        cause = cancel.asked() => Answer::Cancelled(cause),
    })
}

/// The result of a call that nobody approved.
fn not_approved(id: &CallId, prepared: &Prepared, answer: Answer) -> CallResult {
    let name = &prepared.definition.name;
    let (ending, message, suggestion) = match answer {
        Answer::Cancelled(cause) => (
            ending(&Outcome::Cancelled(cause)),
            "the call was cancelled before it was approved".to_owned(),
            None,
        ),
        Answer::Yes | Answer::No => (
            Ending::of_kind(Kind::ApprovalNeeded, "approval_needed"),
            format!("the tool {name} was not approved"),
            Some(format!(
                "look at what it may do (runner tool info {name}), then answer y at a terminal, or call it with --yes"
            )),
        ),
    };
    let error = ErrorObject {
        code: ending.code.clone().unwrap_or_default(),
        message,
        recoverable: true,
        suggestion,
        rule: None,
        stack: None,
        details: None,
    };
    let judged = Judged { ending, value: None, error: Some(error) };
    assemble(id, prepared, judged, Value::Null, [None, None])
}

fn result(
    id: &CallId,
    prepared: &Prepared,
    ran: Ran,
    keeps: bool,
    redactor: &Redactor,
) -> CallResult {
    let Ran { outcome, served, plan, engine } = ran;
    let mut metadata = metadata(&plan, engine, Some(&outcome));
    metadata["broker"] = broker(&served.usage, &served.requests, redactor);
    let mut judged = judge(&outcome, served, &plan.limits);
    judged = checked(prepared, judged);
    if let Some(error) = &mut judged.error {
        error.message = redactor.text(&error.message).into_owned();
        error.stack = error.stack.take().map(|stack| redactor.text(&stack).into_owned());
        error.details = error.details.take().map(|details| redactor.json(&details));
    }
    let stream = |name, kept| keeps.then(|| Stream::new(name, kept));
    let streams = [stream("stdout", outcome.stdout), stream("stderr", outcome.stderr)];
    assemble(id, prepared, judged, metadata, streams)
}

/// Holds a value against what the tool says it returns.
fn checked(prepared: &Prepared, judged: Judged) -> Judged {
    let (Some(schema), Some(value)) = (&prepared.definition.returns, &judged.value) else {
        return judged;
    };
    match schema.check(value.clone()) {
        Ok(value) => Judged { value: Some(value), ..judged },
        Err(violations) => {
            let name = prepared.definition.name.clone();
            super::outcome::of_failure(&ToolError::Result { name, violations })
        }
    }
}

fn assemble(
    id: &CallId,
    prepared: &Prepared,
    judged: Judged,
    metadata: Value,
    [stdout, stderr]: [Option<Stream>; 2],
) -> CallResult {
    let policy = &prepared.scene.policy;
    CallResult {
        call: id.to_string(),
        status: judged.ending.status,
        exit: judged.ending.exit,
        tool: Some(prepared.reference()),
        value: judged.value,
        stdout,
        stderr,
        error: judged.error,
        decision: json!({ "policy": policy.name(), "digest": policy.digest.to_hex().to_string() }),
        metadata,
        explanation: None,
        ending: judged.ending,
    }
}

/// What the tool asked the broker for.
fn broker(usage: &BrokerUsage, requests: &[Brokered], redactor: &Redactor) -> Value {
    let requests: Vec<Value> = requests
        .iter()
        .map(|request| {
            json!({
                "method": request.method,
                "object": redactor.text(&request.object),
                "refused": request.refused.map(crate::broker::Code::word),
                "rule": request.rule.as_ref().map(|rule| &rule.id),
                "bytes_in": request.bytes_in,
                "bytes_out": request.bytes_out,
                "us": u64::try_from(request.duration.as_micros()).unwrap_or(u64::MAX),
                "call": request.call,
            })
        })
        .collect();
    json!({ "usage": usage, "requests": requests })
}
