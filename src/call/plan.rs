//! From what was decided to the plan of a sandbox: facts of the engine, of this machine and of the caller.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use runner_policy::Effective;
use runner_policy::limits::{Isolation, Limits};
use runner_wire::Network;
use tokio::sync::oneshot;

use super::error::CallError;
use super::stage::clear_dead;
use crate::config::{Config, Layer};
use crate::engine::plan::ImageFacts;
use crate::engine::plan::{Image, Runtime, SandboxPlan};
use crate::engine::runtime_kind::RuntimeKind;
use crate::engine::{Engine, Life};
use crate::environment::Environment;
use crate::latency::Helper;
use crate::policy_files::Places;
use crate::sandbox::materials::Missing;
use crate::sandbox::planner::{PlanRequest, Told, View, plan};
use crate::sandbox::protection::Machine;
use crate::sandbox::user::UserMapping;
use crate::stage::apply::Sync;
use crate::stage::recover::finish_all;
use crate::workspace::grants::{Code, Writes};
use crate::workspace::lists::Lists;
use crate::workspace::survey::{Shown, Unscanned};
use crate::workspace::{Owner, Workspace};

/// What a plan is made for.
#[derive(Clone)]
pub(super) struct Setting {
    /// The policy that decided.
    pub policy: Arc<Effective>,
    /// The workspace.
    pub workspace: Arc<Workspace>,
    /// Where our own files are.
    pub places: Places,
    /// The configuration.
    pub config: Arc<Config>,
    /// The image, instead of the policy's.
    pub image: Option<String>,
    /// The figures in force.
    pub limits: Limits,
    /// What it sees of the workspace.
    pub view: View,
    /// Whether it may write there.
    pub writes: Writes,
    /// Whether it may run what is not known beforehand.
    pub code: Code,
    /// Names and ports that it can reach; none for a call without a network.
    pub network: Option<Network>,
    /// The program that is started as its watchdog.
    pub watchdog: PathBuf,
    /// What its programs are told of registries and certificates.
    pub told: Arc<Told>,
}

impl Setting {
    /// The image, as it was named.
    pub(super) fn image(&self) -> &str {
        self.image.as_deref().unwrap_or_else(|| self.policy.image())
    }
}

/// The caller's state folder.
pub(super) fn state(places: &Places) -> Result<&Path, CallError> {
    Ok(places.state.as_deref().ok_or(crate::store::StoreError::NoFolder)?)
}

/// A plan, and what it took to look at the workspace and at this machine.
pub(super) struct Planned {
    /// The sandbox.
    pub plan: SandboxPlan,
    /// The time for it, whatever else happened meanwhile.
    pub took: Duration,
}

/// Makes the plan, in a thread that helps or one of its own: engine and guest can be asked meanwhile.
pub(super) async fn make_plan(
    setting: &Setting,
    engine: &dyn Engine,
    missing: Missing,
    helper: Option<Helper>,
) -> Result<Planned, CallError> {
    let policy = setting.policy.as_ref();
    let mut facts = engine.probe().await?;
    let mut runtime = runtime(policy.runtime(), &facts.runtimes, policy.isolation());
    if runtime.is_none() && policy.isolation() == Isolation::Paranoid {
        // It would be refused: the runtime may have been installed since the engine was asked.
        facts = engine.probe_anew().await?;
        runtime = strong(&facts.runtimes);
    }
    let (image, image_facts) = match setting.image() {
        "host" => (Image::Host, ImageFacts::default()),
        reference => {
            // From here on by its digest: what was looked at is what runs.
            let prepared = engine.prepare(&Image::Reference(reference.to_owned())).await?;
            (Image::Reference(prepared.image), prepared.facts)
        }
    };
    let mapping = UserMapping::from(facts.user_namespace);
    let life = engine.life();
    let kind = match life {
        Life::Daemon => RuntimeKind::of(runtime.as_ref()),
        Life::Ours => RuntimeKind::Direct,
    };
    let machine = Machine { holders: facts.holders, landlock: facts.landlock };
    let known = Known { image, image_facts, runtime, mapping, kind, machine, life };
    let setting = setting.clone();
    let look = move || {
        let begun = Instant::now();
        let plan = look(&setting, known, missing)?;
        Ok(Planned { plan, took: begun.elapsed() })
    };
    let planned = match helper {
        Some(helper) => {
            let (sender, receiver) = oneshot::channel();
            helper.tell(move || drop(sender.send(look())));
            receiver.await.ok()
        }
        None => tokio::task::spawn_blocking(look).await.ok(),
    };
    let broken = || std::io::Error::other("the thread that makes it has died");
    planned.ok_or_else(|| CallError::Local("plan a sandbox", broken()))?
}

