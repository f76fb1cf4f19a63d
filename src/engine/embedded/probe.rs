//! What this machine lets the caller do, found out by trying.
//!
//! The whole sequence of a launch is tried once after each boot, and its success remembered: settings that forbid a part
//! of it are many, and some let a namespace be made that cannot be used. What fails later is explained the same way.

use std::fs;
use std::path::{Path, PathBuf};

use runner_wire::{LaunchFailure, LaunchStep, Right};
use rustix::thread::{CapabilitySet, capabilities};

use super::failure::LaunchError;
use super::groups::{self, Places};
use super::systemd::Manager;
use super::{guest_folder, process, recipe};
use crate::engine::error::EngineError;
use crate::engine::guest;
use crate::engine::traits::{Facts, UserNamespace};
use crate::ids::CallId;
use crate::sys::landlock_version;

/// The user that owns nothing.
const NOBODY: u32 = 65_534;

/// Capabilities with which a sandbox is made without a user namespace.
const NEEDED: CapabilitySet = CapabilitySet::SYS_ADMIN
    .union(CapabilitySet::NET_ADMIN)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETPCAP);

/// By which right this process makes sandboxes.
pub(super) fn right() -> Right {
    let is_root = rustix::process::geteuid().is_root();
    let may = capabilities(None).is_ok_and(|sets| sets.effective.contains(NEEDED));
    if is_root && may { Right::Capable } else { Right::User }
}

/// Whether the kernel counts the processes of a sandbox by itself: for each user namespace, but not for user 0 of the host,
/// who is root even without any capability.
pub(super) fn counts_processes(right: Right) -> bool {
    right == Right::User && !rustix::process::geteuid().is_root()
}

/// Who a sandbox without a plan runs as.
pub(super) fn user(right: Right) -> (u32, u32) {
    let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    match right {
        Right::User if uid != 0 => (uid, gid),
        Right::User | Right::Capable => (NOBODY, NOBODY),
    }
}

/// What the engine is.
pub(super) fn facts(manager: Option<&Manager>) -> Facts {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    Facts {
        id: "embedded".to_owned(),
        version: format!("{}, Linux {}", env!("CARGO_PKG_VERSION"), release()),
        processors: u32::try_from(processors).unwrap_or(u32::MAX),
        user_namespace: match right() {
            Right::Capable => UserNamespace::Swapped,
            Right::User => UserNamespace::Single,
        },
        runtimes: Vec::new(),
        cgroup: if Path::new("/sys/fs/cgroup/cgroup.controllers").exists() { 2 } else { 1 },
        seccomp: true,
        holders: groups::holders(&groups::find(manager), counts_processes(right())),
        landlock: landlock_version().is_some(),
    }
}

/// The release of the running kernel.
fn release() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}

/// Makes the least sandbox, unless one was made since this machine started; the manager of systemd, if it helped or was not
/// needed. One that does not help is not asked again by this process, and the limits that it would hold are told as they are
/// without it.
pub(super) fn prove(
    cache: &Path,
    manager: Option<Manager>,
) -> Result<Option<Manager>, EngineError> {
    match prove_in(cache, groups::find(manager.as_ref())) {
        Ok(()) => Ok(manager),
        Err(EngineError::Launch(LaunchError::Scope(_))) => {
            prove_in(cache, groups::find(None)).map(|()| None)
        }
        Err(error) => Err(error),
    }
}

fn prove_in(cache: &Path, places: Places) -> Result<(), EngineError> {
    let known = remembered(cache, &places);
    if known.as_ref().is_some_and(|known| known.exists()) {
        return Ok(());
    }
    let guest = guest_folder::place(cache)?;
    // What launchers left that were killed; a reboot has taken away the rest.
    groups::remove_left_over(&places);
    // Several calls of one process may try at once.
    let name = CallId::fresh()
        .map_err(|source| EngineError::Local { operation: "name a sandbox", source })?;
    let name = format!("probe-{name}");
    tokio::runtime::Handle::current().block_on(async {
        let started = process::start(&guest)?;
        let place = groups::settle(places, started.id(), &name).await;
        let place = place.map_err(LaunchError::Scope)?;
        started.tell(&recipe::smallest(guest.source(), &place, &name))?.end().await
    })?;
    if let Some(known) = known {
        forget_others(cache, &known);
        // It is tried again if it cannot be kept.
        let _ = fs::write(known, "");
    }
    Ok(())
}

/// The file that says that a sandbox could be made: by this build, user and right, since this boot.
fn remembered(cache: &Path, places: &Places) -> Option<PathBuf> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let namespace = fs::read_link("/proc/self/ns/user").ok()?;
    let right = match right() {
        Right::Capable => "capable",
        Right::User => "user",
    };
    let by = match places {
        Places::Scopes { .. } => "systemd",
        Places::Trees(_) | Places::Unified { .. } | Places::None => "own",
    };
    let mut hasher = blake3::Hasher::new();
    for word in [boot.trim(), &namespace.to_string_lossy(), right, guest::DIGEST] {
        hasher.update(word.as_bytes());
        hasher.update(&[0]);
    }
    Some(cache.join(format!("{REMEMBERED}{}-{by}", &hasher.finalize().to_hex()[..32])))
}

/// How the names of such files begin.
const REMEMBERED: &str = "embedded-works-";

/// Removes what was remembered of earlier boots. A caller may have both kinds of places in one.
fn forget_others(cache: &Path, known: &Path) {
    let known = known.file_name().unwrap_or_default().to_string_lossy();
    let since_boot = known.rsplit_once('-').map_or(&*known, |(same, _)| same);
    forget(cache, |name| !name.starts_with(since_boot));
}

