//! Does one operation of a journal, or takes it back.
//!
//! Every operation looks first whether it has happened already, and does nothing then. What stands under
//! a name is compared with what the journal says before and after a rename; where it is something else,
//! the rename is taken back and the operation is skipped as a conflict.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, RenameFlags, Stat, fchmod, fstat, mkdirat, openat,
    renameat_with, unlinkat,
};
use rustix::io::Errno;

use super::super::conflict::{open_file, same_content};
use super::super::folder::{Stage, StageError};
use super::super::handles::{self, Parents, Side, facts, identity, stat};
use super::super::journal::{Act, Old, Operation, Way};
use crate::ids::{CallId, Identity};
use crate::undo::names::decode;
use crate::workspace::temp::give;

/// What came of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::stage) enum Outcome {
    Done,
    /// The host has something else there.
    Skipped(String),
}

/// The handles of one root.
#[derive(Debug)]
pub(in crate::stage) struct RootHandles {
    pub host: OwnedFd,
    pub upper: OwnedFd,
    pub old: OwnedFd,
}

/// Does operations.
#[derive(Debug)]
pub(in crate::stage) struct Actor {
    pub roots: Vec<RootHandles>,
    label: CallId,
    ways: Vec<Way>,
    host: Parents,
    staged: Parents,
}

/// A name in a folder.
pub(super) struct Slot {
    pub folder: OwnedFd,
    pub name: OsString,
}

impl Slot {
    pub(super) fn at(&self) -> BorrowedFd<'_> {
        self.folder.as_fd()
    }

    fn stat(&self) -> Result<Option<Stat>, Errno> {
        stat(&self.folder, &self.name)
    }

    /// Whether this object has the name.
    pub(super) fn is(&self, wanted: Identity) -> Result<bool, Errno> {
        Ok(self.stat()?.is_some_and(|found| identity(&found) == wanted))
    }

    fn rename(&self, to: &Self, flags: RenameFlags) -> Result<(), Errno> {
        renameat_with(&self.folder, &self.name, &to.folder, &to.name, flags)
    }
}

/// Opens the folders of all roots of a stage.
pub(in crate::stage) fn open_roots(stage: &Stage) -> Result<Vec<RootHandles>, StageError> {
    let mut opened = Vec::new();
    for (index, root) in stage.roots().iter().enumerate() {
        let failed = |error: Errno| StageError::Io("open", stage.upper(index), error.into());
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let own = rustix::fs::open(stage.folder().join(index.to_string()), flags, Mode::empty());
        let own = own.map_err(failed)?;
        let upper = handles::open_own(&own, Path::new("upper")).map_err(failed)?;
        let old = handles::own_folder(&own, "old").map_err(failed)?;
        opened.push(RootHandles { host: root.open()?, upper, old });
    }
    Ok(opened)
}

impl Actor {
    pub(in crate::stage) fn new(roots: Vec<RootHandles>, label: &CallId, ways: Vec<Way>) -> Self {
        let (host, staged) = (Parents::default(), Parents::default());
        Self { roots, label: label.clone(), ways, host, staged }
    }

    pub(super) fn way(&self, operation: &Operation) -> Way {
        self.ways.get(operation.root).copied().unwrap_or(Way::Copy)
    }

    /// The name of the host.
    pub(super) fn target(&mut self, operation: &Operation) -> Result<Slot, Errno> {
        let path = operation.path();
        let (folder, name) = handles::split(&path).ok_or(Errno::INVAL)?;
        let root = self.roots[operation.root].host.as_fd();
        let folder = own(self.host.open(root, folder, Side::Host)?)?;
        Ok(Slot { folder, name: name.to_owned() })
    }

    /// The name in the stage's upper folder.
    pub(super) fn staged(&mut self, operation: &Operation) -> Result<Slot, Errno> {
        let path = operation.path();
        let (folder, name) = handles::split(&path).ok_or(Errno::INVAL)?;
        let root = self.roots[operation.root].upper.as_fd();
        let folder = own(self.staged.open(root, folder, Side::Stage)?)?;
        Ok(Slot { folder, name: name.to_owned() })
    }

    /// Where a copy waits.
    pub(super) fn beside(&self, operation: &Operation, index: usize) -> Result<Slot, Errno> {
        let folder = decode(operation.beside.as_deref().unwrap_or_default());
        let folder = handles::open_folder(&self.roots[operation.root].host, &folder)?;
        Ok(Slot { folder, name: self.temporary(index) })
    }

    /// What is exchanged with the target: the staged file, or its copy.
    pub(super) fn source(&mut self, operation: &Operation, index: usize) -> Result<Slot, Errno> {
        match self.way(operation) {
            Way::Rename => self.staged(operation),
            Way::Copy => self.beside(operation, index),
        }
    }

