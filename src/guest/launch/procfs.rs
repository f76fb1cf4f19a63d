//! `/proc` of the sandbox's own processes, without what tells of the machine or changes it.

use super::failure::{Failed, Trying};
use super::kernel::{self, Below, Mounted};
use super::open::Sources;
use super::root::Root;
use runner_wire::{Bytes, LaunchStep};
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

/// What changes the machine. As user 0 without capabilities a process could still write some of it.
const READ_ONLY: [&str; 5] = ["bus", "fs", "irq", "sys", "sysrq-trigger"];

/// Makes it.
pub fn make(root: &Root, sources: &Sources) -> Result<(), Failed> {
    let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
    root.mount_new("proc", "proc", flags, "").trying(LaunchStep::Proc)?;
    for name in READ_ONLY {
        close(root, name).trying_at(LaunchStep::Proc, &Bytes::from(name))?;
    }
    for name in HIDDEN {
        hide(root, name, sources).trying_at(LaunchStep::Proc, &Bytes::from(name))?;
    }
    Ok(())
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