/// Has everything tried again by the next call: systemd does not do any more what it did.
pub(super) fn forget_all(cache: &Path) {
    forget(cache, |_| true);
}

fn forget(cache: &Path, which: impl Fn(&str) -> bool) {
    for entry in fs::read_dir(cache).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with(REMEMBERED) && which(&name) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Why a launch failed, with the machine's own reason if it is known.
pub(super) fn explain(failure: LaunchFailure) -> LaunchError {
    if failure.errno == Some(libc::ENOSYS) {
        return LaunchError::OldKernel { release: release() };
    }
    if let Some(setting) = used_up(&failure) {
        return setting;
    }
    let forbidden = matches!(failure.errno, Some(libc::EPERM | libc::EACCES | libc::ENOSPC));
    let by_machine = matches!(
        failure.step,
        LaunchStep::UserNamespace
            | LaunchStep::UserMap
            | LaunchStep::Namespace
            | LaunchStep::Loopback
            | LaunchStep::Root
            | LaunchStep::Proc
            | LaunchStep::Capabilities
    );
    if !(forbidden && by_machine && right() == Right::User) {
        return LaunchError::Step(failure);
    }
    let setting = |name: &str| fs::read_to_string(format!("/proc/sys/{name}")).ok();
    let is = |name: &str, value: &str| setting(name).is_some_and(|found| found.trim() == value);
    if is("kernel/unprivileged_userns_clone", "0") {
        let name = "kernel.unprivileged_userns_clone";
        LaunchError::Setting { name, now: "0".to_owned(), wanted: 1 }
    } else if is("kernel/apparmor_restrict_unprivileged_userns", "1") {
        let program = fs::read_link("/proc/self/exe").unwrap_or_else(|_| "/usr/bin/runner".into());
        LaunchError::AppArmor { program: program.display().to_string() }
    } else if failure.step == LaunchStep::Proc || in_container() {
        // A procfs is refused to an ordinary user where another one is covered in part, as engines of containers do.
        LaunchError::InContainer
    } else {
        LaunchError::Step(failure)
    }
}

/// How many namespaces of a kind there may be: all kinds that a sandbox has.
const MOST: [&str; 7] = [
    "user.max_user_namespaces",
    "user.max_pid_namespaces",
    "user.max_mnt_namespaces",
    "user.max_net_namespaces",
    "user.max_ipc_namespaces",
    "user.max_uts_namespaces",
    "user.max_cgroup_namespaces",
];

/// What such a setting should be where it is too low: it has room for every sandbox that a machine can hold.
const ENOUGH: u32 = 15_000;

/// The setting by which there is no room for one more namespace. The kernel says ENOSPC for that, also to root, whose files
/// are shown as another user's by way of a user namespace.
fn used_up(failure: &LaunchFailure) -> Option<LaunchError> {
    let kinds = match failure.step {
        LaunchStep::UserNamespace | LaunchStep::IdMap => &MOST[..1],
        LaunchStep::Namespace => &MOST[1..],
        _ => return None,
    };
    let most = |name: &&'static str| {
        let text = fs::read_to_string(format!("/proc/sys/{}", name.replace('.', "/"))).ok()?;
        Some((*name, text.trim().parse::<u32>().ok()?))
    };
    let lowest = kinds.iter().filter_map(most).min_by_key(|(_, most)| *most);
    let (name, now) = lowest.filter(|(_, now)| *now < ENOUGH)?;
    let full = failure.errno == Some(libc::ENOSPC) || failure.errno.is_none() && now == 0;
    full.then(|| LaunchError::Setting { name, now: now.to_string(), wanted: ENOUGH })
}

/// Whether this process is in a container: by the files that engines leave, or a filter of system calls.
fn in_container() -> bool {
    let marked = ["/.dockerenv", "/run/.containerenv"].iter().any(|path| Path::new(path).exists());
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let filtered = status.lines().any(|line| line.split_whitespace().eq(["Seccomp:", "2"]));
    marked || filtered
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(step: LaunchStep, errno: i32) -> LaunchFailure {
        LaunchFailure { step, object: None, errno: Some(errno) }
    }

    #[test]
    fn a_missing_system_call_is_an_old_kernel() {
        let found = explain(failure(LaunchStep::Bind, libc::ENOSYS));
        assert!(matches!(found, LaunchError::OldKernel { release } if !release.is_empty()));
    }

    #[test]
    fn what_no_setting_forbids_is_told_as_it_is() {
        for (step, errno) in [
            (LaunchStep::Bind, libc::EPERM),
            (LaunchStep::Tmpfs, libc::ENOSPC),
            (LaunchStep::UserNamespace, libc::ENOMEM),
        ] {
            let failure = failure(step, errno);
            let found = explain(failure.clone());
            assert!(matches!(found, LaunchError::Step(told) if told == failure));
        }
    }

    #[test]
    fn both_kinds_of_places_are_remembered_for_this_boot_alone() {
        let dir = tempfile::tempdir().unwrap();
        let known = remembered(dir.path(), &Places::None).unwrap();
        let name = known.file_name().unwrap().to_string_lossy().into_owned();
        let other = dir.path().join(name.replace("-own", "-systemd"));
        let earlier = dir.path().join(format!("{REMEMBERED}0123-own"));
        for file in [&known, &other, &earlier] {
            fs::write(file, "").unwrap();
        }
        forget_others(dir.path(), &known);
        assert!(known.exists() && other.exists() && !earlier.exists());
        forget_all(dir.path());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