    /// Where something that is removed goes first.
    pub(super) fn removed(&self, operation: &Operation, index: usize) -> Result<Slot, Errno> {
        match self.way(operation) {
            Way::Rename => {
                let folder = own(self.roots[operation.root].old.as_fd())?;
                Ok(Slot { folder, name: OsString::from(index.to_string()) })
            }
            Way::Copy => self.beside(operation, index),
        }
    }

    /// A temporary name that the same operation always has.
    fn temporary(&self, index: usize) -> OsString {
        let digest = blake3::hash(format!("{}/{index}", self.label).as_bytes());
        OsString::from(format!(".runner-temp-{}", &digest.to_hex()[..24]))
    }

    /// Does an operation, unless it has happened.
    pub(in crate::stage) fn act(
        &mut self,
        operation: &Operation,
        index: usize,
    ) -> io::Result<Outcome> {
        match self.try_act(operation, index) {
            Ok(outcome) => Ok(outcome),
            Err(error) => match as_conflict(error) {
                Some(reason) => Ok(Outcome::Skipped(reason)),
                None => Err(error.into()),
            },
        }
    }

    fn try_act(&mut self, operation: &Operation, index: usize) -> Result<Outcome, Errno> {
        let target = self.target(operation)?;
        match (operation.act, &operation.old) {
            (Act::Remove, Some(old)) => {
                let aside = self.removed(operation, index)?;
                remove(&target, &aside, old)
            }
            (Act::RemoveFolder, Some(old)) => remove_folder(&target, old),
            (Act::Make { mode }, _) => make(&target, mode),
            (Act::Mode { mode }, _) => set_mode(&target, mode),
            (Act::Put { staged, .. }, Some(old)) => {
                let way = self.way(operation);
                let source = self.source(operation, index)?;
                replace(&target, &source, (way == Way::Rename).then_some(staged), old)
            }
            (Act::Put { staged, .. }, None) => {
                let way = self.way(operation);
                let source = self.source(operation, index)?;
                add(&target, &source, (way == Way::Rename).then_some(staged))
            }
            (Act::Tree { staged, .. }, _) => {
                let source = self.source(operation, index)?;
                add(&target, &source, Some(staged))
            }
            (Act::Remove | Act::RemoveFolder, None) => Err(Errno::INVAL),
        }
    }

    /// Takes an operation back if it has happened. What somebody else has changed since stays.
    pub(in crate::stage) fn take_back(
        &mut self,
        operation: &Operation,
        index: usize,
    ) -> io::Result<()> {
        let target = match self.target(operation) {
            // Nothing happened where there is no folder.
            Err(error) if as_conflict(error).is_some() => return Ok(()),
            target => target?,
        };
        let taken = match (operation.act, &operation.old) {
            (Act::Remove, Some(old)) => {
                let aside = self.removed(operation, index)?;
                match aside.is(old.identity)? {
                    true => aside.rename(&target, RenameFlags::NOREPLACE),
                    false => Ok(()),
                }
            }
            (Act::RemoveFolder, Some(old)) => match target.stat()? {
                None => make(&target, old.mode).and_then(|_| set_mode(&target, old.mode)).map(drop),
                Some(_) => Ok(()),
            },
            (Act::Make { .. }, _) => {
                let _ = unlinkat(&target.folder, &target.name, AtFlags::REMOVEDIR);
                Ok(())
            }
            (Act::Mode { .. }, Some(old)) => set_mode(&target, old.mode).map(drop),
            (Act::Put { staged, .. } | Act::Tree { staged, .. }, old) => {
                let source = self.source(operation, index)?;
                let ours = match self.way(operation) {
                    Way::Rename => target.is(staged)?,
                    Way::Copy => {
                        let kept = self.staged(operation)?;
                        is_copy(&target, &kept)?
                    }
                };
                let taken_out = match old {
                    Some(old) => source.is(old.identity)?,
                    None => source.stat()?.is_none(),
                };
                match (ours && taken_out, old) {
                    (true, Some(_)) => source.rename(&target, RenameFlags::EXCHANGE),
                    (true, None) => target.rename(&source, RenameFlags::NOREPLACE),
                    (false, _) => Ok(()),
                }
            }
            (Act::Remove | Act::RemoveFolder | Act::Mode { .. }, None) => Ok(()),
        };
        match taken {
            // Somebody uses the name by now: theirs stays, ours is in the stage.
            Err(Errno::EXIST | Errno::NOTEMPTY) => Ok(()),
            taken => Ok(taken?),
        }
    }
}

fn own(handle: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    rustix::io::fcntl_dupfd_cloexec(handle, 3)
}

/// Errors that say that the host's tree is not what it was, or not the caller's to change.
fn as_conflict(error: Errno) -> Option<String> {
    let reason = match error {
        Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV => {
            "a folder on the way is gone, or a symlink or a mount stands in its place"
        }
        Errno::EXIST => "the host made something of that name",
        Errno::ACCESS | Errno::PERM => "the caller may not write there",
        _ => return None,
    };
    Some(reason.to_owned())
}

fn skipped(reason: &str) -> Result<Outcome, Errno> {
    Ok(Outcome::Skipped(reason.to_owned()))
}

