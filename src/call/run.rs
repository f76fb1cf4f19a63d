//! From a decision to a result: plan, record, run, record.

use std::sync::Arc;
use std::time::Instant;

use runner_policy::decide::Network;
use runner_policy::effect::Class;
use runner_policy::limits::Limit;
use runner_wire::Ran;
use serde_json::Value;

use super::approval::{Action, Asking, Fed, Inquiry, Question};
use super::clock::{Clock, Deadline};
use super::error::CallError;
use super::exchanges::Exchanges;
use super::gate::{Consent, Gate, Pending, pass, started};
use super::inspection::{Inspection, OwnFiles};
use super::metadata::Metadata;
use super::open_engine::open_engine_of;
use super::place::place_of_command;
use super::plan::{Planned, Setting, make_plan, state};
use super::record::{End, Starting, Unrecorded};
use super::request::{Decided, path_text};
use super::result::{CallDecision, CallResult, ErrorObject, Stream, ending};
use super::shortfall::{EVIDENCE_MAX, Ended};
use super::stage::{Changes, Seen, Settling, StagedError, settle};
use super::{network, shortfall, supply};
use crate::approvals::{Asked, Terms};
use crate::call::launch::ahead::Ahead;
use crate::call::launch::outcome::{Outcome, Stillness};
use crate::call::launch::run::{self, Keep, Streams};
use crate::engine::Engine;
use crate::engine::plan::{Note, SandboxPlan};
use crate::ids::CallId;
use crate::latency::run_if_slow;
use crate::pool::Supply;
use crate::sandbox::cancel::Cancel;
use crate::sandbox::materials::Missing;
use crate::sandbox::outcome::Verdict;
use crate::sandbox::planner::View;
use crate::sandbox::streams::Source;
use crate::stage::folder::Stage;
use crate::workspace::grants::{Code, Writes};

/// Where a call's output goes.
pub enum Output {
    /// To these, as it comes.
    Streamed(Streams),
    /// Into the result, so much of it, with this standard input.
    Kept(Source, Keep),
    /// To the component that talks with the command; what it writes to standard error is kept beside that.
    Spoken(Streams),
}

impl Output {
    /// Whether the command is given input.
    fn fed(&self) -> Fed {
        Fed::of(match self {
            Self::Streamed(streams) => &streams.stdin,
            Self::Kept(stdin, _) => stdin,
            Self::Spoken(_) => return Fed::Input,
        })
    }
}

/// Carries out a decided call. A refusal is a result, not an error.
///
/// # Errors
/// The call did not come to an outcome. If it had started, its end is recorded.
pub async fn run(
    decided: &mut Decided,
    output: Output,
    asking: Option<Arc<Asking>>,
    cancel: &mut Cancel,
) -> Result<CallResult, CallError> {
    let call = match gate(decided, output.fed(), asking, cancel).await? {
        Gate::Open(call) => call,
        Gate::Shut(shut) => return shut.result(decided),
    };
    carry_out(call, decided, output, cancel, None).await
}

/// Asks a person about a call if the policy does, and lets it on if it may run.
pub(super) async fn gate(
    decided: &mut Decided,
    fed: Fed,
    asking: Option<Arc<Asking>>,
    cancel: &mut Cancel,
) -> Result<Gate, CallError> {
    let call = Unrecorded::new(&decided.places, &decided.context)?;
    let consent = match asking.filter(|_| decided.asks()) {
        Some(asking) => {
            let inquiry = inquiry(decided, fed, call.id().clone())?;
            Pending::new(asking, inquiry).put(cancel).await
        }
        None => Consent::NotAsked,
    };
    pass(call, decided, consent, None)
}

/// The question whether a command may run.
fn inquiry(decided: &Decided, fed: Fed, call: CallId) -> Result<Inquiry, CallError> {
    let mut action = Action::of_command(decided)?;
    let files = action.files();
    let (question, arguments) = Question::of_command(None, decided, fed, action.holds(&files));
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
        deeds: std::mem::take(&mut action.deeds),
        files,
        workspace: path_text(decided.workspace.root())?.to_owned(),
    };
    Ok(Inquiry { question, asked, call, action })
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
    let result = in_turn(&mut starting, decided, output, cancel, parent).await;
    let requests = starting.take_requests();
    let Some(record) = starting.finish()? else {
        return result;
    };
    let end = match &result {
        Ok(result) => End {
            ending: result.ending.clone(),
            code: result.error.as_ref().map(|error| error.code),
            rule: None,
            cost: None,
            detail: result.detail(Metadata::clone),
            requests,
        },
        Err(error) => End { requests, ..End::of_error(error) },
    };
    let recorded = record.end(end);
    result
        .and_then(|result| recorded.map(|()| result))
        .map_err(|error| CallError::Started(id, Box::new(error)))
}

