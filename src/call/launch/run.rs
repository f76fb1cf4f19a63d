//! From a plan to an outcome, as types that consume each other: no step can be left out or repeated.
//!
//! ```text
//! Planned --launch--> Launched --prove--> Proved --run--> Outcome
//!    |                   |                   |
//!    watchdog first      hello is sent       identity of every mount was compared;
//!                        while the guest     only now the command leaves this process
//!                        starts
//! pool entry ---------wake-----------------> Proved
//! ```
//!
//! Every failure on the way removes the sandbox; the watchdog and the guest's own end are behind that.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use runner_policy::limits::{Limit, Limits};
use runner_wire::{HostMessage, Port, Stdin, Work};
use tokio::time::{Instant, sleep_until, timeout};

use super::ahead::Ahead;
use super::farewell::Farewell;
use super::outcome::{Outcome, Stillness};
use super::wake::{WakeError, Woken, greet, wake};
use super::watchdog::{Activation, Watchdog};
use crate::engine::plan::{Image, OverlayWrites, SandboxPlan};
use crate::engine::{
    Connected, Engine, EngineError, FileSystem, Labels, Life, Prepared, Purpose, SandboxId, Spec,
    sweep,
};
use crate::environment::Environment;
use crate::ids::{CallId, Owner};
use crate::pool::{Order, Supply};
use crate::sandbox::cancel::Cancel;
use crate::sandbox::identity::Expectation;
use crate::sandbox::kept::Kept;
use crate::sandbox::order::order;
use crate::sandbox::outcome::{Phases, RunError, Verdict, verdict};
use crate::sandbox::pump::{Floor, Traffic, pump};
use crate::sandbox::streams::{Sink, Source, Talk};
use crate::sandbox::tunnels::Connections;
use crate::sandbox::wire::Wire;
use crate::stage::change::RootKind;
use crate::stage::folder::{Stage, StageError};
use crate::stage::group::remember_index;
use crate::sys::now;

/// How long a sandbox may take from its start to the guest's first word.
pub(super) const READY_WAIT: Duration = Duration::from_secs(60);

/// How much later than the guest's clock the host's ends a call: the guest's end tells more.
const HOST_SLACK: Duration = Duration::from_secs(4);

/// How long a sandbox may exist beyond its call's own time, for being made and ended.
const LIFE_SLACK: Duration = Duration::from_secs(180);

/// How long a sandbox must be able to exist for a call with these limits.
#[must_use]
pub fn life(limits: &Limits) -> Duration {
    Duration::from_millis(limits.get(Limit::Wall)) + LIFE_SLACK
}

/// How long removing may take before it is left to the watchdog.
const REMOVE_WAIT: Duration = Duration::from_secs(5);

/// What is tried, in errors.
const WATCH: &str = "start the watchdog";

/// A call that is decided and planned.
pub struct Call {
    /// Its id.
    pub id: CallId,
    /// The sandbox.
    pub plan: SandboxPlan,
    /// What runs in it.
    pub work: Work,
    /// Permission bits that new files never get.
    pub umask: u32,
    /// The caller's state folder, for the stage.
    pub state: PathBuf,
    /// When it must be over. It holds from here on: while the sandbox is made, while the command is sent, while it runs.
    /// The command has the `wall` limit, or what is left until then if that is less.
    pub deadline: Instant,
}

/// Where a call's streams come from and go to.
#[derive(Default)]
pub struct Streams {
    /// Standard input; `None` is empty.
    pub stdin: Source,
    /// Standard output as it comes; `None` only keeps.
    pub stdout: Sink,
    /// Standard error as it comes; `None` only keeps.
    pub stderr: Sink,
    /// A tool's talk with the broker; `None` for a command, which has none.
    pub talk: Option<Talk>,
    /// Who carries on what the command connects to; `None` for a call without a network.
    pub network: Option<Box<dyn Connections>>,
    /// What to keep of each output stream.
    pub keep: Keep,
}

/// What is kept of an output stream for the result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Keep {
    /// Head and tail, within the `output` limit.
    #[default]
    Limit,
    /// At most so many bytes of them, within that limit too.
    AtMost(u64),
}