fn remove(target: &Slot, aside: &Slot, old: &Old) -> Result<Outcome, Errno> {
    let Some(now) = target.stat()? else { return Ok(Outcome::Done) };
    if !old.is_untouched(&facts(&now)) {
        // It happened before, and the host has used the name again since.
        return match aside.is(old.identity)? {
            true => Ok(Outcome::Done),
            false => skipped("the host changed it"),
        };
    }
    target.rename(aside, RenameFlags::NOREPLACE)?;
    match aside.stat()? {
        Some(out) if old.is_moved(&facts(&out)) => Ok(Outcome::Done),
        _ => {
            aside.rename(target, RenameFlags::NOREPLACE)?;
            skipped("the host changed it at this moment")
        }
    }
}

fn remove_folder(target: &Slot, old: &Old) -> Result<Outcome, Errno> {
    let Some(now) = target.stat()? else { return Ok(Outcome::Done) };
    if identity(&now) != old.identity {
        return skipped("the host replaced the folder");
    }
    match unlinkat(&target.folder, &target.name, AtFlags::REMOVEDIR) {
        Err(Errno::NOTEMPTY | Errno::EXIST) => skipped("something in the folder stays"),
        removed => removed.map(|()| Outcome::Done),
    }
}

/// Makes a folder that its owner can fill; a later operation closes it if it must be closed.
fn make(target: &Slot, mode: u32) -> Result<Outcome, Errno> {
    if let Some(found) = target.stat()? {
        return match FileType::from_raw_mode(found.st_mode) {
            FileType::Directory => Ok(Outcome::Done),
            _ => skipped("the host made something of that name"),
        };
    }
    mkdirat(&target.folder, &target.name, Mode::RWXU)?;
    let made = open_dir(target)?;
    // Setgid is inherited from the folder above; chown would take it away.
    give(&made, &target.folder, None)?;
    let inherited = fstat(&target.folder)?.st_mode & 0o2000;
    fchmod(&made, Mode::from_raw_mode((mode & 0o1777) | 0o700 | inherited))?;
    Ok(Outcome::Done)
}

fn set_mode(target: &Slot, mode: u32) -> Result<Outcome, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = openat(&target.folder, &target.name, flags, Mode::empty())?;
    let setgid = fstat(&folder)?.st_mode & 0o2000;
    let mode = Mode::from_raw_mode((mode & 0o1777) | setgid);
    rustix::fs::chmod(crate::workspace::temp::proc_path(&folder), mode)?;
    Ok(Outcome::Done)
}

fn open_dir(target: &Slot) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(&target.folder, &target.name, flags, Mode::empty())
}

/// Exchanges a file or symlink with what has its name.
fn replace(
    target: &Slot,
    source: &Slot,
    staged: Option<Identity>,
    old: &Old,
) -> Result<Outcome, Errno> {
    let Some(waiting) = source.stat()? else {
        // It happened, and was tidied up.
        return Ok(Outcome::Done);
    };
    if identity(&waiting) == old.identity {
        return Ok(Outcome::Done);
    }
    if staged.is_some_and(|staged| identity(&waiting) != staged) {
        return skipped("the stage does not hold it any more");
    }
    let Some(now) = target.stat()? else { return skipped("the host removed it") };
    if !old.is_untouched(&facts(&now)) {
        return skipped("the host changed it");
    }
    source.rename(target, RenameFlags::EXCHANGE)?;
    match source.stat()? {
        Some(out) if old.is_moved(&facts(&out)) => Ok(Outcome::Done),
        _ => {
            source.rename(target, RenameFlags::EXCHANGE)?;
            skipped("the host changed it at this moment")
        }
    }
}

/// Gives something its name, which nothing has.
fn add(target: &Slot, source: &Slot, staged: Option<Identity>) -> Result<Outcome, Errno> {
    let Some(waiting) = source.stat()? else { return Ok(Outcome::Done) };
    if staged.is_some_and(|staged| identity(&waiting) != staged) {
        return skipped("the stage does not hold it any more");
    }
    source.rename(target, RenameFlags::NOREPLACE)?;
    Ok(Outcome::Done)
}

/// Whether a name of the host has the same content as a staged one.
fn is_copy(target: &Slot, kept: &Slot) -> Result<bool, Errno> {
    let (Some(one), Some(other)) = (target.stat()?, kept.stat()?) else { return Ok(false) };
    let kind = FileType::from_raw_mode(one.st_mode);
    if kind != FileType::from_raw_mode(other.st_mode) {
        return Ok(false);
    }
    Ok(match kind {
        FileType::Symlink => {
            handles::target(&target.folder, &target.name)?
                == handles::target(&kept.folder, &kept.name)?
        }
        FileType::RegularFile => {
            let open = |slot: &Slot| open_file(&slot.folder, &slot.name);
            let same = || same_content(&open(target)?, &open(kept)?);
            same().unwrap_or(false)
        }
        _ => false,
    })
}
