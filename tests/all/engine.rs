//! The slice from a plan to an outcome, with a real engine: `DOCKER_HOST` names a daemon.

use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use runner::call::launch::outcome::Outcome;
use runner::call::launch::run::{Call, Streams, life, run};
use runner::codes::Code;
use runner::engine::plan::{
    Image, Mount, MountRole, Overlay, OverlayRole, OverlayWrites, SandboxPlan, Tmpfs, TmpfsExec,
    UserChoice, WhyUser,
};
use runner::engine::{Engine, EngineName, Life};
use runner::error::Failure as _;
use runner::ids::CallId;
use runner::ids::Identity;
use runner::sandbox::cancel::Cancel;
use runner::sandbox::covers::{Covering, layer};
use runner::sandbox::materials::Missing;
use runner::sandbox::outcome::{RunError, Verdict};
use runner::sandbox::protection::Machine;
use runner::sandbox::user::UserMapping;
use runner::workspace::Owner;
use runner_policy::limits::{Isolation, Limit, Limits};
use runner_wire::{Bytes, Work};

use crate::support::engine_under_test;

/// The engine that is tested.
pub async fn engine() -> Arc<dyn Engine> {
    let variable = |name: &str| std::env::var_os(name);
    runner::engine::open(&engine_under_test().into(), &variable).await.expect("an engine")
}

/// What a plan says of the engine that is tested, as a call would find it.
#[derive(Clone, Copy)]
pub struct Ground {
    pub mapping: UserMapping,
    pub life: Life,
    pub machine: Machine,
}

/// What a plan says of the engine that is tested.
pub fn ground() -> Ground {
    if engine_under_test() == EngineName::Docker {
        // Without asking: plans are also made where there is no engine.
        return Ground {
            mapping: UserMapping::Rootful,
            life: Life::Daemon,
            machine: Machine::WHOLE,
        };
    }
    let ask = || {
        block_on(async {
            let engine = engine().await;
            let facts = engine.probe().await.expect("it says what it is");
            Ground {
                mapping: UserMapping::from(facts.user_namespace),
                life: engine.life(),
                machine: Machine { holders: facts.holders, landlock: facts.landlock },
            }
        })
    };
    // A thread of its own: plans are also made within an event loop.
    std::thread::spawn(ask).join().expect("an answer")
}

/// Names of what is left of a call's sandbox. An embedded engine knows its own process's alone; what others see are control
/// groups.
pub fn sandbox_of(call: &CallId) -> Vec<String> {
    match engine_under_test() {
        EngineName::Docker => block_on(async {
            let found = engine().await.list(Some(call)).await.expect("a list");
            found.into_iter().map(|sandbox| sandbox.id.as_str().to_owned()).collect()
        }),
        EngineName::Embedded => {
            let of_call = |folder: &PathBuf| folder.ends_with(format!("runner-sandbox-{call}"));
            let one = crate::embedded::traces::groups().into_iter().find(of_call);
            one.map(|_| call.as_str().to_owned()).into_iter().collect()
        }
    }
}

/// An ordinary user, whoever runs the tests.
const UID: u32 = 65534;

fn identity(path: &Path) -> Option<Identity> {
    let found = std::fs::metadata(path).ok()?;
    Some(Identity { dev: found.dev(), ino: found.ino() })
}

fn system(path: &str) -> Option<Mount> {
    Some(Mount {
        identity: identity(Path::new(path))?,
        source: std::fs::canonicalize(path).unwrap(),
        target: PathBuf::from(path),
        role: MountRole::System,
    })
}

/// The state folder of these calls.
pub fn state() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("state")
}

/// A workspace without covers, as an overlay with a stage.
fn overlay(workspace: &Path) -> Overlay {
    let identity = identity(workspace).unwrap();
    let covers = layer(&Covering {
        over: std::fs::File::open(workspace).unwrap().as_fd(),
        identity,
        covers: &BTreeMap::new(),
        contents: &BTreeMap::new(),
        owner: Owner { uid: UID, gid: UID },
        state: &state(),
        missing: Missing::Make,
    });
    Overlay {
        target: workspace.to_owned(),
        identity,
        covers: covers.unwrap(),
        writes: OverlayWrites::Staged,
        role: OverlayRole::Workspace,
    }
}

/// A plan with the host's programs and one writable workspace.
pub fn plan(workspace: &Path) -> SandboxPlan {
    let limits = Limits::preset(Isolation::Strict);
    let folders = ["/usr", "/bin", "/lib", "/lib64", "/sbin", "/etc/alternatives"];
    SandboxPlan {
        network: None,
        image: Image::Host,
        runtime: None,
        isolation: Isolation::Strict,
        user: UserChoice { uid: UID, gid: UID, why: WhyUser::Nobody },
        workspace: workspace.to_owned(),
        cwd: workspace.to_owned(),
        mounts: folders.into_iter().filter_map(system).collect(),
        overlays: vec![overlay(workspace)],
        masks: vec![],
        synthetic: vec![],
        tmpfs: vec![Tmpfs {
            target: PathBuf::from("/tmp"),
            size: limits.get(Limit::Scratch),
            inodes: limits.get(Limit::Inodes),
            uid: UID,
            gid: UID,
            mode: 0o1777,
            exec: TmpfsExec::Exec,
        }],
        env: [("PATH".into(), "/usr/bin:/bin".into())].into(),
        limits,
        holders: ground().machine.holders,
        protections: vec![],
        repositories: Default::default(),
        links: Default::default(),
        covered: [].into(),
        trees: vec![],
        notes: vec![],
    }
}

/// A workspace that the user inside may write.
pub fn workspace() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(folder.path(), mode).unwrap();
    folder
}

