//! A tool's sandbox and its broker, side by side: one runs the code, the other answers it.
//!
//! ```text
//! plan (no workspace) -> sandbox: node, our runtime -- talk --> broker -> files, exec, net
//!                             |                                   |
//!                             +------- both end, in any order ----+
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use runner_policy::Effective;
use runner_policy::limits::Limits;
use runner_wire::{Bytes, Port, Start, Stdin, Work};
use tokio::io::DuplexStream;

use super::recorded::Recorded;
use super::variables;
use super::within::{Ran, Within};
use crate::approvals::Terms;
use crate::broker::{self, Authority, BrokerUsage, Events, Job, ServeError, Served};
use crate::call::clock::Deadline;
use crate::call::launch::ahead::Ahead;
use crate::call::launch::run::{self, Streams};
use crate::call::open_engine::open_engine;
use crate::call::plan::{Planned, Setting, make_plan, state};
use crate::call::request::path_text;
use crate::call::supply::{self, Warmth};
use crate::call::{CallError, Context};
use crate::config::Config;
use crate::engine::plan::SandboxPlan;
use crate::engine::{self, Engine, runtime};
use crate::ids::CallId;
use crate::policy_files::Places;
use crate::pool::Supply;
use crate::sandbox::cancel::Cancel;
use crate::sandbox::materials::Missing;
use crate::sandbox::order::order;
use crate::sandbox::planner::View;
use crate::sandbox::streams::Talk;
use crate::undo::Journal;
use crate::workspace::Workspace;
use crate::workspace::grants::{Code, Writes};

/// The program that runs tools.
const NODE: &str = "node";

/// Permission bits that files of a tool in its own scratch never get.
const UMASK: u32 = 0o077;

/// Where and under what a tool runs.
#[derive(Clone)]
pub(super) struct Scene {
    /// The policy, within the tool's permissions.
    pub policy: Arc<Effective>,
    /// The same for the tool's commands.
    pub commands: Arc<Effective>,
    /// The workspace, which the tool does not see.
    pub workspace: Arc<Workspace>,
    /// Where our own files are.
    pub places: Places,
    /// The image, instead of the policy's.
    pub image: Option<String>,
    /// Which engines may make the sandboxes.
    pub engine: Option<engine::Choice>,
    /// The figures in force.
    pub limits: Limits,
    /// The configuration.
    pub config: Arc<Config>,
    /// Whether sandboxes that wait may be used.
    pub warmth: Warmth,
    /// On whose behalf.
    pub context: Context,
}

impl Scene {
    /// What an approval is bound to of it.
    pub(super) fn terms(&self) -> Result<Terms, CallError> {
        Ok(Terms {
            policy: self.policy.digest.to_hex().to_string(),
            image: self.image.clone(),
            cwd: path_text(self.workspace.cwd())?.to_owned(),
        })
    }

    /// Keeps what a call changes in it.
    pub(super) fn journal(&self, call: &CallId) -> Journal {
        Journal::new(call, &self.places, self.workspace.root(), self.config.undo())
    }
}

