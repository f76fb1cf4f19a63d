//! `file.write`: a whole new content, or none.
//!
//! The content goes into a file without a name (`O_TMPFILE`) in the folder that was judged, and gets its
//! name when it is complete: whoever looks sees the old file or the new one, and a call that dies leaves
//! nothing behind. Where the file system has no nameless files, one with a random name is used, and
//! removed unless it became the file.

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{
    AtFlags, CWD, Gid, Mode, OFlags, RenameFlags, Stat, Uid, fchmod, fchown, fstat, fstatvfs,
    linkat, openat, renameat, renameat_with, unlinkat,
};
use rustix::io::Errno;

use super::place::{self, Slot};
use super::{Files, errno};
use crate::broker::{Code, Refusal};

/// Permissions of a new file.
pub(super) const NEW_FILE: Mode = Mode::RUSR.union(Mode::WUSR).union(Mode::RGRP).union(Mode::ROTH);

/// Bytes between two looks at the free space.
const SPACE_STEP: u64 = 4 * 1024 * 1024;

/// A file that is being written.
#[derive(Debug)]
pub(in crate::broker) struct Draft {
    slot: Slot,
    temp: Temp,
    exclusive: bool,
    room: Room,
}

/// What may still be written.
#[derive(Debug)]
pub(super) struct Room {
    written: u64,
    /// Bytes of the file before the first one that is written.
    before: u64,
    checked: Option<u64>,
    file_size: u64,
    free_space: u64,
}

#[derive(Debug)]
struct Temp {
    file: File,
    /// The name that must be removed again.
    named: Option<(OwnedFd, String)>,
}

impl Files {
    /// Begins to write a file.
    pub(in crate::broker) fn write(&self, path: &str, exclusive: bool) -> Result<Draft, Refusal> {
        let named = self.named(path)?;
        self.may_write(named.lexical())?;
        let target = self.target(&named)?;
        self.may_write(&target.slot.relative)?;
        if let Some(existing) = &target.existing {
            place::demand_file(existing)?;
            if exclusive {
                return Err(errno::refusal("write", &existing.relative, Errno::EXIST));
            }
        }
        let slot = target.slot;
        self.may_fill(&slot)?;
        let failed = |error| errno::refusal("write", &slot.relative, error);
        let room = self.room(0);
        room.look(&slot.folder, &slot.relative)?;
        let temp = Temp::new(&slot).map_err(failed)?;
        if let Some(existing) = &target.existing {
            // Permissions are kept; the bits that lend rights are not.
            let mode = Mode::from_raw_mode(existing.stat.st_mode & 0o777);
            fchmod(&temp.file, mode).map_err(failed)?;
        }
        give(&temp.file, &slot, target.existing.as_ref().map(|found| &found.stat))
            .map_err(failed)?;
        Ok(Draft { slot, temp, exclusive, room })
    }

    /// What a file that has `before` bytes may still get.
    pub(super) fn room(&self, before: u64) -> Room {
        Room {
            written: 0,
            before,
            checked: None,
            file_size: self.limits.file_size,
            free_space: self.limits.free_space,
        }
    }

    /// Gives the draft its name.
    pub(in crate::broker) fn commit(&self, draft: Draft) -> Result<u64, Refusal> {
        let Draft { mut slot, mut temp, exclusive, room } = draft;
        // Bodies can be slow: the folder may have been moved since it was judged.
        slot.relative = place::joined(&self.place_of(&slot.folder, &slot.relative)?, &slot.name);
        self.may_write(&slot.relative)?;
        self.fill(&slot, "write", || temp.persist(&slot, exclusive))?;
        Ok(room.written)
    }
}

impl Draft {
    /// Where it will be below the workspace.
    pub(in crate::broker) fn relative(&self) -> &str {
        &self.slot.relative
    }

    /// Writes more.
    pub(in crate::broker) fn write(&mut self, bytes: &[u8]) -> Result<(), Refusal> {
        self.room.write(&mut self.temp.file, bytes, &self.slot.relative)
    }
}