/// What a call would run in, without running it.
///
/// # Errors
/// There is no plan for it.
pub async fn dry_run(decided: &Decided) -> Result<DryRun, CallError> {
    let engine = open_engine_of(decided).await?;
    let setting = setting(decided, &inspection(decided)?);
    let plan = make_plan(&setting, engine.as_ref(), Missing::Describe, None).await?.plan;
    let container = engine.describe(&plan).await?;
    Ok(DryRun { plan, container })
}

/// What a call would run in.
pub struct DryRun {
    /// The sandbox.
    pub plan: SandboxPlan,
    /// What the engine would be asked to make.
    pub container: Value,
}

/// What a decided call's sandbox is planned for.
pub(super) fn setting(decided: &Decided, inspection: &Inspection) -> Setting {
    let classes = decided.decision.grant.classes;
    Setting {
        policy: Arc::clone(&decided.policy),
        workspace: Arc::clone(&decided.workspace),
        places: decided.places.clone(),
        config: Arc::clone(&decided.config),
        image: decided.request.image.clone(),
        limits: decided.limits(),
        view: View::Workspace,
        writes: if classes.contains(Class::Write) { Writes::Some } else { Writes::None },
        code: if classes.contains(Class::Code) { Code::Granted } else { Code::NotGranted },
        network: network::of(decided, inspection),
        watchdog: decided.context.watchdog.clone(),
        told: Arc::clone(&inspection.told),
    }
}

/// Runs it in its turn, and tells how long it waited for that.
async fn in_turn(
    starting: &mut Starting,
    decided: &Decided,
    mut output: Output,
    cancel: &mut Cancel,
    parent: Option<&CallId>,
) -> Result<CallResult, CallError> {
    // Who has to wait for long is in the records meanwhile, as all are that have started.
    let place = place_of_command(decided, &mut output, cancel);
    let place = run_if_slow(place, || starting.write()).await?;
    let mut result = in_sandbox(starting, decided, output, cancel, parent).await?;
    if let Some(metadata) = &mut result.metadata {
        metadata.queued(place.queued());
    }
    Ok(result)
}

async fn in_sandbox(
    starting: &mut Starting,
    decided: &Decided,
    output: Output,
    cancel: &mut Cancel,
    parent: Option<&CallId>,
) -> Result<CallResult, CallError> {
    let (id, begun) = (starting.id().clone(), Instant::now());
    let deadline = Deadline::of(&decided.limits());
    let ready = match deadline.hold(cancel, make_ready(starting, decided)).await {
        Ok(ready) => ready?,
        Err(verdict) => return Ok(ended_early(&id, decided, &verdict)),
    };
    let Ready { engine, ahead, planned: Planned { plan, took }, supply, inspection } = ready;
    let _own_files = OwnFiles::of(&plan);
    let (streams, keep, [keeps_out, keeps_err]) = match output {
        // What the caller has already is looked at, for what the sandbox has to do with it.
        Output::Streamed(streams) => {
            (Streams { keep: Keep::AtMost(EVIDENCE_MAX), ..streams }, None, [false, false])
        }
        Output::Kept(stdin, keep) => {
            (Streams { stdin, keep, ..Streams::default() }, Some(keep), [true, true])
        }
        Output::Spoken(streams) => (streams, None, [false, true]),
    };
    starting.written()?;
    let exchanges = Arc::<Exchanges>::default();
    let (egress, connections) =
        network::begin(decided, plan.network.as_ref(), &inspection, &exchanges);
    let streams = Streams { network: connections, ..streams };
    let call = run::Call {
        id: id.clone(),
        plan: plan.clone(),
        work: decided.work()?,
        umask: 0o022,
        state: state(&decided.places)?.to_owned(),
        deadline: deadline.at(),
    };
    let outcome = run::run_watched(Arc::clone(&engine), call, supply, streams, cancel, ahead).await;
    let reached = network::finish(egress).await;
    let mut requests = network::records(&reached);
    requests.extend(exchanges.records(requests.len()));
    starting.requests(requests);
    let mut outcome = outcome?;
    let settled = match outcome.stage.take() {
        Some(stage) => {
            let ended = (outcome.verdict.clone(), outcome.stillness);
            let still = Instant::now();
            let settled = settled(decided, &plan, ended, stage).await?;
            outcome.phases.apply = still.elapsed();
            Some(settled)
        }
        None => None,
    };
    (outcome.phases.plan, outcome.phases.total) = (took, begun.elapsed());
    let ending = ending(&outcome.verdict);
    let wall = plan.limits.get(Limit::Wall);
    let mut metadata = Metadata::of_sandbox(&plan, engine.name(), &outcome);
    metadata.note(&shell_of(decided, &outcome));
    let path = decided.places.environment.get("PATH").filter(|_| parent.is_none());
    let error = shortfall::error(&plan, &outcome.verdict, path.as_deref());
    let ended = Ended { outcome: &outcome, plan: &plan, keep };
    let mut sandbox = network::shortfalls(&reached);
    sandbox.extend(exchanges.shortfalls(&sandbox));
    sandbox.extend(shortfall::of_command(decided, &ended, path.as_deref()));
    let stream = |kept, keeps: bool| keeps.then(|| Stream::new(kept));
    let mut result = CallResult {
        call: id.to_string(),
        status: ending.status,
        exit: ending.exit,
        tool: None,
        value: None,
        error,
        decision: CallDecision::Command(Box::new(decided.decision.clone())),
        changes: None,
        metadata: Some(metadata),
        stdout: stream(outcome.stdout, keeps_out),
        stderr: stream(outcome.stderr, keeps_err),
        sandbox,
        ending,
        farewell: outcome.farewell,
    };
    clock(decided, wall).blame(&mut result, wall);
    match settled {
        Some(Ok(changes)) => result.with_changes(changes, decided.request.on_held),
        Some(Err(error)) => result.without_changes(&error),
        None => {}
    }
    Ok(result)
}

