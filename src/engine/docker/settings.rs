//! From a plan to the settings of a container: one pure function, no defaults left to chance.
//!
//! Duty: every setting of every container that we create. Non-goals: making it. Trust boundary: the plan
//! is ours, its paths may be anybody's, so they travel as structured mounts and never in strings
//! that something splits. What the daemon's protocol cannot carry is refused.
//!
//! Settings that are missing here on purpose: `MaskedPaths` and `ReadonlyPaths` (the daemon's defaults
//! hide what they must), `Env` (the environment goes to the guest over the wire, where `inspect`
//! does not show it), `CapAdd`, `Devices`, `Binds`, `Privileged`: there is no way to ask for them.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use bollard::models::{
    ContainerCreateBody, HealthConfig, HostConfig, HostConfigCgroupnsModeEnum, HostConfigLogConfig,
    Mount as DockerMount, MountBindOptions, MountBindOptionsPropagationEnum, MountType,
    MountVolumeOptions, MountVolumeOptionsDriverConfig, ResourcesUlimits, RestartPolicy,
    RestartPolicyNameEnum,
};
use runner_policy::limits::{Limit, Limits};

use crate::engine::plan::{Overlay, SandboxPlan, Tmpfs, TmpfsExec};
use crate::engine::runtime_kind::RuntimeKind;
use crate::engine::seccomp;

/// The digest of all that makes a container from a plan and is part of this program; the build script makes it.
pub(super) const RECIPE: &str = env!("RUNNER_RECIPE");

/// The folder of the guest: part of the `host` image, a volume in any other.
pub const GUEST_FOLDER: &str = "/.runner-guest";

/// The guest.
pub const GUEST_PROGRAM: &str = "/.runner-guest/guest";

/// What a sandbox is called from inside.
const HOSTNAME: &str = "sandbox";

/// How readily the kernel ends a sandbox when the machine runs out of memory: before anything of the host's. The guest puts
/// what waits above this, and commands between (`src/guest/oom.rs`); a runtime with a kernel of its own has this alone.
const FIRST_TO_GO: i64 = 600;

/// Threads that gVisor's kernel and its helpers need for themselves, with room to spare.
const OWN_KERNEL_THREADS: i64 = 256;

/// What the engine adds to a plan to make a container from it.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The image as the daemon knows it.
    pub image: String,
    /// How the guest gets in.
    pub guest: GuestDelivery,
    /// The guest's arguments.
    pub arguments: Vec<String>,
    /// Labels: owner, call, deadline.
    pub labels: BTreeMap<String, String>,
    /// Processors of the daemon's machine: it refuses a limit above that.
    pub processors: u32,
    /// The options of each overlay of the plan, in order.
    pub overlays: Vec<String>,
}

/// How the guest gets into a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GuestDelivery {
    /// It is part of the image.
    InImage,
    /// In a read-only volume of this name.
    Volume(String),
}

/// Why a plan cannot become a container.
#[derive(Debug, thiserror::Error, Clone, PartialEq, Eq)]
pub enum SettingsError {
    /// The daemon's protocol is JSON, which cannot carry this path.
    #[error(
        "{0} is not valid UTF-8, which Docker cannot mount; rename it, or work in another \
         folder"
    )]
    NotUtf8(PathBuf),
    /// The daemon splits the options of a mount at this character.
    #[error(
        "{0} has a comma or a line end in its path, which this Docker engine cannot mount; rename \
         it, or work in another folder"
    )]
    Comma(PathBuf),
    /// Two mounts have the same target.
    #[error("two mounts at {0}; this is a mistake of ours, please report it")]
    DuplicateTarget(PathBuf),
    /// A target or source is not absolute, or has `..` in it.
    #[error(
        "mount path {0} is not absolute and plain; this is a mistake of ours, please report it"
    )]
    NotAbsolute(PathBuf),
}

