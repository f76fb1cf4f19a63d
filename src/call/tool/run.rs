//! From a prepared tool call to its result: approve, verify, record, run, check, record.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use runner_policy::Verdict;
use runner_policy::limits::Limit;
use serde_json::Map;

use super::admission::{enter, missing_credentials, went};
use super::attempts::may_fall_back;
use super::authority::authority;
use super::consent::{asker, give_back, named, pending, refusal};
use super::in_process::run_in_process;
use super::outcome::{Judged, Words, judge, of_failure};
use super::prejudge::{denied, prejudge};
use super::prepare::Prepared;
use super::program::Program;
use super::recorded::Recorded;
use super::sandbox::run_job;
use super::shortfalls::Shortfalls;
use super::tries::{Tried, attempts};
use super::within::Ran;
use crate::audit::{Redactor, Started};
use crate::broker::{Conversation, Events, Form, Job, Mode};
use crate::call::approval::Asking;
use crate::call::details::Details;
use crate::call::gate::{Consent, NotApproved};
use crate::call::launch::run::{Keep, Streams};
use crate::call::metadata::{Fallback, FallbackOf, Metadata, Named, OfBroker};
use crate::call::place::place;
use crate::call::record::{End, Opened, Unrecorded};
use crate::call::request::path_text;
use crate::call::result::{CallDecision, ErrorObject, Stream};
use crate::call::{CallError, CallResult};
use crate::codes::Code;
use crate::engine::plan::Note;
use crate::error::Failure as _;
use crate::ids::CallId;
use crate::queue::{Gate, HeldSlot, Subject, Went};
use crate::sandbox::cancel::Cancel;
use crate::tool::compile::CompileError;
use crate::tool::{RetryPolicy, ToolError};

/// Who listens to a tool while it runs, and who answers questions about it.
#[derive(Clone)]
pub struct Front {
    /// Hears log lines and progress.
    pub events: Arc<dyn Events>,
    /// Makes the streams of an attempt: where the tool's prints go, beside what is kept of them.
    pub streams: Arc<dyn Fn() -> Streams + Send + Sync>,
    /// Approves.
    pub asking: Arc<Asking>,
    /// Hides secrets, and learns those that the policy sends.
    pub redactor: Redactor,
    /// When to try again, instead of what the tool says.
    pub retry: Option<RetryPolicy>,
}

/// Carries out a prepared call. A refusal is a result, not an error.
///
/// # Errors
/// The call did not come to an outcome. If it had started, its end is recorded.
pub async fn run(
    prepared: &Prepared,
    front: &Front,
    cancel: &mut Cancel,
) -> Result<CallResult, CallError> {
    let result = run_one(prepared, front, cancel).await?;
    let policy = front.retry.as_ref().unwrap_or(&prepared.definition.retry);
    let Some(other) =
        policy.fallback.as_ref().filter(|_| may_fall_back(result.status, result.error.as_ref()))
    else {
        return Ok(result);
    };
    // Another tool with the same arguments, asked about and decided like any other; its own fallback is not used.
    let instead = match prepared.instead(other.clone(), cancel).await {
        Ok(prepared) => run_one(&prepared, front, cancel).await,
        Err(error) => Err(error),
    };
    Ok(match instead {
        Ok(instead) => {
            let of = FallbackOf {
                tool: result.tool,
                call: result.call,
                error: result.error,
                attempts: result.metadata.and_then(|metadata| metadata.attempts),
            };
            told(instead, |metadata| metadata.fallback_of = Some(Box::new(of)))
        }
        // Why the tool itself failed is not hidden by what is wrong with the other one.
        Err(error) => {
            let error = of_failure(&error).error;
            let fallback = Fallback { tool: Named { name: other.clone() }, error };
            told(result, |metadata| metadata.fallback = Some(Box::new(fallback)))
        }
    })
}

/// A result whose metadata say one thing more.
fn told(mut result: CallResult, add: impl FnOnce(&mut Metadata)) -> CallResult {
    add(result.metadata.get_or_insert_default());
    result
}