impl Keep {
    /// The bytes that are kept under these limits.
    #[must_use]
    pub fn bytes(self, limits: &Limits) -> u64 {
        let limit = limits.get(Limit::Output);
        match self {
            Self::Limit => limit,
            Self::AtMost(bytes) => bytes.min(limit),
        }
    }
}

/// Runs a call from its plan to its outcome, in a sandbox that is made for it.
///
/// `watchdog` is this program, which is started again as the call's watchdog, with what it needs of `environment`.
///
/// # Errors
/// See [`RunError`]; whatever ran was ended.
pub async fn run(
    engine: Arc<dyn Engine>,
    call: Call,
    streams: Streams,
    cancel: &mut Cancel,
    watchdog: &std::path::Path,
    environment: &Environment,
) -> Result<Outcome, RunError> {
    let watchdog = match engine.life() {
        Life::Daemon => Watchdog::start(watchdog, engine.address(), &call.id, environment)
            .map_err(|source| RunError::Local { operation: WATCH, source })?,
        Life::Ours => Watchdog::none(),
    };
    let ahead = Ahead::new(watchdog);
    run_watched(engine, call, Supply::Fresh, streams, cancel, ahead).await
}

/// The same, for a caller that has seen to the watchdog before, in a sandbox of this supply.
///
/// # Errors
/// See [`RunError`]; whatever ran was ended.
pub async fn run_watched(
    engine: Arc<dyn Engine>,
    call: Call,
    supply: Supply,
    streams: Streams,
    cancel: &mut Cancel,
    ahead: Ahead,
) -> Result<Outcome, RunError> {
    let deadline = call.deadline;
    // Dropping what was under way closes the wire; the watchdog removes the rest.
    let proved = tokio::select! {
        proved = prove(engine, call, supply, ahead) => proved?,
        cause = cancel.asked() => return Ok(Outcome::early(Verdict::Cancelled(cause))),
        () = sleep_until(deadline) => return Ok(Outcome::early(Verdict::Timeout)),
    };
    proved.run(streams, cancel).await
}

/// Gets a sandbox that is as planned: one that waits, or a new one.
async fn prove(
    engine: Arc<dyn Engine>,
    mut call: Call,
    supply: Supply,
    mut ahead: Ahead,
) -> Result<Proved, RunError> {
    let (begun, mut discarded) = (Instant::now(), 0);
    let answered = ahead.take_answered();
    let mut watchdog = ahead.watchdog;
    match (&supply, answered) {
        (Supply::Pooled(order), mut next) => {
            let life = life(&call.plan.limits);
            loop {
                let answered = match next.take() {
                    Some(answered) => answered,
                    None => match order.claim(life) {
                        Some(claimed) => wake(engine.as_ref(), claimed, &mut watchdog).await,
                        None => break,
                    },
                };
                match answered.and_then(|answered| answered.prove(order, &call.plan)) {
                    Ok(mut woken) => {
                        woken.discarded = discarded;
                        woken.phases.claim = begun.elapsed();
                        if order.prestart.is_some() {
                            // What the call would start runs already, and is the same.
                            call.work = Work::Waiting;
                        }
                        let mut proved = Proved::new(engine, call, watchdog, woken);
                        if let Supply::Pooled(order) = supply {
                            proved.refill = Some(order);
                        }
                        return Ok(proved);
                    }
                    Err(WakeError::Unfit) => discarded += 1,
                    Err(WakeError::Silent) => {
                        discarded += 1;
                        break;
                    }
                }
            }
            watchdog.refill(order);
        }
        (Supply::Fresh, Some(Ok(answered))) => answered.give_up(),
        (Supply::Fresh, Some(Err(_)) | None) => {}
    }
    // From here on sandboxes are made, also while the engine is looked at.
    let activation = match (engine.life(), &supply) {
        (Life::Daemon, _) => Activation::Now,
        (Life::Ours, Supply::Pooled(_)) => Activation::Patient,
        (Life::Ours, Supply::Fresh) => {
            watchdog.spare();
            Activation::Patient
        }
    };
    watchdog.activate(activation).map_err(|source| RunError::Local { operation: WATCH, source })?;
    let sweeping = tokio::spawn({
        let engine = Arc::clone(&engine);
        async move { sweep(engine.as_ref()).await }
    });
    let planned = Planned::new(engine, call, watchdog).await?;
    let mut proved = planned.launch().await?.prove().await;
    if let Ok(proved) = &mut proved {
        proved.woken.discarded = discarded;
    }
    // What cannot be swept now is swept by the next call.
    sweeping.abort();
    proved
}