/// The settings of the container that a plan describes.
///
/// # Errors
/// A path that the protocol cannot carry, or a plan that contradicts itself.
pub fn container_settings(
    plan: &SandboxPlan,
    launch: &Launch,
) -> Result<ContainerCreateBody, SettingsError> {
    let mut entrypoint = vec![GUEST_PROGRAM.to_owned()];
    entrypoint.extend(launch.arguments.iter().cloned());
    Ok(ContainerCreateBody {
        image: Some(launch.image.clone()),
        entrypoint: Some(entrypoint),
        // An image's own command would be appended to our entry point.
        cmd: Some(Vec::new()),
        hostname: Some(HOSTNAME.to_owned()),
        user: Some(format!("{}:{}", plan.user.uid, plan.user.gid)),
        working_dir: Some("/".to_owned()),
        labels: Some(launch.labels.clone().into_iter().collect()),
        tty: Some(false),
        attach_stdin: Some(true),
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        // Both, or the guest never sees the end of a client that died.
        open_stdin: Some(true),
        stdin_once: Some(true),
        // An image's health check would be a second program, run by the daemon.
        healthcheck: Some(HealthConfig {
            test: Some(vec!["NONE".to_owned()]),
            ..HealthConfig::default()
        }),
        host_config: Some(host_config(plan, launch)?),
        ..ContainerCreateBody::default()
    })
}

fn host_config(plan: &SandboxPlan, launch: &Launch) -> Result<HostConfig, SettingsError> {
    let memory = figure(&plan.limits, Limit::Memory);
    let cpus = plan.limits.get(Limit::Cpus).min(u64::from(launch.processors) * 1_000);
    Ok(HostConfig {
        auto_remove: Some(true),
        restart_policy: Some(RestartPolicy {
            name: Some(RestartPolicyNameEnum::NO),
            maximum_retry_count: None,
        }),
        log_config: Some(HostConfigLogConfig { typ: Some("none".to_owned()), config: None }),
        network_mode: Some("none".to_owned()),
        ipc_mode: Some("none".to_owned()),
        // Empty means a namespace of its own.
        pid_mode: Some(String::new()),
        uts_mode: Some(String::new()),
        cgroupns_mode: Some(HostConfigCgroupnsModeEnum::PRIVATE),
        privileged: Some(false),
        publish_all_ports: Some(false),
        readonly_rootfs: Some(true),
        cap_drop: Some(vec!["ALL".to_owned()]),
        security_opt: Some(vec![
            "no-new-privileges".to_owned(),
            format!("seccomp={}", seccomp::PROFILE),
        ]),
        memory: Some(memory),
        // Equal to memory: no swap.
        memory_swap: Some(memory),
        nano_cpus: Some(signed(cpus.saturating_mul(1_000_000))),
        pids_limit: Some(pids_limit(plan)),
        oom_kill_disable: Some(false),
        oom_score_adj: Some(FIRST_TO_GO),
        init: Some(false),
        ulimits: Some(ulimits(&plan.limits)),
        mounts: Some(mounts(plan, launch)?),
        tmpfs: Some(tmpfs(&plan.tmpfs)?),
        runtime: plan.runtime.as_ref().map(|runtime| runtime.as_str().to_owned()),
        ..HostConfig::default()
    })
}

/// Overlays, binds in mount order, synthetic files, masks. The daemon sorts by depth of the target, so a
/// parent always comes first there too.
fn mounts(plan: &SandboxPlan, launch: &Launch) -> Result<Vec<DockerMount>, SettingsError> {
    let mut mounts = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    let overlays = plan.overlays.iter().map(|overlay| &overlay.target);
    let binds = plan.mounts.iter().map(|mount| (&mount.source, &mount.target));
    let files = plan.synthetic.iter().map(|file| (&file.source, &file.target));
    let masks = plan.masks.iter().map(|mask| (&mask.source, &mask.target));
    let binds: Vec<_> = binds.chain(files).chain(masks).collect();
    for target in overlays.chain(binds.iter().map(|(_, target)| *target)) {
        if !seen.insert(target.as_path()) {
            return Err(SettingsError::DuplicateTarget(target.clone()));
        }
    }
    for (overlay, options) in plan.overlays.iter().zip(&launch.overlays) {
        mounts.push(volume(overlay, options, launch)?);
    }
    for (source, target) in binds {
        mounts.push(bind(source, target)?);
    }
    if let GuestDelivery::Volume(name) = &launch.guest {
        mounts.push(DockerMount {
            typ: Some(MountType::VOLUME),
            source: Some(name.clone()),
            target: Some(GUEST_FOLDER.to_owned()),
            read_only: Some(true),
            // Or an image's own folder of that name would be copied into an empty volume.
            volume_options: Some(MountVolumeOptions {
                no_copy: Some(true),
                ..MountVolumeOptions::default()
            }),
            ..DockerMount::default()
        });
    }
    Ok(mounts)
}

