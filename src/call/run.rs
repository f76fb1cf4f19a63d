//! From a decision to a result: plan, record, run, record.

use std::sync::Arc;
use std::time::Instant;

use runner_policy::effect::Class;
use runner_policy::limits::Limit;
use runner_policy::model::Verdict;
use serde_json::{Value, json};

use super::approval::{Answer, Asking, Fed, Inquiry, Question, Unapproved, deeds, put};
use super::clock::Clock;
use super::error::CallError;
use super::place::place_of_command;
use super::plan::{Planned, Setting, make_plan, neighbours};
use super::record::{End, Record, Starting, Unrecorded};
use super::request::{Approval, Decided, path_text};
use super::result::{CallResult, ErrorObject, Stream, ending, metadata};
use super::supply;
use crate::approvals::{Asked, Terms};
use crate::audit::Started;
use crate::engine::{CallId, Docker, Engine};
use crate::error::{Error, Failure as _};
use crate::exit::{Ending, Kind};
use crate::limits::QueueError;
use crate::sandbox::cancel::Cancel;
use crate::sandbox::grants::{Code, Writes};
use crate::sandbox::mounts::Missing;
use crate::sandbox::plan::SandboxPlan;
use crate::sandbox::planner::View;
use crate::sandbox::quarantine;
use crate::sandbox::run::{self, Keep, Streams};
use crate::sandbox::soon::unless_soon;
use crate::sandbox::streams::Source;

/// Where a call's output goes.
pub enum Output {
    /// To these, as it comes.
    Streamed(Streams),
    /// Into the result, with this standard input.
    Kept(Source),
    /// To whoever talks with the command; what it writes to standard error is kept beside that.
    Spoken(Streams),
}

/// Whether a decided call may go on.
pub(super) enum Gate {
    /// It may; nothing of it is recorded yet.
    Open(Unrecorded),
    /// It may not, and that is recorded.
    Shut(Box<CallResult>),
}

impl Output {
    /// Whether the command is given input.
    fn fed(&self) -> Fed {
        Fed::of(match self {
            Self::Streamed(streams) => &streams.stdin,
            Self::Kept(stdin) => stdin,
            Self::Spoken(_) => return Fed::Input,
        })
    }
}

/// Carries out a decided call. A refusal is a result, not an error.
///
/// # Errors
/// The call did not come to an outcome. If it had started, its end is recorded.
pub fn run(
    decided: &mut Decided,
    output: Output,
    asking: Option<Arc<Asking>>,
) -> Result<CallResult, CallError> {
    let call = match gate(decided, output.fed(), asking)? {
        Gate::Open(call) => call,
        Gate::Shut(result) => return Ok(*result),
    };
    let result = in_event_loop(async {
        let mut cancel =
            Cancel::on_signals().map_err(|error| CallError::Local("catch signals", error))?;
        carry_out(call, decided, output, &mut cancel, None).await
    });
    crate::sys::default_signals();
    result
}

/// Asks about a call if the policy does, and lets it on if it may run.
pub(super) fn gate(
    decided: &mut Decided,
    fed: Fed,
    asking: Option<Arc<Asking>>,
) -> Result<Gate, CallError> {
    let call = Unrecorded::new(&decided.places)?;
    if let Some(asking) = asking.filter(|_| decided.asks()) {
        let asked = in_event_loop(async {
            let mut cancel =
                Cancel::on_signals().map_err(|error| CallError::Local("catch signals", error))?;
            let inquiry = inquiry(decided, fed, call.id().clone())?;
            tokio::select! {
                answer = put(asking, inquiry) => Ok(answer?),
                cause = cancel.asked() => Err(CallError::Queue(QueueError::Cancelled(cause))),
            }
        });
        crate::sys::default_signals();
        match asked {
            Ok(Answer::Yes) => decided.approval = Approval::Given,
            Ok(Answer::No(why)) => {
                return Ok(Gate::Shut(Box::new(refuse(call.open()?, decided, None, Some(&why))?)));
            }
            Err(error) => {
                let refused = started(decided, None)?;
                let (code, message) = (error.code(), error.to_string());
                let ending = Ending::of_kind(error.kind(), code);
                call.open()?.refused(refused.refused(Verdict::Deny, code, message), &ending)?;
                return Err(error);
            }
        }
    }
    if !decided.is_allowed() {
        return Ok(Gate::Shut(Box::new(refuse(call.open()?, decided, None, None)?)));
    }
    Ok(Gate::Open(call))
}