impl Room {
    /// Writes as far as there is room.
    pub(super) fn write(
        &mut self,
        file: &mut File,
        bytes: &[u8],
        path: &str,
    ) -> Result<(), Refusal> {
        let size = self.before.saturating_add(self.written).saturating_add(bytes.len() as u64);
        if size > self.file_size {
            let message = format!("{path} would be larger than {} bytes", self.file_size);
            return Err(Refusal::new(Code::TooLarge, message)
                .at(path)
                .hint("raise `limits.file-size` in the policy"));
        }
        if self.checked.is_none_or(|at| self.written >= at + SPACE_STEP) {
            self.look(&*file, path)?;
            self.checked = Some(self.written);
        }
        file.write_all(bytes).map_err(|error| match error.raw_os_error() {
            Some(code) => errno::refusal("write", path, Errno::from_raw_os_error(code)),
            None => Refusal::new(Code::IoError, format!("cannot write {path}: {error}")).at(path),
        })?;
        self.written += bytes.len() as u64;
        Ok(())
    }

    /// Bytes that were written.
    pub(super) fn written(&self) -> u64 {
        self.written
    }

    /// Whether the disk has room to spare.
    pub(super) fn look(&self, on: impl AsFd, path: &str) -> Result<(), Refusal> {
        // A file system that cannot tell has no floor; writing to it still fails when it is full.
        let Ok(space) = fstatvfs(on) else { return Ok(()) };
        if space.f_bavail.saturating_mul(space.f_frsize) < self.free_space {
            let message = "the disk of the workspace has less free space than the policy keeps";
            return Err(Refusal::new(Code::NoSpace, message)
                .at(path)
                .hint("free some space, or lower `limits.free-space` in the policy"));
        }
        Ok(())
    }
}

/// A caller who is root writes in other people's folders: what is new belongs to whom the old file or the
/// folder belongs to.
pub(super) fn give(file: impl AsFd, slot: &Slot, existing: Option<&Stat>) -> Result<(), Errno> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let owner = match existing {
        Some(stat) => *stat,
        None => fstat(&slot.folder)?,
    };
    fchown(file, Some(Uid::from_raw(owner.st_uid)), Some(Gid::from_raw(owner.st_gid)))
}

impl Temp {
    fn new(slot: &Slot) -> Result<Self, Errno> {
        let flags = OFlags::WRONLY | OFlags::CLOEXEC;
        match openat(&slot.folder, ".", flags | OFlags::TMPFILE, NEW_FILE) {
            Ok(handle) => return Ok(Self { file: File::from(handle), named: None }),
            // What file systems without nameless files say.
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOENT | Errno::INVAL) => {}
            Err(error) => return Err(error),
        }
        let name = temp_name()?;
        let create = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let handle = openat(&slot.folder, &name, flags | create, NEW_FILE)?;
        let folder = rustix::io::fcntl_dupfd_cloexec(&slot.folder, 3)?;
        Ok(Self { file: File::from(handle), named: Some((folder, name)) })
    }

    fn persist(&mut self, slot: &Slot, exclusive: bool) -> Result<(), Errno> {
        if self.named.is_none() {
            let link = |name: &str| {
                let own = place::proc_path(&self.file);
                linkat(CWD, own, &slot.folder, name, AtFlags::SYMLINK_FOLLOW)
            };
            if exclusive {
                return link(&slot.name);
            }
            let name = temp_name()?;
            link(&name)?;
            self.named = Some((rustix::io::fcntl_dupfd_cloexec(&slot.folder, 3)?, name));
        }
        let Some((folder, name)) = &self.named else { return Ok(()) };
        if exclusive {
            renameat_with(folder, name, &slot.folder, &slot.name, RenameFlags::NOREPLACE)?;
        } else {
            renameat(folder, name, &slot.folder, &slot.name)?;
        }
        self.named = None;
        Ok(())
    }
}

impl Drop for Temp {
    fn drop(&mut self) {
        if let Some((folder, name)) = self.named.take() {
            let _ = unlinkat(&folder, &name, AtFlags::empty());
        }
    }
}

/// A name that nothing has.
fn temp_name() -> Result<String, Errno> {
    let random: [u8; 12] = crate::sys::random().map_err(|_| Errno::AGAIN)?;
    let digits: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!(".runner-temp-{digits}"))
}