/// A call whose watchdog is awake and whose image is there.
pub struct Planned {
    engine: Arc<dyn Engine>,
    call: Call,
    watchdog: Watchdog,
    prepared: Prepared,
    expectation: Expectation,
    begun: Instant,
}

impl Planned {
    /// Gets the image ready.
    ///
    /// # Errors
    /// See [`RunError`].
    pub async fn new(
        engine: Arc<dyn Engine>,
        call: Call,
        watchdog: Watchdog,
    ) -> Result<Self, RunError> {
        let begun = Instant::now();
        let expectation = Expectation::of(&call.plan, call.id.as_str());
        if call.plan.image == Image::Host && engine.sees_our_files().await? == FileSystem::Another {
            return Err(RunError::Engine(EngineError::AnotherFileSystem {
                endpoint: engine.address().place().to_owned(),
            }));
        }
        let prepared = engine.prepare(&call.plan.image).await?;
        Ok(Self { engine, call, watchdog, prepared, expectation, begun })
    }

    /// Makes the sandbox, and says hello while its guest starts.
    ///
    /// # Errors
    /// See [`RunError`].
    pub async fn launch(mut self) -> Result<Launched, RunError> {
        let prepared_at = Instant::now();
        let local = |operation| move |source| RunError::Local { operation, source };
        let labels = Labels {
            call: self.call.id.clone(),
            owner: Owner::this().map_err(local("find out who this process is"))?,
            deadline: now() + life(&self.call.plan.limits),
            purpose: Purpose::Call,
        };
        let stage = Stage::of_plan(&self.call.state, &self.call.id, &self.call.plan)
            .map_err(|error| no_stage(&self.call.plan, error))?;
        let spec = Spec {
            plan: &self.call.plan,
            prepared: &self.prepared,
            labels: &labels,
            arguments: &[],
            stage: stage.as_ref().map(Stage::folder),
        };
        let launched = self.engine.launch(spec, &mut self.watchdog).await;
        let Connected { id, attached } = match launched {
            Ok(connected) => connected,
            Err(error) => {
                discard(stage);
                return Err(error.into());
            }
        };
        let wire = match greet(attached, self.expectation.targets()).await {
            Ok(wire) => wire,
            Err(error) => return Err(abandon(self.engine.as_ref(), &id, stage, error).await),
        };
        let phases = Phases {
            prepare: prepared_at - self.begun,
            create: prepared_at.elapsed(),
            ..Phases::default()
        };
        Ok(Launched { planned: self, id, wire, phases, stage })
    }
}

/// A sandbox whose guest starts, and has been asked.
pub struct Launched {
    planned: Planned,
    id: SandboxId,
    wire: Wire,
    phases: Phases,
    stage: Option<Stage>,
}

impl Launched {
    /// Waits for the guest's answer, and proves that the sandbox is what was planned.
    ///
    /// # Errors
    /// See [`RunError`]; nothing was sent that could run.
    pub async fn prove(mut self) -> Result<Proved, RunError> {
        let started_at = Instant::now();
        let ready = match timeout(READY_WAIT, self.wire.ready()).await {
            Ok(ready) => ready,
            Err(_) => Err(RunError::GuestSilent),
        };
        self.phases.start = started_at.elapsed();
        let ready_at = Instant::now();
        let checked = ready.and_then(|ready| {
            self.planned.expectation.check(&ready)?;
            Ok(ready.seen)
        });
        self.phases.check = ready_at.elapsed();
        let Self { planned, id, wire, phases, stage } = self;
        let Planned { engine, call, watchdog, prepared, .. } = planned;
        match checked {
            Ok(seen) => {
                let (image_digest, waited, discarded) = (prepared.digest, None, 0);
                let held = None;
                let woken =
                    Woken { id, wire, seen, phases, image_digest, waited, discarded, stage, held };
                Ok(Proved::new(engine, call, watchdog, woken))
            }
            Err(error) => {
                drop(wire);
                Err(abandon(engine.as_ref(), &id, stage, error).await)
            }
        }
    }
}

