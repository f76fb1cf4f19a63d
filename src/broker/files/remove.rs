//! `file.remove`: one entry, or a folder with all that is in it.

use std::ffi::CString;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, openat, unlinkat};
use rustix::io::Errno;

use super::place::joined;
use super::spelled::Named;
use super::{Files, errno};
use crate::broker::{Destroys, Refusal};
use crate::codes::Code;
use crate::undo::{Change, What};

impl Files {
    /// What a removal would destroy, judged by the policy as the removal itself is; nothing if nothing is there and that
    /// is no error.
    pub(crate) fn removes(
        &self,
        path: &str,
        recursive: bool,
        force: bool,
    ) -> Result<Option<Destroys>, Refusal> {
        let named = self.removable(path)?;
        let slot = match self.slot(&named) {
            Err(refusal) if force && refusal.code == Code::NotFound => return Ok(None),
            slot => slot?,
        };
        self.may_write(&slot.relative)?;
        match slot.stat() {
            Ok(_) => Ok(Some(Destroys::Removed { path: slot.relative, recursive })),
            Err(Errno::NOENT) if force => Ok(None),
            Err(error) => Err(errno::refusal("remove", &slot.relative, error)),
        }
    }

    /// A name that may be taken away, as far as its text tells.
    fn removable(&self, path: &str) -> Result<Named, Refusal> {
        let named = self.named(path)?;
        self.may_write(named.lexical())?;
        if named.lexical() == "." {
            let message = "the workspace itself cannot be removed";
            return Err(Refusal::new(Code::InvalidArgument, message));
        }
        Ok(named)
    }

    /// Removes what was judged, and nothing if that was nothing; the answer is where it was.
    pub(in crate::broker) fn remove(
        &self,
        path: &str,
        recursive: bool,
        force: bool,
        judged: Option<&Destroys>,
    ) -> Result<String, Refusal> {
        let named = self.removable(path)?;
        let missing = |refusal: Refusal| match refusal.code {
            Code::NotFound if force => Ok(named.lexical().to_owned()),
            _ => Err(refusal),
        };
        // No name goes between another request's look at it and what that request does then.
        let _turn = self.turn()?;
        let slot = match self.slot(&named) {
            Ok(slot) => slot,
            Err(refusal) => return missing(refusal),
        };
        self.may_write(&slot.relative)?;
        let failed = |error| errno::refusal("remove", &slot.relative, error);
        let stat = match slot.stat() {
            Ok(stat) => stat,
            Err(error) => return missing(failed(error)),
        };
        // A link may lead elsewhere since somebody was asked.
        if judged.is_none_or(|judged| judged.loses() != [slot.relative.as_str()]) {
            return Err(failed(Errno::AGAIN));
        }
        if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
            if named.names_folder() {
                return Err(failed(Errno::NOTDIR));
            }
            let change = goes(&slot.folder, &slot.name, &slot.relative);
            self.kept(&[change])?;
            unlinkat(&slot.folder, &slot.name, AtFlags::empty()).map_err(failed)?;
            self.keep.after(&change);
            self.made.gone(&slot.relative);
            return Ok(slot.relative);
        }
        if recursive {
            let folder = open_folder(&slot.folder, slot.name.as_str()).map_err(failed)?;
            // Everything is judged before anything is removed.
            self.judge_below(&folder, &slot.relative, |below| {
                self.may_write(&joined(&slot.relative, below))
            })?;
            self.empty(&folder, &slot.relative)?;
        }
        self.kept(&[goes(&slot.folder, &slot.name, &slot.relative)])?;
        unlinkat(&slot.folder, &slot.name, AtFlags::REMOVEDIR).map_err(failed)?;
        self.made.gone(&slot.relative);
        Ok(slot.relative)
    }

    /// Removes what is in a folder. Each entry is judged once more, at the place where its folder is now:
    /// the tree may have changed since it was looked through.
    fn empty(&self, folder: &OwnedFd, relative: &str) -> Result<(), Refusal> {
        let failed = |error| errno::refusal("remove", relative, error);
        if self.place_of(folder, relative)? != relative {
            return Err(failed(Errno::AGAIN));
        }
        let mut judged = Vec::new();
        for (name, kind) in entries(folder).map_err(failed)? {
            let Ok(text) = name.into_string() else { return Err(failed(Errno::ILSEQ)) };
            let below = joined(relative, &text);
            self.may_write(&below)?;
            judged.push((text, below, kind));
        }
        // Together: what is kept waits for the database once, not once a file.
        let files: Vec<Change<'_>> = judged
            .iter()
            .filter(|(_, _, kind)| *kind != FileType::Directory)
            .map(|(name, below, _)| goes(folder, name, below))
            .collect();
        self.kept(&files)?;
        for (name, below, kind) in &judged {
            let failed = |error| errno::refusal("remove", below, error);
            if *kind == FileType::Directory {
                let inner = open_folder(folder, name).map_err(failed)?;
                self.empty(&inner, below)?;
                self.kept(&[goes(folder, name, below)])?;
                unlinkat(folder, name, AtFlags::REMOVEDIR).map_err(failed)?;
            } else {
                unlinkat(folder, name, AtFlags::empty()).map_err(failed)?;
            }
        }
        Ok(())
    }
}

fn goes<'a>(folder: &'a OwnedFd, name: &'a str, path: &'a str) -> Change<'a> {
    Change { what: What::Gone, path, folder: folder.as_fd(), name }
}

/// Opens a folder by its name in another; a link is none.
pub(super) fn open_folder(folder: impl AsFd, name: &str) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(folder, name, flags, Mode::empty())
}

fn entries(folder: &OwnedFd) -> Result<Vec<(CString, FileType)>, Errno> {
    let mut buffer = [MaybeUninit::uninit(); 8 * 1024];
    let mut reader = RawDir::new(folder, &mut buffer);
    let mut found = Vec::new();
    while let Some(entry) = reader.next() {
        let entry = entry?;
        if matches!(entry.file_name().to_bytes(), b"." | b"..") {
            continue;
        }
        let kind = match entry.file_type() {
            FileType::Unknown => {
                let stat =
                    rustix::fs::statat(folder, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW)?;
                FileType::from_raw_mode(stat.st_mode)
            }
            kind => kind,
        };
        found.push((entry.file_name().to_owned(), kind));
        if found.len() > super::below::MAX_TREE {
            return Err(Errno::AGAIN);
        }
    }
    Ok(found)
}
