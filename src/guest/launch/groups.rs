//! The control groups of a sandbox: made before its first process, removed after its last.
//!
//! The launcher does both, so that they go also when runner is killed. It holds a lock in each folder while it
//! lives: a folder without a lock is left over, and the next sweep of runner removes it.

use super::failure::{Failed, Trying};
use super::kernel;
use runner_wire::{Bytes, GROUP_LOCK, Group, Join, LaunchStep, Scope};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::time::Duration;

/// How often a folder is made anew that a sweep removed before it was locked.
const TRIES: usize = 3;

/// How often a lock is tried that is not free. A sweep holds it for a moment; every user of the host could hold it for ever.
const LOCK_TRIES: u32 = 50;

/// Time between two of these.
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// The group in a scope that has the launcher itself.
const LEAF: &str = "launcher";

/// Makes a scope fit for groups in it: a group of version 2 with processes of its own can have none with controllers.
/// systemd removes it all when the last process has gone.
pub fn divide(scope: &Scope) -> Result<(), Failed> {
    let folder = Path::new(scope.folder.as_os());
    let leaf = folder.join(LEAF);
    std::fs::DirBuilder::new()
        .mode(0o755)
        .create(&leaf)
        .and_then(|()| set(&leaf.join("cgroup.procs"), "0"))
        .trying_at(LaunchStep::Group, &Bytes::from(leaf.as_os_str()))?;
    let control = folder.join("cgroup.subtree_control");
    let wanted: Vec<String> = scope.controllers.iter().map(|name| format!("+{name}")).collect();
    set(&control, &wanted.join(" ")).trying_at(LaunchStep::Group, &Bytes::from(control.as_os_str()))
}
/// The file of a group of version 1 through which a thread moves itself. Moving a process, through `cgroup.procs`, waits
/// until no thread of the machine is about to start or end, which takes 10 ms and more; moving a single thread does not
/// (since Linux 5.5).
const THREADS: &str = "tasks";

/// Groups that were made. They are removed when this goes; none of their processes may be alive then.
#[derive(Default)]
pub struct Groups(Vec<Made>);

struct Made {
    folder: Bytes,
    join: Join,
    /// The folder itself.
    handle: File,
    _lock: File,
}

impl Groups {
    /// Makes every group and sets its limits.
    pub fn make(groups: &[Group]) -> Result<Self, Failed> {
        let mut made = Self::default();
        for group in groups {
            let one = make_one(group).trying_at(LaunchStep::Group, &group.folder)?;
            made.0.push(one);
            for file in &group.files {
                let path = Path::new(group.folder.as_os()).join(&file.name);
                match set(&path, &file.value) {
                    Err(error) if file.optional && error.kind() == io::ErrorKind::NotFound => {}
                    written => {
                        written.trying_at(LaunchStep::Group, &Bytes::from(path.as_os_str()))?;
                    }
                }
            }
        }
        Ok(made)
    }

    /// The group in which the first process is made, if it is made in one.
    pub fn birthplace(&self) -> Option<BorrowedFd<'_>> {
        self.0.iter().find(|made| made.join == Join::Birth).map(|made| made.handle.as_fd())
    }

    /// Moves this process, which has one thread, into every group that it was not made in.
    pub fn join(&self) -> Result<(), Failed> {
        for made in self.0.iter().filter(|made| made.join == Join::Move) {
            let file = Path::new(made.folder.as_os()).join(THREADS);
            set(&file, "0").trying_at(LaunchStep::Group, &made.folder)?;
        }
        Ok(())
    }

    /// Leaves them to the process that made them.
    pub fn leave_to_the_launcher(self) {
        std::mem::forget(self);
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        for made in self.0.drain(..) {
            // What cannot be removed is by the next sweep.
            let _ = std::fs::remove_dir(made.folder.as_os());
        }
    }
}

/// Writes a value into a file that the kernel made: one that is not there is not made.
fn set(file: &Path, value: &str) -> io::Result<()> {
    File::options().write(true).open(file)?.write_all(value.as_bytes())
}

/// Makes the folder and locks it. A sweep may remove it in the moment between.
fn make_one(group: &Group) -> io::Result<Made> {
    let folder = group.folder.as_os();
    for _ in 0..TRIES {
        // Other users of the host may look into it, and no more, whatever the umask is.
        std::fs::DirBuilder::new().mode(0o755).create(folder)?;
        let lock = Path::new(folder).join(GROUP_LOCK);
        let locked = File::open(&lock).and_then(|file| {
            lock_soon(&file)?;
            let handle = File::open(folder)?;
            kernel::is_at(&file, &lock).then_some((handle, file)).ok_or_else(gone)
        });
        match locked {
            Ok((handle, _lock)) => {
                return Ok(Made { folder: group.folder.clone(), join: group.join, handle, _lock });
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                let _ = std::fs::remove_dir(folder);
                return Err(error);
            }
        }
    }
    Err(gone())
}

fn lock_soon(file: &File) -> io::Result<()> {
    for _ in 0..LOCK_TRIES {
        match kernel::lock(file.as_fd()) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                std::thread::sleep(LOCK_PAUSE);
            }
            locked => return locked,
        }
    }
    kernel::lock(file.as_fd())
}

fn gone() -> io::Error {
    io::ErrorKind::NotFound.into()
}