/// An anonymous volume that is mounted as an overlay. It goes with the container; its label is for
/// those that a killed daemon leaves. The daemon refuses `ReadOnly` for such volumes: an overlay
/// without a stage is read-only by itself, and the guest checks it.
fn volume(overlay: &Overlay, options: &str, launch: &Launch) -> Result<DockerMount, SettingsError> {
    let driver = [("type", "overlay"), ("device", "overlay"), ("o", options)];
    Ok(DockerMount {
        typ: Some(MountType::VOLUME),
        target: Some(plain(&overlay.target)?),
        volume_options: Some(MountVolumeOptions {
            // Or the files of an image would be copied into the stage of an empty workspace.
            no_copy: Some(true),
            labels: Some(launch.labels.clone().into_iter().collect()),
            driver_config: Some(MountVolumeOptionsDriverConfig {
                name: Some("local".to_owned()),
                options: Some(driver.map(|(key, value)| (key.to_owned(), value.to_owned())).into()),
            }),
            ..MountVolumeOptions::default()
        }),
        ..DockerMount::default()
    })
}

fn bind(source: &Path, target: &Path) -> Result<DockerMount, SettingsError> {
    Ok(DockerMount {
        typ: Some(MountType::BIND),
        source: Some(plain(source)?),
        target: Some(plain(target)?),
        read_only: Some(true),
        bind_options: Some(MountBindOptions {
            propagation: Some(MountBindOptionsPropagationEnum::PRIVATE),
            // What is mounted below a source would come along, and older daemons make only the top
            // of a read-only bind read-only. The planner names what lies below by itself.
            non_recursive: Some(true),
            create_mountpoint: Some(false),
            ..MountBindOptions::default()
        }),
        ..DockerMount::default()
    })
}

/// As `HostConfig.Tmpfs`: the structured form takes neither inodes nor an owner.
fn tmpfs(list: &[Tmpfs]) -> Result<HashMap<String, String>, SettingsError> {
    let mut map = HashMap::new();
    for entry in list {
        let exec = match entry.exec {
            TmpfsExec::Exec => "exec",
            TmpfsExec::NoExec => "noexec",
        };
        let options = format!(
            "rw,nosuid,nodev,{exec},size={},nr_inodes={},uid={},gid={},mode={:o}",
            entry.size, entry.inodes, entry.uid, entry.gid, entry.mode
        );
        if map.insert(plain(&entry.target)?, options).is_some() {
            return Err(SettingsError::DuplicateTarget(entry.target.clone()));
        }
    }
    Ok(map)
}

fn ulimits(limits: &Limits) -> Vec<ResourcesUlimits> {
    let seconds = signed(limits.get(Limit::CpuTime).div_ceil(1_000));
    let row = |name: &str, soft: i64, hard: i64| ResourcesUlimits {
        name: Some(name.to_owned()),
        soft: Some(soft),
        hard: Some(hard),
    };
    let files = figure(limits, Limit::OpenFiles);
    let size = figure(limits, Limit::FileSize);
    vec![
        // At 0 a crash would still start a program of the host's, if `core_pattern` names one.
        row("core", 1, 1),
        // SIGXCPU at the limit; a program that ignores it is killed a second later.
        row("cpu", seconds, seconds.saturating_add(1)),
        row("fsize", size, size),
        row("nofile", files, files),
    ]
}

/// A kernel of its own lives in the same cgroup as what it runs: its threads count too, and a small
/// limit would end the sandbox before the command started.
fn pids_limit(plan: &SandboxPlan) -> i64 {
    let pids = figure(&plan.limits, Limit::Pids);
    match RuntimeKind::of(plan.runtime.as_ref()) {
        RuntimeKind::SharedKernel | RuntimeKind::Direct => pids,
        RuntimeKind::Gvisor | RuntimeKind::Kata => {
            pids.saturating_mul(2).saturating_add(OWN_KERNEL_THREADS)
        }
    }
}

fn figure(limits: &Limits, limit: Limit) -> i64 {
    signed(limits.get(limit))
}

fn signed(figure: u64) -> i64 {
    i64::try_from(figure).unwrap_or(i64::MAX)
}

/// An absolute path of ordinary parts, spelled one way: without a slash at the end.
fn plain(path: &Path) -> Result<String, SettingsError> {
    use std::path::Component;

    let ordinary =
        path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    if !path.is_absolute() || !ordinary {
        return Err(SettingsError::NotAbsolute(path.to_owned()));
    }
    let spelled: PathBuf = path.components().collect();
    spelled.into_os_string().into_string().map_err(|_| SettingsError::NotUtf8(path.to_owned()))
}

#[cfg(test)]
#[path = "settings_tests.rs"]
pub(crate) mod tests;
