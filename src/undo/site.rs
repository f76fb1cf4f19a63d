//! Looking and restoring below a workspace.
//!
//! The same care as the broker's: every folder is opened from the workspace's own handle, beneath it, through no link;
//! names are used in that folder's handle alone; a content is complete before it has its name. What is never
//! writable for a tool is not written here either.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{
    AtFlags, Mode, RenameFlags, fchmod, fstat, mkdirat, openat, renameat, renameat_with, statat,
    symlinkat, unlinkat,
};
use rustix::io::Errno;

use super::backups::Backups;
use super::keep::{Change, Keep, NotKept, What};
use super::plan::{Act, Step};
use super::state::State;
use crate::workspace::Workspace;
use crate::workspace::protected::{Guard, guard};
use crate::workspace::temp::{Replace, Temp, give, proc_path, temp_name};

/// A workspace in which something is restored.
#[derive(Debug)]
pub(crate) struct Site {
    workspace: Workspace,
    backups: Backups,
}

/// A name in a folder.
struct Slot<'p> {
    folder: OwnedFd,
    name: &'p str,
    path: &'p str,
}

impl Site {
    pub(crate) fn new(workspace: Workspace, backups: Backups) -> Self {
        Self { workspace, backups }
    }

    /// What has a name, content and all. Below a folder that is not there is nothing.
    pub(super) fn look(&self, path: &str) -> io::Result<State> {
        match self.slot(path) {
            Ok(slot) => State::look(slot.folder.as_fd(), slot.name),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(State::Absent),
            Err(error) => Err(error),
        }
    }

    /// The names in a folder.
    pub(super) fn entries(&self, path: &str) -> io::Result<Vec<String>> {
        let folder = match self.workspace.open_folder(Path::new(path)) {
            Ok(folder) => folder,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::read_from(&folder)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if !matches!(name.as_str(), "." | "..") {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn slot<'p>(&self, path: &'p str) -> io::Result<Slot<'p>> {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        if name.is_empty() || matches!(name, "." | "..") || guard(Path::new(path)) != Guard::Open {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        Ok(Slot { folder: self.workspace.open_folder(Path::new(folder))?, name, path })
    }

    /// Does a step, after `keep` has seen what it takes away.
    pub(crate) fn take(&self, step: &Step, keep: &dyn Keep) -> io::Result<()> {
        let slot = self.slot(&step.path)?;
        // Since it was looked at.
        let now = State::glance(slot.folder.as_fd(), slot.name)?;
        let same = match (&now, step.seen) {
            (_, None) => true,
            // Earlier steps may have put something into a folder.
            (State::Folder { stamp: Some(stamp), .. }, Some(seen)) => stamp.is_same_object(&seen),
            (_, seen) => now.stamp() == seen,
        };
        if !same {
            return Err(io::Error::other("it changed at this moment"));
        }
        match &step.act {
            Act::MoveBack { to } => self.move_back(&slot, to, keep),
            Act::Restore { before: State::Absent, .. } => Self::remove(&slot, &now, keep),
            Act::Restore { before: State::Folder { mode, .. }, .. } => {
                Self::make(&slot, *mode, keep)
            }
            Act::Restore { before: State::Link { target }, .. } => Self::link(&slot, target, keep),
            Act::Restore { before: State::File { mode, digest, .. }, backup } => {
                let backup = backup.as_ref().or(digest.as_ref()).ok_or(Errno::NOENT)?;
                self.write(&slot, *mode, backup, keep)
            }
            Act::Restore { before: State::Other, .. } => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    fn move_back(&self, slot: &Slot<'_>, to: &str, keep: &dyn Keep) -> io::Result<()> {
        let goal = self.slot(to)?;
        let what = What::Moved { to, folder: goal.folder.as_fd(), name: goal.name };
        kept(slot, what, keep, || {
            let flags = RenameFlags::NOREPLACE;
            Ok(renameat_with(&slot.folder, slot.name, &goal.folder, goal.name, flags)?)
        })
    }

    fn remove(slot: &Slot<'_>, now: &State, keep: &dyn Keep) -> io::Result<()> {
        let flags = match now {
            State::Folder { .. } => AtFlags::REMOVEDIR,
            _ => AtFlags::empty(),
        };
        kept(slot, What::Gone, keep, || match unlinkat(&slot.folder, slot.name, flags) {
            // Somebody has put something into it, which stays.
            Err(Errno::NOTEMPTY | Errno::EXIST) => Err(io::Error::other("the folder is not empty")),
            other => Ok(other?),
        })
    }

    fn make(slot: &Slot<'_>, mode: u32, keep: &dyn Keep) -> io::Result<()> {
        let mode = Mode::from_raw_mode(mode & 0o777);
        kept(slot, What::Made { mode: mode.bits() }, keep, || {
            mkdirat(&slot.folder, slot.name, Mode::RWXU)?;
            let flags = rustix::fs::OFlags::RDONLY
                | rustix::fs::OFlags::DIRECTORY
                | rustix::fs::OFlags::NOFOLLOW
                | rustix::fs::OFlags::CLOEXEC;
            let made = openat(&slot.folder, slot.name, flags, Mode::empty())?;
            fchmod(&made, mode)?;
            Ok(give(&made, &slot.folder, None)?)
        })
    }

    fn link(slot: &Slot<'_>, target: &str, keep: &dyn Keep) -> io::Result<()> {
        kept(slot, What::Linked { target }, keep, || {
            let name = temp_name()?;
            symlinkat(target, &slot.folder, &name)?;
            let renamed = renameat(&slot.folder, &name, &slot.folder, slot.name);
            if renamed.is_err() {
                let _ = unlinkat(&slot.folder, &name, AtFlags::empty());
            }
            Ok(renamed?)
        })
    }

    fn write(&self, slot: &Slot<'_>, mode: u32, backup: &str, keep: &dyn Keep) -> io::Result<()> {
        let mut content = self.backups.read(backup)?;
        let mut temp = Temp::new(slot.folder.as_fd())?;
        let size = io::copy(&mut content, temp.file())?;
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(File::open(proc_path(&*temp.file()))?)?;
        let digest = hasher.finalize();
        if digest.to_hex().as_str() != backup {
            return Err(io::Error::other("the backup is not what was kept"));
        }
        // Permissions come back; the bits that lend rights do not.
        let mode = Mode::from_raw_mode(mode & 0o777);
        let existing = statat(&slot.folder, slot.name, AtFlags::SYMLINK_NOFOLLOW).ok();
        give(temp.file(), &slot.folder, existing.as_ref())?;
        fchmod(temp.file(), mode)?;
        let mode = fstat(temp.file())?.st_mode & 0o7777;
        let what = What::Put { digest, size, mode };
        kept(slot, what, keep, || Ok(temp.persist(slot.folder.as_fd(), slot.name, Replace::Yes)?))
    }
}

/// Keeps what a change takes away, makes it, and notes what is there then.
fn kept(
    slot: &Slot<'_>,
    what: What<'_>,
    keep: &dyn Keep,
    act: impl FnOnce() -> io::Result<()>,
) -> io::Result<()> {
    let change = Change { what, path: slot.path, folder: slot.folder.as_fd(), name: slot.name };
    keep.before(&[change]).map_err(|NotKept(why)| io::Error::other(why))?;
    act()?;
    keep.after(&change);
    Ok(())
}