/// One tool, with its retries.
async fn run_one(
    prepared: &Prepared,
    front: &Front,
    cancel: &mut Cancel,
) -> Result<CallResult, CallError> {
    let scene = &prepared.scene;
    let begun = Instant::now();
    let limits = scene.config.limits(&prepared.definition.name);
    let opened = Unrecorded::new(&scene.places, &scene.context)?.open()?;
    let id = opened.id().clone();
    let started = started(prepared, &front.redactor)?;
    let refuse = |opened: Opened, code, judged: Judged| {
        let message = judged.error.as_ref().map(|error| error.message.clone());
        let mut refused = started.clone().refused(Verdict::Deny, code, message.unwrap_or_default());
        refused.rule = judged.error.as_ref().and_then(|error| error.rule.clone());
        opened.refuse(refused, &judged.ending)?;
        Ok(assemble(&id, prepared, judged, None, [None, None]))
    };
    if let Some(judged) = missing_credentials(prepared) {
        return refuse(opened, Code::AuthenticationRequired, judged);
    }
    let consent = if prepared.definition.asks(&prepared.args) {
        // What the policy denies in any case is not asked about.
        match prejudge(prepared)? {
            Ok(prejudged) => {
                let pending = pending(&id, prepared, prejudged, Arc::clone(&front.asking))?;
                pending.put(cancel).await
            }
            Err(refusal) => {
                let code = refusal.code;
                let judged = redacted(denied(refusal), Words::Ours, &front.redactor);
                return refuse(opened, code, judged);
            }
        }
    } else {
        Consent::NotAsked
    };
    if let Consent::Refused(why) = consent {
        let name = &prepared.definition.name;
        why.record(opened, started.clone(), &named(name))?;
        let judged = refusal(&why, name);
        return match why {
            NotApproved::Failed(error) => Err(error.into()),
            NotApproved::Answer(_) | NotApproved::Cancelled(_) => {
                Ok(assemble(&id, prepared, judged, None, [None, None]))
            }
        };
    }
    // The question may have taken a while: what was shown is what must run.
    if let Err(changed) = prepared.program.verify() {
        let details = Details::File { file: changed.path.clone() };
        let error = CompileError::Changed(changed);
        let mut judged = of_failure(&error);
        judged.error = judged.error.map(|it| ErrorObject { details: Some(details), ..it });
        return refuse(opened, error.code(), judged);
    }
    if let Some((code, judged)) = enter(opened.store(), &id, prepared, limits)? {
        return refuse(opened, code, judged);
    }
    let record = opened.start(&started)?;
    let total = limits.total_time.map(|time| (begun + time, time));
    let recorded = Recorded::new(&scene.places, &id, &front.redactor, Arc::clone(&front.events));
    let recorded = Arc::new(recorded);
    let ran = attempts(&id, prepared, front, &recorded, total, cancel).await;
    let (requests, ran) = recorded.finish_after(ran);
    // What broke around the tool says nothing of it.
    let went = ran.as_ref().map_or(Went::Neither, |tried| went(prepared, &tried.result));
    let booked = prepared.definition.estimates().cost.unwrap_or(0);
    let cost = ran.as_ref().ok().and_then(|tried| tried.cost);
    let more = cost.unwrap_or(0).saturating_sub(booked);
    let gate = Gate::new(record.store(), &prepared.definition.name, limits);
    let left = gate.leave(&id, went, more, crate::sys::now());
    match ran {
        Ok(Tried { result, cost }) => {
            record.end(End {
                ending: result.ending.clone(),
                code: result.error.as_ref().map(|error| error.code),
                rule: result.error.as_ref().and_then(|error| Some(error.rule.as_ref()?.id.clone())),
                cost,
                detail: result.detail(|metadata| metadata.recorded(requests.count())),
                requests: requests.left,
            })?;
            left?;
            give_back(&id, &front.asking, &result)?;
            Ok(result)
        }
        Err(error) => {
            record.end(End { requests: requests.left, ..End::of_error(&error) })?;
            Err(CallError::Started(id, Box::new(error)))
        }
    }
}

