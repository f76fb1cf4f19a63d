//! From a plan to the recipe that a launcher carries out: one function, no defaults left to chance.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use runner_policy::limits::{Isolation, Limit, Limits};
use runner_wire::{Bytes, GUEST_FOLDER, LaunchMount, Recipe, Right, Source};

use super::failure::LaunchError;
use super::groups::{self, Place, Places};
use super::probe;
use super::systemd::Manager;
use crate::engine::error::EngineError;
use crate::engine::holders::Holder;
use crate::engine::plan::{Image, OverlayWrites, SandboxPlan, TmpfsExec, WhyUser};
use crate::engine::seccomp;
use crate::ids::Identity;
use crate::sys::landlock_version;

/// How readily the kernel ends a sandbox when memory runs out: before anything of the host's (`src/guest/oom.rs`).
const FIRST_TO_GO: i32 = 600;

/// What is shown as the system call filter of a plan that is described.
const FILTER: &str = "images/seccomp.json";

/// Memory that a process may keep from being swapped out: the kernel's own default.
const LOCKED: u64 = 8 << 20;

/// Bytes in POSIX message queues: the kernel's own default.
const QUEUED: u64 = 819_200;

/// Signals that may wait for a process.
const SIGNALS: u64 = 4096;

/// What a recipe needs besides the plan.
#[derive(Debug, Default)]
pub(super) struct Parts {
    /// The guest's arguments.
    pub arguments: Vec<String>,
    /// The folder of the stage, for a plan that has one.
    pub stage: Option<PathBuf>,
    /// What tells this sandbox from all others.
    pub name: String,
    /// Whether the launcher tells that the guest runs.
    pub tells_start: bool,
}

/// The recipe of a plan's sandbox.
pub(super) fn of_plan(
    plan: &SandboxPlan,
    parts: &Parts,
    guest: Source,
    place: &Place,
) -> Result<Recipe, EngineError> {
    if let Image::Reference(reference) = &plan.image {
        return Err(LaunchError::ForeignImage { reference: reference.clone() }.into());
    }
    if let Some(runtime) = &plan.runtime {
        return Err(LaunchError::ForeignRuntime { runtime: runtime.to_string() }.into());
    }
    let right = probe::right();
    Ok(Recipe {
        right,
        uid: plan.user.uid,
        gid: plan.user.gid,
        id_map: right == Right::Capable && plan.user.why == WhyUser::IdMapped,
        scope: groups::scope(place),
        groups: groups::groups(place, &plan.limits, &parts.name),
        processors: processors(plan),
        guest,
        mounts: mounts(plan, parts.stage.as_deref())?,
        rlimits: rlimits(plan, right),
        landlock: landlock_version().is_some(),
        low_ports: plan.network.is_some(),
        filter: Bytes(seccomp::FILTER.to_vec()),
        oom_score: FIRST_TO_GO,
        arguments: parts.arguments.clone(),
        tells_start: parts.tells_start,
    })
}

/// How many processors a sandbox starts on, if no control group limits them.
fn processors(plan: &SandboxPlan) -> Option<u32> {
    let most = plan.limits.get(Limit::Cpus).div_ceil(1_000);
    (plan.holders.cpus == Holder::Processors).then(|| u32::try_from(most).unwrap_or(u32::MAX))
}

/// A recipe of the least sandbox, with control groups in these places: it shows whether this machine lets the caller make
/// any.
pub(super) fn smallest(guest: Source, place: &Place, name: &str) -> Recipe {
    let right = probe::right();
    let (uid, gid) = probe::user(right);
    Recipe {
        right,
        uid,
        gid,
        id_map: false,
        scope: groups::scope(place),
        groups: groups::groups(place, &Limits::preset(Isolation::Basic), name),
        processors: None,
        guest,
        mounts: Vec::new(),
        rlimits: Vec::new(),
        landlock: landlock_version().is_some(),
        low_ports: false,
        filter: Bytes(seccomp::FILTER.to_vec()),
        oom_score: FIRST_TO_GO,
        // A guest that waits a millisecond for a host's first word, and ends.
        arguments: vec!["1".to_owned()],
        tells_start: false,
    }
}

/// The places of a plan's groups, if they still hold what it promises.
pub(super) fn places(plan: &SandboxPlan, manager: Option<&Manager>) -> Result<Places, EngineError> {
    let places = groups::find(manager);
    if groups::holders(&places, probe::counts_processes(probe::right())) == plan.holders {
        Ok(places)
    } else {
        Err(LaunchError::GroupsChanged.into())
    }
}

