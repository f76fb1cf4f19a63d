//! `file.write`: a whole new content, or none.
//!
//! The content goes into a file without a name (`O_TMPFILE`) in the folder that was judged, and gets its
//! name when it is complete: whoever looks sees the old file or the new one, and a call that dies leaves
//! nothing behind. Where the file system has no nameless files, one with a random name is used, and
//! removed unless it became the file.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;

use rustix::fs::{Mode, fchmod, fstat, fstatvfs};
use rustix::io::Errno;

use super::place::{self, Slot};
use super::{Files, errno};
use crate::broker::Refusal;
use crate::codes::Code;
use crate::undo::{Change, What};
use crate::workspace::temp::{Replace, Temp, give};

/// Bytes between two looks at the free space.
const SPACE_STEP: u64 = 4 * 1024 * 1024;

/// A file that is being written.
#[derive(Debug)]
pub(in crate::broker) struct Draft {
    slot: Slot,
    temp: Temp,
    exclusive: bool,
    /// Whether nothing had the name.
    new: bool,
    room: Room,
    hasher: blake3::Hasher,
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
        let mut temp = Temp::new(slot.folder.as_fd()).map_err(failed)?;
        if let Some(existing) = &target.existing {
            // Permissions are kept; the bits that lend rights are not.
            let mode = Mode::from_raw_mode(existing.stat.st_mode & 0o777);
            fchmod(temp.file(), mode).map_err(failed)?;
        }
        give(temp.file(), &slot.folder, target.existing.as_ref().map(|found| &found.stat))
            .map_err(failed)?;
        let new = target.existing.is_none();
        Ok(Draft { slot, temp, exclusive, new, room, hasher: blake3::Hasher::new() })
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
        let Draft { mut slot, mut temp, exclusive, new, room, hasher } = draft;
        let turn = self.turn()?;
        // Bodies can be slow: the folder may have been moved since it was judged.
        slot.relative = place::joined(&self.place_of(&slot.folder, &slot.relative)?, &slot.name);
        self.may_write(&slot.relative)?;
        let mode = fstat(temp.file())
            .map_err(|error| errno::refusal("write", &slot.relative, error))?
            .st_mode
            & 0o7777;
        let change = Change {
            what: What::Put { digest: hasher.finalize(), size: room.written, mode },
            path: &slot.relative,
            folder: slot.folder.as_fd(),
            name: &slot.name,
        };
        self.kept(&[change])?;
        let replace = if exclusive { Replace::No } else { Replace::Yes };
        self.fill(&turn, &slot, "write", || {
            temp.persist(slot.folder.as_fd(), &slot.name, replace)
        })?;
        self.keep.after(&change);
        if new {
            self.made.add(&slot.relative);
        }
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
        self.hasher.update(bytes);
        self.room.write(self.temp.file(), bytes, &self.slot.relative)
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
