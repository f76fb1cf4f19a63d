//! Looking and restoring below a workspace.
//!
//! The same care as the broker's: every folder is opened from the workspace's own handle, beneath it, through no link;
//! names are used in that folder's handle alone; a content is complete before it has its name. What is never
//! writable for a tool is not written here either.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, RenameFlags, ResolveFlags, fchmod, fstat, mkdirat, openat, openat2,
    renameat, renameat_with, statat, symlinkat, unlinkat,
};
use rustix::io::Errno;

use super::backups::{Backups, is_digest};
use super::keep::{Change, Keep, NotKept, What};
use super::names::{decode, decode_os, encode_bytes};
use super::plan::{Act, Step};
use super::state::State;
use crate::workspace::Workspace;
use crate::workspace::protected::{Guard, guard};
use crate::workspace::temp::{Replace, Temp, give, proc_path, temp_name};

const FOLDER: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// A workspace in which something is restored.
#[derive(Debug)]
pub(crate) struct Site {
    root: OwnedFd,
    backups: Backups,
    writing: Writing,
}

/// Which paths are restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Writing {
    /// Those that a tool may write.
    AsTool,
    /// All that the call changed: a policy allowed each of them by name.
    AsCommand,
}

/// A name in a folder.
struct Slot<'p> {
    folder: OwnedFd,
    /// Encoded.
    name: &'p str,
    raw: OsString,
    path: &'p str,
}

impl Site {
    pub(crate) fn new(
        workspace: &Workspace,
        backups: Backups,
        writing: Writing,
    ) -> io::Result<Self> {
        let root = rustix::io::fcntl_dupfd_cloexec(workspace.handle(), 3)?;
        Ok(Self { root, backups, writing })
    }

    /// A folder beside a workspace that a command changed: the git folder of a linked worktree.
    pub(crate) fn beside(path: &Path, backups: Backups) -> io::Result<Self> {
        let root = openat2(CWD, path, FOLDER, Mode::empty(), ResolveFlags::NO_SYMLINKS)?;
        Ok(Self { root, backups, writing: Writing::AsCommand })
    }