/// The recipe for people.
pub(super) fn describe(
    plan: &SandboxPlan,
    manager: Option<&Manager>,
) -> Result<serde_json::Value, EngineError> {
    let place = match places(plan, manager)? {
        Places::Trees(trees) => Place::Trees(trees),
        Places::Unified { folder, cpus, .. } => Place::Unified { folder, cpus },
        Places::Scopes { cpus, .. } => Place::Scope { folder: "SCOPE".into(), cpus },
        Places::None => Place::None,
    };
    let parts = Parts { stage: Some(PathBuf::from("STAGE")), ..Parts::default() };
    let guest = Source { path: Bytes::from(GUEST_FOLDER), identity: None };
    let mut recipe = of_plan(plan, &parts, guest, &place)?;
    recipe.filter = Bytes::from(FILTER);
    serde_json::to_value(recipe).map_err(|error| EngineError::Local {
        operation: "write the recipe of a sandbox",
        source: error.into(),
    })
}

/// Every mount, a parent before what lies below it. Where two have the same depth, the order is that of the plan.
fn mounts(plan: &SandboxPlan, stage: Option<&Path>) -> Result<Vec<LaunchMount>, EngineError> {
    let mut all: Vec<(&Path, LaunchMount)> = Vec::new();
    for tmpfs in &plan.tmpfs {
        let mount = LaunchMount::Tmpfs {
            target: bytes(&tmpfs.target),
            size: tmpfs.size,
            inodes: tmpfs.inodes,
            uid: tmpfs.uid,
            gid: tmpfs.gid,
            mode: tmpfs.mode,
            exec: tmpfs.exec == TmpfsExec::Exec,
        };
        all.push((&tmpfs.target, mount));
    }
    let mut staged = 0;
    for overlay in &plan.overlays {
        let layers = [
            source(&overlay.covers.path, overlay.covers.identity),
            source(&overlay.target, overlay.identity),
        ];
        let stage = match overlay.writes {
            OverlayWrites::Refused => None,
            OverlayWrites::Staged => {
                let folder = stage.ok_or_else(no_stage)?.join(staged.to_string());
                staged += 1;
                Some(Source { path: bytes(&folder), identity: None })
            }
        };
        let mount =
            LaunchMount::Overlay { layers: layers.to_vec(), stage, target: bytes(&overlay.target) };
        all.push((&overlay.target, mount));
    }
    let binds = plan.mounts.iter().map(|it| (&it.source, &it.target, it.identity));
    let files = plan.synthetic.iter().map(|it| (&it.source, &it.target, it.identity));
    let masks = plan.masks.iter().map(|it| (&it.source, &it.target, it.identity));
    for (from, target, identity) in binds.chain(files).chain(masks) {
        let mount = LaunchMount::Bind { source: source(from, identity), target: bytes(target) };
        all.push((target, mount));
    }
    // A stable sort keeps the order of the plan at one depth.
    all.sort_by_key(|(target, _)| target.components().count());
    Ok(all.into_iter().map(|(_, mount)| mount).collect())
}

fn no_stage() -> EngineError {
    EngineError::Local {
        operation: "mount a stage",
        source: std::io::Error::other("none was made; this is a mistake of ours, please report it"),
    }
}

fn source(path: &Path, identity: Identity) -> Source {
    Source { path: bytes(path), identity: Some((identity.dev, identity.ino)) }
}

fn bytes(path: impl AsRef<OsStr>) -> Bytes {
    Bytes::from(path.as_ref())
}

/// Limits that the kernel holds for each process.
fn rlimits(plan: &SandboxPlan, right: Right) -> Vec<(u32, u64, u64)> {
    let figure = |limit| plan.limits.get(limit);
    let seconds = figure(Limit::CpuTime).div_ceil(1_000);
    let mut all = vec![
        // At 0 a crash would still start a program of the host's, if `core_pattern` names one.
        (libc::RLIMIT_CORE, 1, 1),
        // SIGXCPU at the limit; a program that ignores it is killed a second later.
        (libc::RLIMIT_CPU, seconds, seconds.saturating_add(1)),
        (libc::RLIMIT_FSIZE, figure(Limit::FileSize), figure(Limit::FileSize)),
        (libc::RLIMIT_NOFILE, figure(Limit::OpenFiles), figure(Limit::OpenFiles)),
        // What the caller may have beyond others is not for a sandbox.
        (libc::RLIMIT_RTPRIO, 0, 0),
        (libc::RLIMIT_NICE, 0, 0),
        (libc::RLIMIT_MEMLOCK, LOCKED, LOCKED),
        (libc::RLIMIT_MSGQUEUE, QUEUED, QUEUED),
        (libc::RLIMIT_SIGPENDING, SIGNALS, SIGNALS),
    ];
    if right == Right::User {
        // Counted for each user namespace; the launcher is one of the processes in it. A control group must be met first: it
        // counts how often it refused, and the kernel looks at this limit before it.
        let first = u64::from(plan.holders.pids == Holder::Group);
        let processes = figure(Limit::Pids).saturating_add(1 + first);
        all.push((libc::RLIMIT_NPROC, processes, processes));
    }
    all
}
