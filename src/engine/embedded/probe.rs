//! What this machine lets the caller do, found out by trying.
//!
//! The whole sequence of a launch is tried once after each boot, and its success remembered: settings that forbid a part
//! of it are many, and some let a namespace be made that cannot be used. What fails later is explained the same way.

use std::fs;
use std::path::{Path, PathBuf};

use runner_wire::{LaunchFailure, LaunchStep, Right};
use rustix::thread::{CapabilitySet, capabilities};

use super::failure::LaunchError;
use super::{groups, guest_folder, process, recipe};
use crate::engine::error::EngineError;
use crate::engine::guest;
use crate::engine::traits::{Facts, UserNamespace};
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
pub(super) fn facts() -> Facts {
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
        holders: groups::holders(&groups::find(), counts_processes(right())),
        landlock: landlock_version().is_some(),
    }
}

/// The release of the running kernel.
fn release() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}

/// Makes the least sandbox, unless one was made since this machine started.
pub(super) fn prove(cache: &Path) -> Result<(), EngineError> {
    let known = remembered(cache);
    if known.as_ref().is_some_and(|known| known.exists()) {
        return Ok(());
    }
    let guest = guest_folder::place(cache)?;
    let places = groups::find();
    // What launchers left that were killed; a reboot has taken away the rest.
    groups::remove_left_over(&places);
    let recipe = recipe::smallest(guest.source(), &places)
        .map_err(|source| EngineError::Local { operation: "name a sandbox", source })?;
    tokio::runtime::Handle::current()
        .block_on(async { process::launch(&guest, &recipe)?.end().await })?;
    if let Some(known) = known {
        forget_others(cache, &known);
        // It is tried again if it cannot be kept.
        let _ = fs::write(known, "");
    }
    Ok(())
}

/// The file that says that a sandbox could be made: by this build, user and right, since this boot.
fn remembered(cache: &Path) -> Option<PathBuf> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let namespace = fs::read_link("/proc/self/ns/user").ok()?;
    let right = match right() {
        Right::Capable => "capable",
        Right::User => "user",
    };
    let mut hasher = blake3::Hasher::new();
    for word in [boot.trim(), &namespace.to_string_lossy(), right, guest::DIGEST] {
        hasher.update(word.as_bytes());
        hasher.update(&[0]);
    }
    Some(cache.join(format!("{REMEMBERED}{}", &hasher.finalize().to_hex()[..32])))
}

/// How the names of such files begin.
const REMEMBERED: &str = "embedded-works-";

/// Removes what was remembered of earlier boots.
fn forget_others(cache: &Path, known: &Path) {
    for entry in fs::read_dir(cache).into_iter().flatten().flatten() {
        let is_ours = entry.file_name().to_string_lossy().starts_with(REMEMBERED);
        if is_ours && entry.path() != known {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Why a launch failed, with the machine's own reason if it is known.
pub(super) fn explain(failure: LaunchFailure) -> LaunchError {
    if failure.errno == Some(libc::ENOSYS) {
        return LaunchError::OldKernel { release: release() };
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
    if is("user/max_user_namespaces", "0") {
        LaunchError::Setting { setting: "user.max_user_namespaces=15000" }
    } else if is("kernel/unprivileged_userns_clone", "0") {
        LaunchError::Setting { setting: "kernel.unprivileged_userns_clone=1" }
    } else if is("kernel/apparmor_restrict_unprivileged_userns", "1") {
        LaunchError::AppArmor
    } else if in_container() {
        LaunchError::InContainer
    } else {
        LaunchError::Step(failure)
    }
}

/// Whether this process is in a container: by the files that engines leave, or a filter of system calls.
fn in_container() -> bool {
    let marked = ["/.dockerenv", "/run/.containerenv"].iter().any(|path| Path::new(path).exists());
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let filtered = status.lines().any(|line| line.split_whitespace().eq(["Seccomp:", "2"]));
    marked || filtered
}
