//! From a prepared tool call to its result: approve, verify, record, run, check, record.

use std::sync::Arc;

use runner_policy::Verdict;
use serde_json::{Map, Value, json};

use super::approval::{Approver, Question, ToolNet};
use super::error::ToolCallError;
use super::exec::ToolExec;
use super::outcome::{Judged, judge};
use super::prepare::Prepared;
use super::sandbox::{Ran, run_job};
use crate::audit::{Redactor, Started};
use crate::broker::{
    Authority, BrokerLimits, BrokerUsage, Brokered, Conversation, Events, Fetcher, Form, Job, Mode,
};
use crate::call::record::{End, Record};
use crate::call::request::{Approval, path_text};
use crate::call::result::{ErrorObject, Stream, metadata};
use crate::call::run::in_event_loop;
use crate::call::{CallError, CallResult};
use crate::engine::CallId;
use crate::error::Failure;
use crate::exit::{Ending, Kind};
use crate::sandbox::cancel::Cancel;
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
    if !approved(prepared, front.approver.as_ref()) {
        let result = not_approved(&id, prepared);
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
    let ran = in_event_loop(serve(&id, prepared, front));
    let ran = match ran {
        Ok(ran) => ran,
        Err(error) => {
            record.end(End::of_error(&error))?;
            return Err(CallError::Started(id, Box::new(error)));
        }
    };
    let result = result(&id, prepared, ran, keeps, &redactor);
    record.end(End {
        ending: result.ending.clone(),
        code: result.error.as_ref().map(|error| error.code.clone()),
        detail: result.metadata.clone(),
    })?;
    Ok(result)
}

async fn serve(id: &CallId, prepared: &Prepared, front: Front) -> Result<Ran, CallError> {
    let scene = &prepared.scene;
    let mut cancel =
        Cancel::on_signals().map_err(|error| CallError::Local("catch signals", error))?;
    let name = prepared.definition.name.to_string();
    let exec = ToolExec {
        policy: Arc::clone(&scene.policy),
        root: scene.workspace.root().to_owned(),
        places: scene.places.clone(),
        image: scene.image.clone(),
        approver: Arc::clone(&front.approver),
        tool: name.clone(),
        parent: id.clone(),
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
    run_job(id, scene, job, authority, front.events, front.streams, &mut cancel).await
}

fn started(prepared: &Prepared, redactor: &Redactor) -> Result<Started, CallError> {
    let scene = &prepared.scene;
    Ok(Started::of_tool(
        format!("tool run {}", prepared.definition.name),
        &prepared.compiled.digest,
        redactor.json(&prepared.args),
        (path_text(scene.workspace.root())?, path_text(scene.workspace.cwd())?),
        &scene.policy,
    ))
}

/// Whether the call may start, as far as the tool's author is concerned.
fn approved(prepared: &Prepared, approver: &dyn Approver) -> bool {
    let definition = &prepared.definition;
    definition.auto_accept
        || approver.approve(&Question::Tool {
            tool: definition.name.to_string(),
            description: definition.description.clone(),
            args: prepared.args.clone(),
            risk: definition.risk.word(),
            commands: definition.permissions.allowlist.clone(),
        }) == Approval::Given
}

/// The result of a call that nobody approved.
fn not_approved(id: &CallId, prepared: &Prepared) -> CallResult {
    let error = ErrorObject {
        code: "approval_needed".to_owned(),
        message: format!("the tool {} wants to be approved", prepared.definition.name),
        recoverable: true,
        suggestion: Some(
            "look at what it may do (runner tool info), then call it with --yes".to_owned(),
        ),
        rule: None,
        stack: None,
        details: None,
    };
    let judged = Judged {
        ending: Ending::of_kind(Kind::ApprovalNeeded, "approval_needed"),
        value: None,
        error: Some(error),
    };
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