/// The question whether a command may run.
fn inquiry(decided: &Decided, fed: Fed, call: CallId) -> Result<Inquiry, CallError> {
    let (question, arguments) = Question::of_command(None, decided, fed);
    let asked = Asked {
        subject: "exec".to_owned(),
        digest: String::new(),
        inputs: Vec::new(),
        terms: Terms {
            policy: decided.policy.digest.to_hex().to_string(),
            image: decided.request.image.clone(),
            cwd: path_text(decided.workspace.cwd())?.to_owned(),
        },
        arguments,
        deeds: deeds(decided),
        workspace: path_text(decided.workspace.root())?.to_owned(),
    };
    Ok(Inquiry { question, asked, call })
}

/// Runs a future to its end.
pub(super) fn in_event_loop<T>(
    work: impl Future<Output = Result<T, CallError>>,
) -> Result<T, CallError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| CallError::Local("start the event loop", error))?;
    let result = runtime.block_on(work);
    // A thread may still wait for standard input; nobody waits for it.
    runtime.shutdown_background();
    result
}

/// Records that a call may not run, and says why.
pub(super) fn refuse(
    mut record: Record,
    decided: &Decided,
    parent: Option<&CallId>,
    why: Option<&Unapproved>,
) -> Result<CallResult, CallError> {
    let id = record.id().clone();
    let mut started = started(decided, parent)?;
    if let Some(why @ Unapproved::Never(_)) = why {
        let message = why.error("this command").message;
        started = started.refused(Verdict::Deny, why.code(), message);
    }
    record.refused(started, &ending_of_refusal(decided, why))?;
    refused(&id, decided, why)
}

/// Runs a call that is allowed, from its start record to its end record. `parent` is the call that asked
/// for it, if it was not a person.
pub(super) async fn carry_out(
    call: Unrecorded,
    decided: &Decided,
    output: Output,
    cancel: &mut Cancel,
    parent: Option<&CallId>,
) -> Result<CallResult, CallError> {
    let mut starting = call.start(started(decided, parent)?);
    let id = starting.id().clone();
    let result = in_turn(&mut starting, decided, output, cancel).await;
    let Some(mut record) = starting.finish()? else {
        return result;
    };
    let end = match &result {
        Ok(result) => End {
            ending: result.ending.clone(),
            code: result.error.as_ref().map(|error| error.code.clone()),
            rule: None,
            cost: None,
            detail: result.metadata.clone(),
            requests: Vec::new(),
        },
        Err(error) => End::of_error(error),
    };
    let recorded = record.end(end);
    result
        .and_then(|result| recorded.map(|()| result))
        .map_err(|error| CallError::Started(id, Box::new(error)))
}

fn started(decided: &Decided, parent: Option<&CallId>) -> Result<Started, CallError> {
    Ok(Started::new(
        decided.request.shown(),
        decided.request.argv_text(),
        path_text(decided.workspace.root())?,
        path_text(decided.workspace.cwd())?,
        &decided.decision,
        parent,
    ))
}

/// How a call ends that may not run.
fn ending_of_refusal(decided: &Decided, why: Option<&Unapproved>) -> Ending {
    let decision = &decided.decision;
    let kind = if decision.approvable { Kind::ApprovalNeeded } else { Kind::Denied };
    why.map_or_else(|| Ending::of_kind(kind, decision.code.word()), Unapproved::ending)
}

/// The result of a call that may not run.
fn refused(
    id: &CallId,
    decided: &Decided,
    why: Option<&Unapproved>,
) -> Result<CallResult, CallError> {
    let explanation = decided.explain()?;
    let mut error =
        ErrorObject::of_decision(&decided.decision, &explanation.nearest, &explanation.allowed_by);
    let ending = ending_of_refusal(decided, why);
    if let Some(why) = why {
        let rule = error.rule.take();
        error = ErrorObject { rule, ..why.error("this command") };
    }
    Ok(CallResult {
        call: id.to_string(),
        status: ending.status,
        exit: ending.exit,
        tool: None,
        value: None,
        stdout: None,
        stderr: None,
        error: Some(error),
        decision: json!(explanation),
        metadata: Value::Null,
        explanation: Some(explanation),
        ending,
        farewell: None,
    })
}

/// What a call would run in, without running it.
///
/// # Errors
/// There is no plan for it.
pub fn dry_run(decided: &Decided) -> Result<DryRun, CallError> {
    in_event_loop(async {
        let engine = Docker::connect().await?;
        let plan = make_plan(&setting(decided), &engine, Missing::Describe, None).await?.plan;
        let container = engine.describe(&plan).await?;
        Ok(DryRun { plan, container })
    })
}

/// What a call would run in.
pub struct DryRun {
    /// The sandbox.
    pub plan: SandboxPlan,
    /// What the engine would be asked to make.
    pub container: Value,
}

