//! `/proc` of the sandbox's own processes, without what tells of the machine or changes it.

use super::failure::{Failed, Trying};
use super::kernel::{self, Below, Mounted};
use super::open::Sources;
use super::root::Root;
use runner_wire::{Bytes, LaunchStep, Right};
use std::os::fd::AsFd;
use std::path::Path;

/// What tells of the machine, or reads its memory. The same as container engines hide.
const HIDDEN: [&str; 10] = [
    "acpi",
    "asound",
    "interrupts",
    "kcore",
    "keys",
    "latency_stats",
    "sched_debug",
    "scsi",
    "timer_list",
    "timer_stats",
];

/// What tells root of the machine's memory: for a root of the host that has no right to be another user.
const HIDDEN_FROM_ROOT: [&str; 8] = [
    "allocinfo",
    "kpagecgroup",
    "kpagecount",
    "kpageflags",
    "pagetypeinfo",
    "slabinfo",
    "vmallocinfo",
    "vmcore",
];

/// What changes the machine. As user 0 without capabilities a process could still write some of it.
const READ_ONLY: [&str; 5] = ["bus", "fs", "irq", "sys", "sysrq-trigger"];

/// Makes it.
pub fn make(root: &Root, sources: &Sources, right: Right) -> Result<(), Failed> {
    let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
    root.mount_new("proc", "proc", flags, "").trying(LaunchStep::Proc)?;
    for name in READ_ONLY {
        close(root, name).trying_at(LaunchStep::Proc, &Bytes::from(name))?;
    }
    let is_root = right == Right::User && host_user_is_root().trying(LaunchStep::Proc)?;
    let of_root = HIDDEN_FROM_ROOT.into_iter().filter(|_| is_root);
    for name in HIDDEN.into_iter().chain(of_root) {
        hide(root, name, sources).trying_at(LaunchStep::Proc, &Bytes::from(name))?;
    }
    Ok(())
}

/// Whether the one user that this process's namespace maps is root outside.
fn host_user_is_root() -> std::io::Result<bool> {
    let map = std::fs::read_to_string("/proc/self/uid_map")?;
    Ok(map.split_whitespace().nth(1) == Some("0"))
}

fn close(root: &Root, name: &str) -> std::io::Result<()> {
    let Some(there) = root.look(&Path::new("proc").join(name))? else { return Ok(()) };
    let copy = kernel::copy_mount(there.as_fd(), Below::Left)?;
    kernel::set_attributes(copy.as_fd(), Mounted::ReadOnly)?;
    kernel::attach(copy.as_fd(), there.as_fd())
}

fn hide(root: &Root, name: &str, sources: &Sources) -> std::io::Result<()> {
    let below = Path::new("proc").join(name);
    let Some(there) = root.look(&below)? else { return Ok(()) };
    if there.metadata()?.is_dir() {
        let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC | libc::MS_RDONLY;
        let place = below.to_str().ok_or(std::io::ErrorKind::InvalidInput)?;
        return root.mount_new("tmpfs", place, flags, "size=4k,nr_inodes=1,mode=555");
    }
    let null = sources.devices.iter().find(|(device, _)| *device == "null");
    let (_, null) = null.ok_or(std::io::ErrorKind::NotFound)?;
    let copy = kernel::copy_mount(null.file.as_fd(), Below::Left)?;
    kernel::set_attributes(copy.as_fd(), Mounted::Device)?;
    kernel::attach(copy.as_fd(), there.as_fd())
}