pub(super) async fn serve(
    id: &CallId,
    prepared: &Prepared,
    front: &Front,
    recorded: &Arc<Recorded>,
    mut streams: Streams,
    (attempt, wall): (u32, u64),
    cancel: &mut Cancel,
) -> Result<(Ran, HeldSlot), CallError> {
    let mut scene = prepared.scene.clone();
    scene.limits.set(Limit::Wall, wall);
    let scene = &scene;
    let (subject, told) = (Subject::Tool(&prepared.definition.name), &mut streams.stderr);
    let place = place((&scene.places, &scene.config), subject, &scene.limits, cancel, told).await?;
    let name = prepared.definition.name.to_string();
    let asker = asker(id, prepared, Arc::clone(&front.asking))?;
    let (tighten, redactor) = (&prepared.tighten, front.redactor.clone());
    let (removal, shortfalls) = (prepared.definition.removal, Shortfalls::default());
    let authority = authority(scene, asker, tighten, redactor, removal, shortfalls.clone());
    let (form, code) = match &prepared.program {
        Program::Module { compiled, form } => (*form, compiled.code.clone().into_bytes()),
        Program::BuiltIn(_) => (Form::BuiltIn, Vec::new()),
        // A server has no talk with the broker: `tries` runs it.
        Program::Server { .. } => {
            let error = std::io::ErrorKind::Unsupported.into();
            return Err(CallError::Local("serve a tool of a server", error));
        }
    };
    let job = Job {
        mode: Mode::Run,
        form,
        name,
        file: prepared.file.clone(),
        args: prepared.args.clone(),
        env: BTreeMap::new(),
        config: Map::new(),
        conversation: Some(Conversation {
            id: id.to_string(),
            working_directory: path_text(scene.workspace.cwd())?.to_owned(),
        }),
        workspace: path_text(scene.workspace.root())?.to_owned(),
        attempt,
        code,
    };
    if let Program::BuiltIn(tool) = prepared.program {
        let ran = run_in_process(tool, scene, job, authority, recorded, cancel).await;
        return Ok((Ran { shortfalls: shortfalls.take(), ..ran }, place));
    }
    // A name is free again only when its sandbox is gone.
    let sandbox = match attempt {
        1 => id.clone(),
        _ => CallId::fresh().map_err(|error| CallError::Local("make an id", error))?,
    };
    let ran = run_job(&sandbox, scene, job, authority, recorded, streams, cancel).await?;
    Ok((Ran { shortfalls: shortfalls.take(), ..ran }, place))
}

fn started(prepared: &Prepared, redactor: &Redactor) -> Result<Started, CallError> {
    let scene = &prepared.scene;
    Ok(Started::of_tool(
        "run",
        prepared.reference(),
        redactor.json(&prepared.args),
        (path_text(scene.workspace.root())?, path_text(scene.workspace.cwd())?),
        &scene.policy,
        &scene.context.caller,
    ))
}

pub(super) fn result(
    id: &CallId,
    prepared: &Prepared,
    ran: Ran,
    keep: Option<Keep>,
    redactor: &Redactor,
) -> CallResult {
    let Ran { served, within, shortfalls } = ran;
    let mut metadata = within.metadata();
    let permissions = &prepared.definition.permissions;
    if !permissions.allowlist.is_empty() && !prepared.scene.commands.writes_anything() {
        metadata.note(&[Note {
            code: "read_only_commands",
            text: "the commands of this tool may write nothing in the workspace".to_owned(),
        }]);
    }
    metadata.broker = Some(Box::new(OfBroker::new(&served.usage, &served.requests, redactor)));
    let words = match prepared.program {
        Program::BuiltIn(_) => Words::Ours,
        Program::Module { .. } | Program::Server { .. } => Words::Theirs,
    };
    let name = &prepared.definition.name;
    let mut judged = judge(within.verdict(), served, within.limits(), words, name);
    judged = redacted(checked(prepared, judged), words, redactor);
    let sandbox = [within.shortfalls(keep), shortfalls].concat();
    let (streams, farewell) = within.rest(redactor);
    let streams = if keep.is_some() { streams } else { [None, None] };
    let result = assemble(id, prepared, judged, Some(metadata), streams);
    CallResult { farewell, sandbox, ..result }
}

/// Hides secrets in what went wrong, and in what a tool of others returned. What a built-in tool returns are contents
/// that the policy lets the caller read: a masked one would be written back by who edits it.
pub(super) fn redacted(mut judged: Judged, words: Words, redactor: &Redactor) -> Judged {
    if words == Words::Theirs {
        judged.value = judged.value.take().map(|value| redactor.json(&value));
    }
    if let Some(error) = &mut judged.error {
        error.message = redactor.text(&error.message).into_owned();
        error.stack = error.stack.take().map(|stack| redactor.text(&stack).into_owned());
        error.details = error.details.take().map(|details| details.redacted(redactor));
    }
    judged
}

/// Holds a value against what the tool says it returns.
pub(super) fn checked(prepared: &Prepared, judged: Judged) -> Judged {
    let (Some(schema), Some(value)) = (&prepared.definition.returns, &judged.value) else {
        return judged;
    };
    match schema.check(value.clone()) {
        Ok(value) => Judged { value: Some(value), ..judged },
        Err(violations) => {
            let name = prepared.definition.name.clone();
            of_failure(&ToolError::Result { name, violations })
        }
    }
}

pub(super) fn assemble(
    id: &CallId,
    prepared: &Prepared,
    judged: Judged,
    metadata: Option<Metadata>,
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
        decision: CallDecision::Tool {
            policy: policy.name().to_owned(),
            digest: policy.digest.to_hex().to_string(),
        },
        changes: None,
        metadata,
        sandbox: Vec::new(),
        ending: judged.ending,
        farewell: None,
    }
}
