//! `file.rename` and `file.mkdir`.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{FileType, Mode, OFlags, mkdirat, openat, renameat};
use rustix::io::Errno;

use super::place::{Slot, joined};
use super::remove::open_folder;
use super::{Files, errno};
use crate::broker::{Destroys, Refusal};
use crate::codes::Code;
use crate::stage::turn::Turn;
use crate::undo::{Change, What};
use crate::workspace::temp::give;

/// Permissions of a new folder.
const NEW_FOLDER: Mode =
    Mode::RWXU.union(Mode::RGRP).union(Mode::XGRP).union(Mode::ROTH).union(Mode::XOTH);

impl Files {
    /// What a rename would destroy, judged by the policy as the rename itself is.
    pub(in crate::broker) fn moves(&self, from: &str, to: &str) -> Result<Destroys, Refusal> {
        let (from, to) = (self.named(from)?, self.named(to)?);
        self.may_move(from.lexical(), to.lexical())?;
        let (source, goal) = (self.slot(&from)?, self.slot(&to)?);
        self.may_move(&source.relative, &goal.relative)?;
        self.destroys(&source, &goal)
    }

    fn destroys(&self, source: &Slot, goal: &Slot) -> Result<Destroys, Refusal> {
        let failed = |error| errno::refusal("rename", &source.relative, error);
        source.stat().map_err(failed)?;
        let (from, to) = (source.relative.clone(), goal.relative.clone());
        let mut loses = Vec::new();
        // A name that is moved to itself stays.
        if from != to {
            let there = [(&from, true), (&to, goal.stat().is_ok())];
            let lost = there.into_iter().filter(|(path, there)| *there && !self.made.has(path));
            loses.extend(lost.map(|(path, _)| path.clone()));
        }
        Ok(Destroys::Moved { from, to, loses })
    }

    /// Renames, if that destroys what was judged; the answer is from where to where.
    pub(in crate::broker) fn rename(
        &self,
        from: &str,
        to: &str,
        judged: &Destroys,
    ) -> Result<String, Refusal> {
        let (from, to) = (self.named(from)?, self.named(to)?);
        self.may_move(from.lexical(), to.lexical())?;
        let _turn = self.turn()?;
        let (source, goal) = (self.slot(&from)?, self.slot(&to)?);
        self.may_move(&source.relative, &goal.relative)?;
        let failed = |error| errno::refusal("rename", &source.relative, error);
        let stat = source.stat().map_err(failed)?;
        if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
            // A folder carries what is in it: nothing denied or protected may leave its place, or
            // arrive at one, with it.
            let folder = open_folder(&source.folder, &source.name).map_err(failed)?;
            self.judge_below(&folder, &source.relative, |below| {
                self.may_move(&joined(&source.relative, below), &joined(&goal.relative, below))
            })?;
        } else if from.names_folder() || to.names_folder() {
            return Err(failed(Errno::NOTDIR));
        }
        self.may_fill(&goal)?;
        // Something may have got the new name since somebody was asked, or a link may lead elsewhere.
        if self.destroys(&source, &goal)? != *judged {
            return Err(failed(Errno::AGAIN));
        }
        let to = What::Moved { to: &goal.relative, folder: goal.folder.as_fd(), name: &goal.name };
        let change = Change {
            what: to,
            path: &source.relative,
            folder: source.folder.as_fd(),
            name: &source.name,
        };
        // A name that is moved to itself stays.
        let moves = source.relative != goal.relative;
        if moves {
            self.kept(&[change])?;
        }
        renameat(&source.folder, &source.name, &goal.folder, &goal.name).map_err(|error| {
            errno::refusal("rename", &format!("{} to {}", source.relative, goal.relative), error)
        })?;
        if moves {
            self.keep.after(&change);
            self.made.moved(&source.relative, &goal.relative);
        }
        Ok(format!("{} -> {}", source.relative, goal.relative))
    }

    /// Makes a folder; the answer is where.
    pub(in crate::broker) fn mkdir(&self, path: &str, recursive: bool) -> Result<String, Refusal> {
        let named = self.named(path)?;
        self.may_write(named.lexical())?;
        let turn = self.turn()?;
        let known = match self.find(&named) {
            Ok(found) => Some(found),
            Err(refusal) if refusal.code == Code::NotFound => None,
            Err(refusal) => return Err(refusal),
        };
        if let Some(found) = known {
            self.may_write(&found.relative)?;
            return match (recursive, found.kind()) {
                (true, FileType::Directory) => Ok(found.relative),
                _ => Err(errno::refusal("make", &found.relative, Errno::EXIST)),
            };
        }
        if !recursive {
            let slot = self.slot(&named)?;
            self.may_write(&slot.relative)?;
            self.make(&turn, &slot)?;
            return Ok(slot.relative);
        }
        self.make_all(&turn, named.relative(), named.lexical())
    }

    /// Makes a folder and those that it lies in.
    fn make_all(&self, turn: &Turn, path: &str, shown: &str) -> Result<String, Refusal> {
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        // The deepest folder that is there, links followed, and what is missing below it.
        let mut there = parts.len();
        let start = loop {
            there -= 1;
            let above = if there == 0 { ".".to_owned() } else { parts[..there].join("/") };
            match self.find(&self.named(&above)?) {
                Ok(found) => {
                    super::place::demand_folder(&found)?;
                    break found;
                }
                Err(refusal) if refusal.code == Code::NotFound && there > 0 => {}
                Err(refusal) => return Err(refusal),
            }
        };
        let missing = &parts[there..];
        if missing.contains(&"..") {
            let message = format!("{shown} goes up from a folder that does not exist");
            return Err(Refusal::new(Code::InvalidArgument, message).at(shown));
        }
        let mut relative = start.relative;
        for name in missing {
            relative = joined(&relative, name);
            self.may_write(&relative)?;
        }
        let mut folder = start.handle;
        for name in missing {
            let slot = self.slot_in(folder, name, shown)?;
            self.may_write(&slot.relative)?;
            folder = self.make(turn, &slot)?;
        }
        Ok(relative)
    }

    /// Makes the folder of a slot, and a handle on it.
    fn make(&self, turn: &Turn, slot: &Slot) -> Result<OwnedFd, Refusal> {
        let failed = |error| errno::refusal("make", &slot.relative, error);
        self.room(0).look(&slot.folder, &slot.relative)?;
        let change = Change {
            what: What::Made { mode: NEW_FOLDER.bits() },
            path: &slot.relative,
            folder: slot.folder.as_fd(),
            name: &slot.name,
        };
        self.kept(&[change])?;
        self.fill(turn, slot, "make", || mkdirat(&slot.folder, &slot.name, NEW_FOLDER))?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let made = openat(&slot.folder, &slot.name, flags, Mode::empty()).map_err(failed)?;
        give(&made, &slot.folder, None).map_err(failed)?;
        self.keep.after(&change);
        self.made.add(&slot.relative);
        Ok(made)
    }
}