/// What a decided call's sandbox is planned for.
pub(super) fn setting(decided: &Decided) -> Setting {
    let classes = decided.decision.grant.classes;
    Setting {
        policy: Arc::clone(&decided.policy),
        workspace: Arc::clone(&decided.workspace),
        places: decided.places.clone(),
        config: Arc::clone(&decided.config),
        image: decided.request.image.clone(),
        limits: decided.limits(),
        place: decided.decision.grant.place,
        view: View::Workspace,
        writes: if classes.contains(Class::Write) { Writes::Some } else { Writes::None },
        code: if classes.contains(Class::Code) { Code::Granted } else { Code::NotGranted },
    }
}

/// Runs it in its turn, and tells how long it waited for that.
async fn in_turn(
    starting: &mut Starting,
    decided: &Decided,
    mut output: Output,
    cancel: &mut Cancel,
) -> Result<CallResult, CallError> {
    // Who has to wait for long is in the records meanwhile, as all are that have started.
    let place = place_of_command(decided, &mut output, cancel);
    let place = unless_soon(place, || starting.write()).await?;
    let mut result = in_sandbox(starting, decided, output, cancel).await?;
    place.tell(&mut result.metadata);
    Ok(result)
}

async fn in_sandbox(
    starting: &mut Starting,
    decided: &Decided,
    output: Output,
    cancel: &mut Cancel,
) -> Result<CallResult, CallError> {
    let (id, begun) = (starting.id().clone(), Instant::now());
    let engine = unless_soon(Docker::connect(), || starting.write()).await?;
    let engine: Arc<dyn Engine> = Arc::new(engine);
    let (setting, pool) = (setting(decided), supply::pool(decided.request.warmth, &decided.config));
    let mut ahead = supply::ahead(&id, &setting, engine.as_ref(), pool)?;
    let helper = starting.take_helper();
    let claim = || supply::claim(&setting, engine.as_ref(), pool);
    let (planned, ()) = tokio::join!(
        make_plan(&setting, engine.as_ref(), Missing::Make, helper),
        ahead.rouse(engine.as_ref(), claim, || starting.write()),
    );
    let Planned { plan, took } = planned?;
    let supply = supply::supply(&setting, &plan, engine.as_ref(), None, pool).await?;
    let (streams, [keeps_out, keeps_err]) = match output {
        Output::Streamed(streams) => (streams, [false, false]),
        Output::Kept(stdin) => {
            (Streams { stdin, keep: Keep::Limit, ..Streams::default() }, [true, true])
        }
        Output::Spoken(streams) => (streams, [false, true]),
    };
    starting.written()?;
    let call = run::Call {
        id: id.clone(),
        plan: plan.clone(),
        work: decided.work(),
        umask: 0o022,
        neighbours: neighbours(&decided.places)?,
    };
    let outcome = run::run_watched(Arc::clone(&engine), call, supply, streams, cancel, ahead).await;
    // Folders that stayed empty go with the plan's claim on them.
    let appeared: Vec<String> = quarantine::sweep(&plan.guarded)
        .iter()
        .map(|found| found.path.display().to_string())
        .collect();
    let mut outcome = outcome?;
    (outcome.phases.plan, outcome.phases.total) = (took, begun.elapsed());
    let ending = ending(&outcome.verdict);
    let wall = plan.limits.get(Limit::Wall);
    let mut metadata = metadata(&plan, engine.name(), Some(&outcome));
    if !appeared.is_empty() {
        metadata["quarantined"] = json!(appeared);
    }
    let stream = |name, kept, keeps: bool| keeps.then(|| Stream::new(name, kept));
    let mut result = CallResult {
        call: id.to_string(),
        status: ending.status,
        exit: ending.exit,
        tool: None,
        value: None,
        error: ErrorObject::of_verdict(&outcome.verdict, &plan.limits),
        decision: json!(decided.decision),
        metadata,
        stdout: stream("stdout", outcome.stdout, keeps_out),
        stderr: stream("stderr", outcome.stderr, keeps_err),
        explanation: None,
        ending,
        farewell: outcome.farewell,
    };
    clock(decided, wall).blame(&mut result, wall);
    Ok(result)
}

/// What set the time that a command had.
fn clock(decided: &Decided, wall: u64) -> Clock {
    match decided.request.tighten.contains(&(Limit::Wall, wall)) {
        true => Clock::Caller,
        false => Clock::Policy(decided.policy.name().to_owned()),
    }
}

/// An error of a call as the top error.
impl From<CallError> for Error {
    fn from(error: CallError) -> Self {
        Self::Call(Box::new(error))
    }
}