pub fn argv(words: &[&str]) -> Work {
    Work::Argv { argv: words.iter().map(|word| Bytes::from(*word)).collect(), program: None }
}

pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let result = runtime.block_on(future);
    runtime.shutdown_background();
    result
}

/// A call of its own. Its sandbox may take as long as it needs: the command's own time is the plan's.
pub fn order(id: CallId, plan: SandboxPlan, work: Work) -> Call {
    let deadline = tokio::time::Instant::now() + life(&plan.limits);
    Call { id, plan, work, umask: 0o022, state: state(), deadline }
}

pub async fn call_with(
    plan: SandboxPlan,
    work: Work,
    streams: Streams,
    cancel: &mut Cancel,
) -> Result<Outcome, RunError> {
    let engine = engine().await;
    let call = order(CallId::fresh().unwrap(), plan, work);
    let program = Path::new(env!("CARGO_BIN_EXE_runner"));
    run(engine, call, streams, cancel, program, &std::env::vars_os().collect()).await
}

/// The same under a name, by which what is left can be found.
pub fn call_as(id: &CallId, plan: SandboxPlan, work: Work) -> Result<Outcome, RunError> {
    let (_canceller, mut cancel) = Cancel::pair();
    block_on(call_until(id, plan, work, &mut cancel))
}

/// The same, until it ends or is cancelled.
pub async fn call_until(
    id: &CallId,
    plan: SandboxPlan,
    work: Work,
    cancel: &mut Cancel,
) -> Result<Outcome, RunError> {
    let engine = engine().await;
    let call = order(id.clone(), plan, work);
    let program = Path::new(env!("CARGO_BIN_EXE_runner"));
    run(engine, call, Streams::default(), cancel, program, &std::env::vars_os().collect()).await
}

pub fn call(plan: SandboxPlan, work: Work) -> Result<Outcome, RunError> {
    block_on(async {
        let (_canceller, mut cancel) = Cancel::pair();
        call_with(plan, work, Streams::default(), &mut cancel).await
    })
}

#[test]
fn a_command_runs_and_its_streams_stay_apart() {
    let folder = workspace();
    let work = argv(&["sh", "-c", "echo out; echo err >&2; id -u; pwd; exit 3"]);
    let outcome = call(plan(folder.path()), work).unwrap();
    let expected = format!("out\n{UID}\n{}\n", folder.path().display());
    assert_eq!(outcome.verdict, Verdict::Failed { status: 3 });
    assert_eq!(String::from_utf8(outcome.stdout.whole().unwrap()).unwrap(), expected);
    assert_eq!(outcome.stderr.whole().unwrap(), b"err\n");
    println!("{:?} {:?}", outcome.phases, outcome.usage);
}

#[test]
fn a_missing_program_is_told_apart_from_one_that_cannot_run() {
    let folder = workspace();
    let missing = call(plan(folder.path()), argv(&["nosuch"])).unwrap();
    assert_eq!(missing.verdict, Verdict::NotFound { program: Bytes::from("nosuch") });
    std::fs::write(folder.path().join("text"), "hello").unwrap();
    let text = call(plan(folder.path()), argv(&["./text"])).unwrap();
    assert!(matches!(text.verdict, Verdict::NotExecutable { errno: 13, .. }), "{text:?}");
}

#[test]
fn another_folder_behind_a_mount_fails_closed() {
    let folder = workspace();
    let work = || argv(&["true"]);
    let mut odd = plan(folder.path());
    odd.mounts.last_mut().unwrap().identity.ino += 1;
    let error = call(odd, work()).unwrap_err();
    match engine_under_test() {
        EngineName::Docker => assert!(matches!(error, RunError::Identity { .. }), "{error}"),
        // It opens what it mounts, and compares what it has open.
        EngineName::Embedded => assert_eq!(error.code(), Code::MountGone, "{error}"),
    }
    // What an overlay is made from is compared before the daemon is told of it.
    let changes: [fn(&mut Overlay); 2] =
        [|overlay| overlay.identity.ino += 1, |overlay| overlay.covers.identity.ino += 1];
    for change in changes {
        let mut odd = plan(folder.path());
        change(&mut odd.overlays[0]);
        call(odd, work()).unwrap_err();
    }
    // The engine mounts what it was told; a mark that is not the planned one is not ours.
    let mut odd = plan(folder.path());
    odd.overlays[0].writes = OverlayWrites::Refused;
    odd.overlays[0].covers.mark.push('x');
    let error = call(odd, work()).unwrap_err();
    assert!(matches!(error, RunError::Identity { .. }), "{error}");
    call(plan(folder.path()), work()).unwrap();
}

/// The stage takes what a command writes; the host's folder does not change while it runs.
#[test]
fn what_a_command_writes_is_not_on_the_host_while_it_runs() {
    let folder = workspace();
    std::fs::write(folder.path().join("old"), "old").unwrap();
    let script = "echo new > old; echo new > new; mkdir -p sub/deep; rm old; ls";
    let outcome = call(plan(folder.path()), argv(&["sh", "-c", script])).unwrap();
    assert_eq!(outcome.stdout.whole().unwrap(), b"new\nsub\n", "{outcome:?}");
    let mut reads = plan(folder.path());
    reads.overlays[0].writes = OverlayWrites::Refused;
    let outcome = call(reads, argv(&["sh", "-c", "echo x > old; echo $?"])).unwrap();
    assert_ne!(outcome.stdout.whole().unwrap(), b"0\n", "{outcome:?}");
}

#[test]
fn the_engine_is_asked_what_it_is() {
    block_on(async {
        let engine = engine().await;
        let facts = engine.probe().await.unwrap();
        println!("{facts:?}");
        assert!(facts.processors > 0 && !facts.id.is_empty());
    });
}
