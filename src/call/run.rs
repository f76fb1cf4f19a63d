//! From a decision to a result: plan, record, run, record.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};

use super::error::CallError;
use super::grants::Lists;
use super::request::{Decided, path_text};
use super::result::{CallResult, ErrorObject, Stream, ending, metadata};
use crate::audit::{Ended, Event, Ledger, Started};
use crate::engine::{CallId, Docker, Engine, Owner as Process, UserNamespace};
use crate::error::{Error, Failure};
use crate::exit::{Ending, Kind};
use crate::sandbox::cancel::Cancel;
use crate::sandbox::mounts::Missing;
use crate::sandbox::plan::{Image, Runtime, SandboxPlan};
use crate::sandbox::planner::{ImageFacts, PlanRequest, SharedMemory, plan};
use crate::sandbox::run::{self, Keep, Streams};
use crate::sandbox::user::UserMapping;
use crate::sandbox::watchdog::Watchdog;
use crate::sandbox::workspace::Owner;
use crate::sandbox::{claims, quarantine};
use crate::store::Store;

/// Where a call's output goes.
pub enum Output {
    /// To these, as it comes.
    Streamed(Streams),
    /// Into the result, with this standard input.
    Kept(crate::sandbox::pump::Source),
}

/// Carries out a decided call. A refusal is a result, not an error.
///
/// # Errors
/// The call did not come to an outcome. If it had started, its end is recorded.
pub fn run(decided: &Decided, output: Output) -> Result<CallResult, CallError> {
    let store = Store::open(decided.places.state.as_deref())?;
    let ledger = Ledger::new(&store);
    let local = |what| move |error| CallError::Local(what, error);
    let id = CallId::fresh().map_err(local("make an id"))?;
    let process = Process::this().map_err(local("look at this process"))?;
    ledger.find_aborted()?;
    let started = Started::new(
        decided.request.shown(),
        decided.request.argv_text(),
        path_text(decided.workspace.root())?,
        path_text(decided.workspace.cwd())?,
        &decided.decision,
    );
    if !decided.is_allowed() {
        ledger.append(&id, Event::Refused(&started), &process)?;
        return refused(&id, decided);
    }
    ledger.append(&id, Event::Start(&started), &process)?;
    let begun = Instant::now();
    let result = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(local("start the event loop"))
        .and_then(|runtime| {
            let result = runtime.block_on(in_sandbox(&id, decided, output));
            // A thread may still wait for standard input; nobody waits for it.
            runtime.shutdown_background();
            result
        });
    let ended = Ended {
        status: json!(
            result.as_ref().map_or_else(|error| error.kind().status(), |result| result.status)
        ),
        exit: result.as_ref().map_or_else(|error| error.kind().exit(), |result| result.exit).get(),
        code: match &result {
            Ok(result) => result.error.as_ref().map(|error| error.code.clone()),
            Err(error) => Some(error.code().to_owned()),
        },
        duration_ms: u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
        detail: result.as_ref().map_or(Value::Null, |result| result.metadata.clone()),
    };
    let recorded = ledger.append(&id, Event::End(&ended), &process).map_err(CallError::from);
    result
        .and_then(|result| recorded.map(|()| result))
        .map_err(|error| CallError::Started(id, Box::new(error)))
}

/// The result of a call that may not run.
fn refused(id: &CallId, decided: &Decided) -> Result<CallResult, CallError> {
    let explanation = decided.explain()?;
    let error =
        ErrorObject::of_decision(&decided.decision, &explanation.nearest, &explanation.allowed_by);
    let kind = if decided.decision.approvable { Kind::ApprovalNeeded } else { Kind::Denied };
    let ending = Ending::of_kind(kind, error.code.clone());
    Ok(CallResult {
        call: id.to_string(),
        status: ending.status,
        exit: ending.exit,
        stdout: None,
        stderr: None,
        error: Some(error),
        decision: json!(explanation),
        metadata: Value::Null,
        explanation: Some(explanation),
        ending,
    })
}