/// A running sandbox of which everything is as planned.
pub struct Proved {
    engine: Arc<dyn Engine>,
    call: Call,
    watchdog: Watchdog,
    woken: Woken,
    /// What shall wait in its place; told when the command is on its way.
    refill: Option<Box<Order>>,
}

impl Proved {
    fn new(engine: Arc<dyn Engine>, call: Call, watchdog: Watchdog, woken: Woken) -> Self {
        Self { engine, call, watchdog, woken, refill: None }
    }

    /// Sends the command and follows it to its end.
    ///
    /// # Errors
    /// See [`RunError`].
    pub async fn run(self, streams: Streams, cancel: &mut Cancel) -> Result<Outcome, RunError> {
        let Self { engine, call, mut watchdog, woken, refill } = self;
        let Woken {
            id,
            mut wire,
            seen,
            mut phases,
            image_digest,
            waited,
            discarded,
            mut stage,
            held,
        } = woken;
        let limits = call.plan.limits;
        let sent_at = Instant::now();
        let left = call.deadline.saturating_duration_since(sent_at);
        if left.is_zero() {
            if let Some(held) = held {
                held.over();
            }
            let _ = timeout(REMOVE_WAIT, engine.remove(&id)).await;
            return Ok(Outcome::early(Verdict::Timeout));
        }
        let wall = Duration::from_millis(limits.get(Limit::Wall)).min(left);
        let stdin = if streams.stdin.is_some() { Stdin::Pipe } else { Stdin::Null };
        let port = if streams.talk.is_some() { Port::Tool } else { Port::Closed };
        let mut start = order(&call.plan, call.work, call.umask, stdin, port);
        start.limits.wall_ms = u64::try_from(wall.as_millis()).unwrap_or(u64::MAX).max(1);
        let start = HostMessage::Start(start);
        let traffic = Traffic {
            stdin: streams.stdin,
            stdout: streams.stdout,
            stderr: streams.stderr,
            talk: streams.talk,
            network: streams.network,
            keep: streams.keep.bytes(&limits),
            floor: Floor {
                folders: written(&call.state, &call.plan),
                bytes: limits.get(Limit::FreeSpace),
            },
            deadline: sent_at + wall + HOST_SLACK,
        };
        // From here on what changes on the host is told apart from what the call changes.
        if let Some(Err(error)) = stage.as_mut().map(|stage| begin(stage, &call.id)) {
            let source = std::io::Error::other(error);
            let error = RunError::Local { operation: "claim a stage", source };
            return Err(abandon(engine.as_ref(), &id, stage, error).await);
        }
        let sent = match wire.queue(&start) {
            Ok(()) => {
                wire.flush_if_short().await;
                Ok(())
            }
            Err(error) => Err(error),
        };
        // What follows is done while the guest works.
        if let Some(held) = held {
            held.over();
        }
        if let Some(order) = refill {
            watchdog.refill(&order);
        }
        // The guest works now, and ends with us; no call goes on without its watchdog.
        let watched = sent.and_then(|()| {
            watchdog
                .activate(Activation::Patient)
                .map_err(|source| RunError::Local { operation: WATCH, source })
        });
        let pumped = match watched {
            Ok(()) => pump(wire, traffic, cancel).await,
            Err(error) => Err(error),
        };
        let pumped = match pumped {
            Ok(pumped) => pumped,
            Err(error) => return Err(abandon(engine.as_ref(), &id, stage, error).await),
        };
        phases.run = pumped.ended - sent_at;
        phases.end = pumped.ended.elapsed();
        let verdict = match (&pumped.exit, pumped.cancelled) {
            (_, None) if pumped.no_room => Verdict::Limit(Limit::FreeSpace),
            (Some(exit), cancelled) => verdict(exit, cancelled),
            (None, Some(cause)) => Verdict::Cancelled(cause),
            (None, None) => Verdict::Timeout,
        };
        let (farewell, stillness) = match pumped.wire {
            Some(wire) => (Some(Farewell::new(wire, watchdog)), Stillness::Still),
            None => {
                // The guest does not answer: it is not trusted to end itself either.
                match timeout(REMOVE_WAIT, engine.remove(&id)).await {
                    Ok(Ok(())) => (None, Stillness::Still),
                    Ok(Err(_)) | Err(_) => (None, Stillness::Unknown),
                }
            }
        };
        let left_running = pumped.exit.as_ref().map_or(0, |exit| exit.left_running);
        let (hits, programs, usage) = match pumped.exit {
            Some(exit) => (exit.hits, Some(exit.programs), Some(exit.usage)),
            None => (Vec::new(), None, None),
        };
        Ok(Outcome {
            verdict,
            hits,
            programs,
            left_running,
            usage,
            stdout: pumped.stdout,
            stderr: pumped.stderr,
            phases,
            image_digest: Some(image_digest),
            seen: Some(seen),
            waited,
            discarded,
            stage,
            stillness,
            farewell,
        })
    }
}

