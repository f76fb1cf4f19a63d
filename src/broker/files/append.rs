//! `file.append`: more bytes at the end of a file, or a new one.

use std::fs::File;

use rustix::fs::{OFlags, openat};
use rustix::io::Errno;

use super::place::{self, Target};
use super::read::reopen;
use super::write::{NEW_FILE, Room, give};
use super::{Files, errno};
use crate::broker::Refusal;

/// A file that grows.
#[derive(Debug)]
pub(in crate::broker) struct Appending {
    file: File,
    room: Room,
    /// Where it is below the workspace.
    pub(in crate::broker) relative: String,
}

impl Files {
    /// Begins to append.
    pub(in crate::broker) fn append(&self, path: &str) -> Result<Appending, Refusal> {
        let named = self.named(path)?;
        self.may_write(named.lexical())?;
        let target = self.target(&named)?;
        self.may_write(&target.slot.relative)?;
        let relative = target.slot.relative.clone();
        let before = target.existing.as_ref().map_or(0, |found| found.stat.st_size);
        let room = self.room(u64::try_from(before).unwrap_or(0));
        room.look(&target.slot.folder, &relative)?;
        let file = match target {
            Target { existing: Some(found), .. } => {
                place::demand_file(&found)?;
                reopen(&found, OFlags::WRONLY | OFlags::APPEND)?
            }
            Target { slot, existing: None } => {
                let failed = |error| errno::refusal("append to", &relative, error);
                let flags = OFlags::WRONLY
                    | OFlags::APPEND
                    | OFlags::CREATE
                    | OFlags::EXCL
                    | OFlags::NOFOLLOW
                    | OFlags::CLOEXEC;
                let file = self.fill(&slot, "append to", || {
                    openat(&slot.folder, &slot.name, flags, NEW_FILE).map_err(|error| {
                        // Somebody made it between the look and the making.
                        if error == Errno::EXIST { Errno::AGAIN } else { error }
                    })
                })?;
                give(&file, &slot, None).map_err(failed)?;
                file
            }
        };
        Ok(Appending { file: File::from(file), room, relative })
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