/// Runs one job to its end, or until its requests cannot be recorded any more. The policy's variables are
/// added to it.
pub(super) async fn run_job(
    id: &CallId,
    scene: &Scene,
    mut job: Job,
    authority: Authority,
    recorded: &Arc<Recorded>,
    mut streams: Streams,
    cancel: &mut Cancel,
) -> Result<Ran, CallError> {
    let (begun, deadline) = (Instant::now(), Deadline::of(&scene.limits));
    let at_hand = match deadline.hold(cancel, make_ready(id, scene)).await {
        Ok(at_hand) => at_hand?,
        Err(verdict) => {
            let (end, usage) = (Err(ServeError::NoResult), BrokerUsage::default());
            let served = Served { end, usage, requests: Vec::new(), cost: None };
            let within = Within::Nothing { verdict, limits: scene.limits };
            return Ok(Ran { served, within, shortfalls: Vec::new() });
        }
    };
    let AtHand { engine, ahead, ready, supply } = at_hand;
    let Ready { plan, prestart, variables, took } = ready;
    job.env = variables;
    let (talk, stream): (Talk, DuplexStream) = Talk::pair();
    streams.talk = Some(talk);
    let Start { work, umask, .. } = prestart;
    let call = run::Call {
        id: id.clone(),
        plan: plan.clone(),
        work,
        umask,
        state: state(&scene.places)?.to_owned(),
        deadline: deadline.at(),
    };
    let sandbox = run::run_watched(Arc::clone(&engine), call, supply, streams, cancel, ahead);
    // A cancellation reaches the sandbox, and the runtime tells the tool: the broker need not.
    let events = Arc::clone(recorded) as Arc<dyn Events>;
    let broker = broker::serve(stream, job, authority, events, recorded.broken());
    let (outcome, served) = tokio::join!(sandbox, broker);
    let mut outcome = Box::new(outcome?);
    (outcome.phases.plan, outcome.phases.total) = (took, begun.elapsed());
    let (plan, engine) = (Box::new(plan), engine.name());
    let within = Within::Sandbox { outcome, plan, engine };
    Ok(Ran { served, within, shortfalls: Vec::new() })
}

/// A tool's sandbox, and where it comes from.
struct AtHand {
    engine: Arc<dyn Engine>,
    ahead: Ahead,
    ready: Ready,
    supply: Supply,
}

/// Finds the engine and plans the sandbox, and wakes one that waits meanwhile.
async fn make_ready(id: &CallId, scene: &Scene) -> Result<AtHand, CallError> {
    let engine =
        open_engine(scene.engine.as_ref(), &scene.config, &scene.policy, &scene.context).await?;
    let setting = setting(scene);
    let pool = supply::pool(scene.warmth, &scene.config);
    let mut ahead = supply::ahead(id, &setting, engine.as_ref())?;
    let claim = || supply::claim(&setting, engine.as_ref(), pool);
    let (ready, ()) = tokio::join!(
        ready(scene, engine.as_ref()),
        ahead.wake_claimed(engine.as_ref(), claim, || ())
    );
    let ready = ready?;
    let (plan, prestart) = (&ready.plan, Some(&ready.prestart));
    let supply = supply::supply(&setting, plan, engine.as_ref(), prestart, pool).await?;
    Ok(AtHand { engine, ahead, ready, supply })
}

/// A tool's sandbox.
pub(super) struct Ready {
    /// Its plan.
    pub plan: SandboxPlan,
    /// What is started in it before any tool is in.
    pub prestart: Start,
    /// The variables that travel with the job.
    pub variables: BTreeMap<String, String>,
    /// What the plan took.
    pub took: Duration,
}

/// Makes a tool's sandbox ready.
pub(super) async fn ready(scene: &Scene, engine: &dyn Engine) -> Result<Ready, CallError> {
    let Planned { mut plan, took } =
        make_plan(&setting(scene), engine, Missing::Make, None).await?;
    let variables = variables::take(&mut plan, &scene.policy);
    let prestart = tool_order(&plan);
    Ok(Ready { plan, prestart, variables, took })
}

/// What runs in a tool's sandbox, before any tool is in it: the same for every tool of the same plan, whether
/// it is started by a call or waits for one.
pub fn tool_order(plan: &SandboxPlan) -> Start {
    let work = Work::Argv { argv: [NODE, runtime::MAIN].map(Bytes::from).to_vec(), program: None };
    order(plan, work, UMASK, Stdin::Null, Port::Tool)
}

pub(super) fn setting(scene: &Scene) -> Setting {
    Setting {
        policy: Arc::clone(&scene.policy),
        workspace: Arc::clone(&scene.workspace),
        places: scene.places.clone(),
        config: Arc::clone(&scene.config),
        image: scene.image.clone(),
        limits: scene.limits,
        view: View::Program(NODE),
        writes: Writes::None,
        code: Code::Granted,
        network: None,
        watchdog: scene.context.watchdog.clone(),
        told: Arc::default(),
    }
}