impl Outcome {
    /// A call that was ended before its command was sent.
    fn early(verdict: Verdict) -> Self {
        Self {
            verdict,
            hits: Vec::new(),
            programs: None,
            left_running: 0,
            usage: None,
            stdout: Kept::default(),
            stderr: Kept::default(),
            phases: Phases::default(),
            image_digest: None,
            seen: None,
            waited: None,
            discarded: 0,
            stage: None,
            stillness: Stillness::Unknown,
            farewell: None,
        }
    }
}

/// Removes a sandbox that failed, with its stage; the failure is what counts.
async fn abandon(
    engine: &dyn Engine,
    id: &SandboxId,
    stage: Option<Stage>,
    error: RunError,
) -> RunError {
    if let Ok(Ok(())) = timeout(REMOVE_WAIT, engine.remove(id)).await {
        discard(stage);
    }
    error
}

/// Removes a stage of which nothing is applied. What cannot be removed now is by the next sweep.
fn discard(stage: Option<Stage>) {
    if let Some(stage) = stage {
        let _ = stage.discard();
    }
}

/// Claims a stage for a call, and remembers what the host's git has in its index.
fn begin(stage: &mut Stage, call: &CallId) -> Result<(), StageError> {
    for (at, root) in stage.roots().iter().enumerate() {
        let git = match root.kind {
            RootKind::Workspace => Path::new(".git"),
            RootKind::GitFolder => Path::new(""),
        };
        // Without it, a `git status` of the host during the call counts as a change of its own.
        let _ = remember_index(stage, at, git);
    }
    stage.claim(call).map(drop)
}

/// Why there is no stage: what it would lie over is gone, or it cannot be made.
fn no_stage(plan: &SandboxPlan, error: StageError) -> RunError {
    match plan.overlays.iter().find(|overlay| !overlay.target.is_dir()) {
        Some(gone) => EngineError::MountGone { path: gone.target.clone() }.into(),
        None => RunError::Local { operation: "make a stage", source: std::io::Error::other(error) },
    }
}

/// Folders of the host whose file systems a call fills: that of the stages, and those of the folders
/// that its changes are applied to.
fn written(state: &Path, plan: &SandboxPlan) -> Vec<PathBuf> {
    let staged = plan.overlays.iter().filter(|it| it.writes == OverlayWrites::Staged);
    let mut folders: Vec<PathBuf> = staged.map(|overlay| overlay.target.clone()).collect();
    if !folders.is_empty() {
        folders.push(state.to_owned());
    }
    folders
}

/// This program, to be started again as a watchdog.
#[must_use]
pub fn this_program() -> PathBuf {
    PathBuf::from("/proc/self/exe")
}