/// What a call would run in, without running it.
///
/// # Errors
/// There is no plan for it.
pub fn dry_run(decided: &Decided) -> Result<DryRun, CallError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| CallError::Local("start the event loop", error))?;
    runtime.block_on(async {
        let engine = Docker::connect().await?;
        let plan = make_plan(decided, &engine, Missing::Describe).await?;
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

async fn in_sandbox(
    id: &CallId,
    decided: &Decided,
    output: Output,
) -> Result<CallResult, CallError> {
    let mut cancel =
        Cancel::on_signals().map_err(|error| CallError::Local("catch signals", error))?;
    let engine: Arc<dyn Engine> = Arc::new(Docker::connect().await?);
    // Before the plan: that one makes folders, which must go with us.
    let claims = claims::ledger(&materials(decided)?, decided.workspace.identity());
    let watchdog = Watchdog::start(&run::this_program(), engine.endpoint(), id, Some(&claims))
        .map_err(|error| CallError::Local("start the watchdog", error))?;
    let plan = make_plan(decided, engine.as_ref(), Missing::Make).await?;
    let (streams, keeps) = match output {
        Output::Streamed(streams) => (streams, false),
        Output::Kept(stdin) => (Streams { stdin, keep: Keep::Limit, ..Streams::default() }, true),
    };
    let call = run::Call { id: id.clone(), plan: plan.clone(), work: decided.work(), umask: 0o022 };
    let outcome = run::run_watched(Arc::clone(&engine), call, streams, &mut cancel, watchdog).await;
    // Folders that stayed empty go with the plan's claim on them.
    let appeared: Vec<String> = quarantine::sweep(&plan.guarded)
        .iter()
        .map(|found| found.path.display().to_string())
        .collect();
    let outcome = outcome?;
    let ending = ending(&outcome.verdict);
    let mut metadata = metadata(&plan, engine.name(), Some(&outcome));
    if !appeared.is_empty() {
        metadata["quarantined"] = json!(appeared);
    }
    let stream = |name, kept| keeps.then(|| Stream::new(name, kept));
    Ok(CallResult {
        call: id.to_string(),
        status: ending.status,
        exit: ending.exit,
        error: ErrorObject::of_verdict(&outcome.verdict, &plan.limits),
        decision: json!(decided.decision),
        metadata,
        stdout: stream("stdout", outcome.stdout),
        stderr: stream("stderr", outcome.stderr),
        explanation: None,
        ending,
    })
}

/// The caller's own folder for what sandboxes are made from.
fn materials(decided: &Decided) -> Result<PathBuf, CallError> {
    let state = decided.places.state.as_deref().ok_or(crate::store::StoreError::NoFolder)?;
    Ok(state.join("materials"))
}

async fn make_plan(
    decided: &Decided,
    engine: &dyn Engine,
    missing: Missing,
) -> Result<SandboxPlan, CallError> {
    let policy = &decided.policy;
    let engines = policy.engines();
    if !engines.contains(&engine.name()) {
        return Err(CallError::NoEngine {
            policy: policy.name().to_owned(),
            engines: engines.iter().map(ToString::to_string).collect(),
        });
    }
    if decided.decision.grant.place == runner_policy::model::RunPlace::Host {
        return Err(CallError::HostNotOffered);
    }
    let facts = engine.probe().await?;
    let (image, image_facts) = match decided.request.image.as_deref().unwrap_or(policy.image()) {
        "host" => (Image::Host, ImageFacts::default()),
        reference => {
            // From here on by its digest: what was looked at is what runs.
            let prepared = engine.prepare(&Image::Reference(reference.to_owned())).await?;
            (Image::Reference(prepared.image), prepared.facts)
        }
    };
    let lists = Lists::new(policy);
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let variable = |name: &str| std::env::var_os(name);
    let materials = materials(decided)?;
    let request = PlanRequest {
        workspace: &decided.workspace,
        grants: lists.grants(decided),
        image,
        image_facts,
        runtime: runtime(policy.runtime(), &facts.runtimes, policy.isolation()),
        isolation: policy.isolation(),
        limits: decided.limits(),
        env: environment(decided),
        shared_memory: SharedMemory::None,
        mapping: match facts.user_namespace {
            UserNamespace::Host => UserMapping::Rootful,
            UserNamespace::Rootless => UserMapping::Rootless,
            UserNamespace::Remapped => UserMapping::Remapped,
        },
        caller: Owner {
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
        },
        home: home.as_deref(),
        variable: &variable,
        materials: &materials,
        missing,
    };
    Ok(plan(&request)?)
}

/// The policy's runtime; `paranoid` without one takes the engine's own with a kernel of its own.
fn runtime(
    wanted: Option<&str>,
    known: &[String],
    isolation: runner_policy::limits::Isolation,
) -> Option<Runtime> {
    use runner_policy::limits::Isolation;
    if let Some(name) = wanted {
        return Runtime::new(name);
    }
    let strong = |name: &&String| {
        crate::sandbox::protection::RuntimeKind::of(Runtime::new(name).as_ref()).has_own_kernel()
    };
    match isolation {
        Isolation::Basic | Isolation::Strict => None,
        Isolation::Paranoid => known.iter().find(strong).and_then(|name| Runtime::new(name)),
    }
}

/// The policy's variables: passed ones as the caller has them, set ones as written.
fn environment(decided: &Decided) -> BTreeMap<OsString, OsString> {
    let passed = decided
        .policy
        .env_pass()
        .into_iter()
        .filter_map(|name| std::env::var_os(name).map(|value| (OsString::from(name), value)));
    let set = decided
        .policy
        .env_set()
        .into_iter()
        .map(|(name, value)| (OsString::from(name), OsString::from(value)));
    passed.chain(set).collect()
}

/// An error of a call as the top error.
impl From<CallError> for Error {
    fn from(error: CallError) -> Self {
        Self::Call(Box::new(error))
    }
}