/// Which shell ran a line that only a shell reads.
fn shell_of(decided: &Decided, outcome: &Outcome) -> Vec<Note> {
    let read = decided.decision.plan.as_ref().is_some_and(|plan| plan.shell().is_some());
    let ran = outcome.programs.as_ref().filter(|_| read).and_then(|programs| programs.ran.first());
    let note = |ran: &Ran| {
        let shell = ran.name.as_os().to_string_lossy();
        let text = format!("only a shell reads this line: {shell} ran it, not runner");
        Note { code: "shell", text }
    };
    ran.map(note).into_iter().collect()
}

/// Judges and applies what the call changed, in a thread of its own.
async fn settled(
    decided: &Decided,
    plan: &SandboxPlan,
    (ended, stillness): (Verdict, Stillness),
    stage: Stage,
) -> Result<Result<Changes, StagedError>, CallError> {
    let settling = Settling {
        policy: Arc::clone(&decided.policy),
        seen: Seen::of(plan, &decided.places.environment),
        when: decided.policy.writes().max(decided.request.writes),
        ended,
        stillness,
        state: state(&decided.places)?.to_owned(),
        bounds: decided.config.undo(),
    };
    let died = |error: tokio::task::JoinError| {
        CallError::Local("apply changes", std::io::Error::other(error))
    };
    tokio::task::spawn_blocking(move || settle(&stage, &settling)).await.map_err(died)
}

/// What a command's sandbox is made from.
struct Ready {
    engine: Arc<dyn Engine>,
    ahead: Ahead,
    planned: Planned,
    supply: Supply,
    inspection: Inspection,
}

/// Finds the engine, looks through the workspace and plans the sandbox, and wakes one that waits meanwhile.
async fn make_ready(starting: &mut Starting, decided: &Decided) -> Result<Ready, CallError> {
    let id = starting.id().clone();
    let engine = open_engine_of(decided);
    let engine = run_if_slow(engine, || starting.write()).await?;
    let inspection = inspection(decided)?;
    let setting = setting(decided, &inspection);
    let pool = supply::pool(decided.request.warmth, &decided.config);
    let mut ahead = supply::ahead(&id, &setting, engine.as_ref())?;
    let helper = starting.take_helper();
    let claim = || supply::claim(&setting, engine.as_ref(), pool);
    let (planned, ()) = tokio::join!(
        make_plan(&setting, engine.as_ref(), Missing::Make, helper),
        ahead.wake_claimed(engine.as_ref(), claim, || starting.write()),
    );
    let planned = planned?;
    let supply = supply::supply(&setting, &planned.plan, engine.as_ref(), None, pool).await?;
    Ok(Ready { engine, ahead, planned, supply, inspection })
}

/// Registries and an authority, for a command that has a network.
pub(super) fn inspection(decided: &Decided) -> Result<Inspection, CallError> {
    match decided.decision.grant.network {
        Network::Granted => Inspection::prepare(&decided.policy, &decided.places.environment),
        Network::Unneeded | Network::Withheld => Ok(Inspection::default()),
    }
}

/// The result of a call that ended before there was a plan for its sandbox: nothing ran.
fn ended_early(id: &CallId, decided: &Decided, verdict: &Verdict) -> CallResult {
    let limits = decided.limits();
    let (ending, wall) = (ending(verdict), limits.get(Limit::Wall));
    let mut result = CallResult {
        call: id.to_string(),
        status: ending.status,
        exit: ending.exit,
        tool: None,
        value: None,
        stdout: None,
        stderr: None,
        error: ErrorObject::of_verdict(verdict, &limits),
        decision: CallDecision::Command(Box::new(decided.decision.clone())),
        changes: None,
        metadata: None,
        sandbox: Vec::new(),
        ending,
        farewell: None,
    };
    clock(decided, wall).blame(&mut result, wall);
    result
}

/// What set the time that a command had.
fn clock(decided: &Decided, wall: u64) -> Clock {
    match decided.request.tighten.contains(&(Limit::Wall, wall)) {
        true => Clock::Caller,
        false => Clock::Policy(decided.policy.name().to_owned()),
    }
}