    /// The whole tree that has a name.
    pub(super) fn look_tree(&self, path: &str) -> io::Result<State> {
        match self.slot(path) {
            Ok(slot) => Ok(State::tree(slot.folder.as_fd(), &slot.raw)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(State::Absent),
            Err(error) => Err(error),
        }
    }

    fn open_folder(&self, path: &str) -> io::Result<OwnedFd> {
        let path = if path.is_empty() { ".".into() } else { decode(path) };
        let resolve =
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        Ok(openat2(&self.root, &path, FOLDER, Mode::empty(), resolve)?)
    }

    /// What has a name, content and all. Below a folder that is not there is nothing.
    pub(super) fn look(&self, path: &str) -> io::Result<State> {
        match self.slot(path) {
            Ok(slot) => State::look(slot.folder.as_fd(), &slot.raw),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(State::Absent),
            Err(error) => Err(error),
        }
    }

    /// The names in a folder.
    pub(super) fn entries(&self, path: &str) -> io::Result<Vec<String>> {
        let folder = match self.open_folder(path) {
            Ok(folder) => folder,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::read_from(&folder)? {
            let name = encode_bytes(entry?.file_name().to_bytes());
            if !matches!(name.as_str(), "." | "..") {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn slot<'p>(&self, path: &'p str) -> io::Result<Slot<'p>> {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let guarded = self.writing == Writing::AsTool && guard(Path::new(path)) != Guard::Open;
        if name.is_empty() || matches!(name, "." | "..") || guarded {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        Ok(Slot { folder: self.open_folder(folder)?, name, raw: decode_os(name), path })
    }

    /// Does a step, after `keep` has seen what it takes away.
    pub(crate) fn take(&self, step: &Step, keep: &dyn Keep) -> io::Result<()> {
        let slot = self.slot(&step.path)?;
        // Since it was looked at.
        let now = State::glance(slot.folder.as_fd(), &*slot.raw)?;
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
            Act::RemoveTree { tree, image } => self.remove_tree(&slot, tree, image, keep),
            Act::RestoreTree { tree, image } => {
                let text = tree.text();
                let what = What::TreeBack { tree: &text };
                kept(&slot, what, keep, || {
                    self.backups.give_back(image, slot.folder.as_fd(), &slot.raw)
                })
            }
            Act::Restore { before: State::Folder { mode, .. }, .. }
                if matches!(now, State::Folder { .. }) =>
            {
                Self::set_mode(&slot, *mode, keep)
            }
            Act::Restore { before: State::Absent, .. } => Self::remove(&slot, &now, keep),
            Act::Restore { before: State::Folder { mode, .. }, .. } => {
                Self::make(&slot, *mode, keep)
            }
            Act::Restore { before: State::Link { target }, .. } => Self::link(&slot, target, keep),
            Act::Restore { before: State::File { mode, digest, size, .. }, backup } => {
                let backup = backup.as_ref().or(digest.as_ref()).ok_or(Errno::NOENT)?;
                self.write(&slot, (*mode, *size), backup, keep)
            }
            Act::Restore { before: State::Other | State::Tree { .. }, .. } => {
                Err(io::ErrorKind::Unsupported.into())
            }
        }
    }

    fn move_back(&self, slot: &Slot<'_>, to: &str, keep: &dyn Keep) -> io::Result<()> {
        let goal = self.slot(to)?;
        let what = What::Moved { to, folder: goal.folder.as_fd(), name: goal.name };
        kept(slot, what, keep, || {
            let flags = RenameFlags::NOREPLACE;
            Ok(renameat_with(&slot.folder, &slot.raw, &goal.folder, &goal.raw, flags)?)
        })
    }

    /// Moves a whole tree away, if it is still what was looked at. It is kept, so that this can be undone.
    fn remove_tree(
        &self,
        slot: &Slot<'_>,
        tree: &State,
        image: &str,
        keep: &dyn Keep,
    ) -> io::Result<()> {
        if !State::tree(slot.folder.as_fd(), &slot.raw)?.is(tree) {
            return Err(io::Error::other("it changed at this moment"));
        }
        let size = match tree {
            State::Tree { bytes, .. } => *bytes,
            _ => 0,
        };
        let text = tree.text();
        let what = What::TreeGone { tree: &text, image, size };
        kept(slot, what, keep, || self.backups.adopt(slot.folder.as_fd(), &slot.raw, image))
    }

    fn set_mode(slot: &Slot<'_>, mode: u32, keep: &dyn Keep) -> io::Result<()> {
        let mode = Mode::from_raw_mode(mode & 0o3777);
        kept(slot, What::Mode { mode: mode.bits() }, keep, || {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let folder = openat(&slot.folder, &slot.raw, flags, Mode::empty())?;
            Ok(rustix::fs::chmod(proc_path(&folder), mode)?)
        })
    }

    fn remove(slot: &Slot<'_>, now: &State, keep: &dyn Keep) -> io::Result<()> {
        let flags = match now {
            State::Folder { .. } => AtFlags::REMOVEDIR,
            _ => AtFlags::empty(),
        };
        kept(slot, What::Gone, keep, || match unlinkat(&slot.folder, &slot.raw, flags) {
            // Another process has put a file into it, which stays.
            Err(Errno::NOTEMPTY | Errno::EXIST) => Err(io::Error::other("the folder is not empty")),
            other => Ok(other?),
        })
    }

    fn make(slot: &Slot<'_>, mode: u32, keep: &dyn Keep) -> io::Result<()> {
        let mode = Mode::from_raw_mode(mode & 0o777);
        kept(slot, What::Made { mode: mode.bits() }, keep, || {
            mkdirat(&slot.folder, &slot.raw, Mode::RWXU)?;
            let flags = rustix::fs::OFlags::RDONLY
                | rustix::fs::OFlags::DIRECTORY
                | rustix::fs::OFlags::NOFOLLOW
                | rustix::fs::OFlags::CLOEXEC;
            let made = openat(&slot.folder, &slot.raw, flags, Mode::empty())?;
            fchmod(&made, mode)?;
            Ok(give(&made, &slot.folder, None)?)
        })
    }

    fn link(slot: &Slot<'_>, target: &str, keep: &dyn Keep) -> io::Result<()> {
        kept(slot, What::Linked { target }, keep, || {
            let name = temp_name()?;
            symlinkat(decode_os(target), &slot.folder, &name)?;
            let renamed = renameat(&slot.folder, &name, &slot.folder, &slot.raw);
            if renamed.is_err() {
                let _ = unlinkat(&slot.folder, &name, AtFlags::empty());
            }
            Ok(renamed?)
        })
    }

    fn write(
        &self,
        slot: &Slot<'_>,
        (mode, length): (u32, u64),
        backup: &str,
        keep: &dyn Keep,
    ) -> io::Result<()> {
        let mut content = self.backups.read(backup)?;
        let mut temp = Temp::new(slot.folder.as_fd())?;
        let size = io::copy(&mut content, temp.file())?;
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(File::open(proc_path(&*temp.file()))?)?;
        let digest = hasher.finalize();
        // An image was never read; its length is all that is known of its content.
        let same = match is_digest(backup) {
            true => digest.to_hex().as_str() == backup,
            false => size == length,
        };
        if !same {
            return Err(io::Error::other("the backup is not what was kept"));
        }
        // Permissions come back; the bits that lend rights do not.
        let mode = Mode::from_raw_mode(mode & 0o777);
        let existing = statat(&slot.folder, &slot.raw, AtFlags::SYMLINK_NOFOLLOW).ok();
        give(temp.file(), &slot.folder, existing.as_ref())?;
        fchmod(temp.file(), mode)?;
        let mode = fstat(temp.file())?.st_mode & 0o7777;
        let what = What::Put { digest, size, mode };
        kept(slot, what, keep, || {
            if let Some(name) = slot.raw.to_str() {
                return Ok(temp.persist(slot.folder.as_fd(), name, Replace::Yes)?);
            }
            // The other names come through one that is text.
            let name = temp_name()?;
            temp.persist(slot.folder.as_fd(), &name, Replace::No)?;
            Ok(renameat(&slot.folder, &name, &slot.folder, &slot.raw)?)
        })
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
