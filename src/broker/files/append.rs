//! `file.append`: more bytes at the end of a file, or a new one.

use std::fmt;
use std::fs::File;
use std::os::fd::AsFd;
use std::sync::Arc;

use rustix::fs::{OFlags, openat};
use rustix::io::Errno;

use super::place::{self, Slot};
use super::read::reopen;
use super::write::Room;
use super::{Files, errno};
use crate::broker::Refusal;
use crate::undo::{Change, Keep, What};
use crate::workspace::temp::{NEW_FILE, give};

/// A file that grows.
pub(in crate::broker) struct Appending {
    file: File,
    room: Room,
    slot: Slot,
    keep: Arc<dyn Keep>,
    /// Where it is below the workspace.
    pub(in crate::broker) relative: String,
}

impl Files {
    /// Begins to append.
    pub(in crate::broker) fn append(&self, path: &str) -> Result<Appending, Refusal> {
        let named = self.named(path)?;
        self.may_write(named.lexical())?;
        let turn = self.turn()?;
        let target = self.target(&named)?;
        self.may_write(&target.slot.relative)?;
        let relative = target.slot.relative.clone();
        let before = target.existing.as_ref().map_or(0, |found| found.stat.st_size);
        let room = self.room(u64::try_from(before).unwrap_or(0));
        room.look(&target.slot.folder, &relative)?;
        let slot = target.slot;
        if let Some(found) = &target.existing {
            place::demand_file(found)?;
        }
        self.kept(&[grows(&slot)])?;
        let file = match target.existing {
            Some(found) => reopen(&found, OFlags::WRONLY | OFlags::APPEND)?,
            None => {
                let failed = |error| errno::refusal("append to", &relative, error);
                let flags = OFlags::WRONLY
                    | OFlags::APPEND
                    | OFlags::CREATE
                    | OFlags::EXCL
                    | OFlags::NOFOLLOW
                    | OFlags::CLOEXEC;
                let file = self.fill(&turn, &slot, "append to", || {
                    openat(&slot.folder, &slot.name, flags, NEW_FILE).map_err(|error| {
                        // Somebody made it between the look and the making.
                        if error == Errno::EXIST { Errno::AGAIN } else { error }
                    })
                })?;
                give(&file, &slot.folder, None).map_err(failed)?;
                self.made.add(&relative);
                file
            }
        };
        let keep = Arc::clone(&self.keep);
        Ok(Appending { file: File::from(file), room, slot, keep, relative })
    }
}

fn grows(slot: &Slot) -> Change<'_> {
    Change { what: What::Grow, path: &slot.relative, folder: slot.folder.as_fd(), name: &slot.name }
}

/// However the request ends, what it left is noted.
impl Drop for Appending {
    fn drop(&mut self) {
        self.keep.after(&grows(&self.slot));
    }
}

impl fmt::Debug for Appending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Appending").field("relative", &self.relative).finish_non_exhaustive()
    }
}

impl Appending {
    /// Appends more.
    pub(in crate::broker) fn write(&mut self, bytes: &[u8]) -> Result<(), Refusal> {
        self.room.write(&mut self.file, bytes, &self.relative)
    }

    /// Bytes that were appended.
    pub(in crate::broker) fn written(&self) -> u64 {
        self.room.written()
    }
}