/// What is known about the engine's side of a sandbox.
struct Known {
    image: Image,
    image_facts: ImageFacts,
    runtime: Option<Runtime>,
    mapping: UserMapping,
    kind: RuntimeKind,
    machine: Machine,
    life: Life,
}

/// Looks at the workspace and at this machine, and plans.
fn look(setting: &Setting, known: Known, missing: Missing) -> Result<SandboxPlan, CallError> {
    let policy = setting.policy.as_ref();
    let lists = Lists::new(policy);
    let environment = &setting.places.environment;
    let home = environment.home();
    let variable = |name: &str| environment.get(name);
    let state = state(&setting.places)?;
    if setting.writes == Writes::Some {
        // What a death interrupted is ended before anything else is written there.
        match known.life {
            Life::Daemon => drop(finish_all(state, Sync::Never)),
            Life::Ours => clear_dead(state),
        }
    }
    let memory = state.join("walks");
    let request = PlanRequest {
        workspace: &setting.workspace,
        view: setting.view,
        grants: lists.grants(setting.writes, setting.code),
        image: known.image,
        image_facts: known.image_facts,
        runtime: known.runtime,
        isolation: policy.isolation(),
        demands: policy.demands().into_iter().map(str::to_owned).collect(),
        limits: setting.limits,
        env: passed_on(policy, environment),
        told: &setting.told,
        mapping: known.mapping,
        kind: known.kind,
        machine: known.machine,
        caller: Owner {
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
        },
        home: home.as_deref(),
        variable: &variable,
        network: setting.network.clone(),
        state,
        memory: Some(&memory),
        unscanned: &unscanned(&setting.config),
        missing,
    };
    Ok(plan(&request)?)
}

/// Folders that the configuration does not want to be looked through. What is in them could be denied: only who manages
/// the machine can have it shown all the same; for other users they are covered.
pub(super) fn unscanned(config: &Config) -> Vec<Unscanned> {
    let skip = config.scan_skip();
    let shown = match skip.source.layer {
        Layer::Managed => Shown::Everything,
        Layer::Default | Layer::User | Layer::Project => Shown::Nothing,
    };
    skip.value.iter().map(|folder| Unscanned { folder: folder.into(), shown }).collect()
}

/// The policy's runtime; `paranoid` without one takes the engine's own with a kernel of its own.
fn runtime(wanted: Option<&str>, known: &[String], isolation: Isolation) -> Option<Runtime> {
    if let Some(name) = wanted {
        return Runtime::new(name);
    }
    match isolation {
        Isolation::Basic | Isolation::Strict => None,
        Isolation::Paranoid => strong(known),
    }
}

/// The first runtime with a kernel of its own.
fn strong(known: &[String]) -> Option<Runtime> {
    known
        .iter()
        .filter_map(|name| Runtime::new(name))
        .find(|runtime| RuntimeKind::of(Some(runtime)).has_own_kernel())
}

/// The policy's variables: passed ones as the caller has them, set ones as written.
fn passed_on(policy: &Effective, environment: &Environment) -> BTreeMap<OsString, OsString> {
    let passed = policy
        .env_pass()
        .into_iter()
        .filter_map(|name| environment.get(name).map(|value| (OsString::from(name), value)));
    let set = policy
        .env_set()
        .into_iter()
        .map(|(name, value)| (OsString::from(name), OsString::from(value)));
    passed.chain(set).collect()
}
