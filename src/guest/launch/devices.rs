//! `/dev`: the devices that every program may expect, and a terminal of its own.

use super::failure::{Failed, Trying};
use super::kernel::Mounted;
use super::open::Handle;
use super::root::Root;
use runner_wire::{Bytes, LaunchStep};

/// Where programs look for their own descriptors, and for terminals.
const LINKS: [(&str, &str); 5] = [
    ("/proc/self/fd", "dev/fd"),
    ("/proc/self/fd/0", "dev/stdin"),
    ("/proc/self/fd/1", "dev/stdout"),
    ("/proc/self/fd/2", "dev/stderr"),
    ("pts/ptmx", "dev/ptmx"),
];

/// Makes it. It is closed for writing when all mount points in it are made.
pub fn make(root: &Root, devices: &[(&'static str, Handle)]) -> Result<(), Failed> {
    let step = LaunchStep::Devices;
    let flags = libc::MS_NOSUID | libc::MS_NOEXEC;
    let size = "size=64k,nr_inodes=64,mode=755";
    root.mount_new("tmpfs", "dev", flags, size).trying_at(step, &Bytes::from("/dev"))?;
    for (name, handle) in devices {
        let target = Bytes::from(format!("/dev/{name}").as_str());
        root.bind(handle, &target, Mounted::Device).trying_at(step, &target)?;
    }
    for (to, link) in LINKS {
        root.symlink(to, link).trying_at(step, &Bytes::from(link))?;
    }
    root.mount_new("devpts", "dev/pts", flags, "newinstance,ptmxmode=0666,mode=0620")
        .trying_at(step, &Bytes::from("/dev/pts"))
}
