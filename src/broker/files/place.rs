//! From a path to a handle, and from a handle to where it really is.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{
    AtFlags, CWD, FileType, FsWord, Mode, OFlags, ResolveFlags, Stat, fstat, fstatfs, openat2,
    readlinkat, statat,
};
use rustix::io::Errno;

use super::spelled::Named;
use super::{Files, errno};
use crate::broker::Refusal;
use crate::codes::Code;
use crate::workspace::temp::proc_path;

/// How often a resolution that a rename disturbed is begun anew.
const RETRIES: usize = 64;

/// File systems whose files are the kernel's own doors: proc, sysfs, devpts, cgroup, cgroup2, debugfs,
/// tracefs, securityfs, bpf, efivarfs, mqueue, binfmt_misc.
const KERNEL_FILES: [u64; 12] = [
    0x9fa0,
    0x6265_6572,
    0x1cd1,
    0x0027_e0eb,
    0x6367_7270,
    0x6462_6720,
    0x7472_6163,
    0x7363_6673,
    0xcafe_4a11,
    0xde5e_81e4,
    0x1980_0202,
    0x4249_4e4d,
];

/// An object, and where it is.
#[derive(Debug)]
pub(super) struct Found {
    /// Names it, without opening it.
    pub handle: OwnedFd,
    /// What it is.
    pub stat: Stat,
    /// Where it is below the workspace, links resolved; `.` for the workspace.
    pub relative: String,
}

/// A name in a folder, whether something has it or not.
#[derive(Debug)]
pub(super) struct Slot {
    /// The folder.
    pub folder: OwnedFd,
    /// The name: one component.
    pub name: String,
    /// Where that is below the workspace, links of the folder resolved.
    pub relative: String,
}

/// Where a write goes: a slot, and what has its name.
#[derive(Debug)]
pub(super) struct Target {
    /// The slot.
    pub slot: Slot,
    /// A file that is there.
    pub existing: Option<Found>,
}

impl Found {
    pub(super) fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.stat.st_mode)
    }
}

impl Files {
    /// Resolves a path to what is there; links that stay inside are followed.
    pub(super) fn find(&self, named: &Named) -> Result<Found, Refusal> {
        let handle = self
            .beneath(named.relative(), OFlags::PATH)
            .map_err(|error| self.unresolved(named, error))?;
        self.found(handle, named.lexical())
    }

    /// The slot that a path names; a link that has the name is not followed.
    pub(super) fn slot(&self, named: &Named) -> Result<Slot, Refusal> {
        let (folder, name) = named.split()?;
        let folder = self
            .beneath(folder, OFlags::PATH | OFlags::DIRECTORY)
            .map_err(|error| self.unresolved(named, error))?;
        self.slot_in(folder, name, named.lexical())
    }

    /// The slot of a name in a folder.
    pub(super) fn slot_in(
        &self,
        folder: OwnedFd,
        name: &str,
        shown: &str,
    ) -> Result<Slot, Refusal> {
        let relative = joined(&self.place_of(&folder, shown)?, name);
        Ok(Slot { folder, name: name.to_owned(), relative })
    }

    /// Where a write to this path goes. A link is followed to the file that it names.
    pub(super) fn target(&self, named: &Named) -> Result<Target, Refusal> {
        let shown = named.lexical();
        if named.names_folder() || shown == "." {
            return Err(errno::refusal("write", shown, Errno::ISDIR));
        }
        for _ in 0..RETRIES {
            match self.find(named) {
                Ok(found) => {
                    if let Some(slot) = self.slot_of(&found)? {
                        return Ok(Target { slot, existing: Some(found) });
                    }
                }
                Err(refusal) if refusal.code == Code::NotFound => {
                    let slot = self.slot(named)?;
                    match slot.stat() {
                        Err(Errno::NOENT) => return Ok(Target { slot, existing: None }),
                        Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink => {
                            let message = format!("{shown} is a link that leads to nothing");
                            return Err(Refusal::new(Code::NotFound, message).at(shown));
                        }
                        // It appeared meanwhile.
                        Ok(_) => {}
                        Err(error) => return Err(errno::refusal("write", shown, error)),
                    }
                }
                Err(refusal) => return Err(refusal),
            }
        }
        Err(errno::refusal("write", shown, Errno::AGAIN))
    }

    /// The slot that an object has; `None` if it has moved meanwhile.
    fn slot_of(&self, found: &Found) -> Result<Option<Slot>, Refusal> {
        let (folder, name) = found.relative.rsplit_once('/').unwrap_or((".", &found.relative));
        let Ok(folder) = self.beneath_plain(folder) else { return Ok(None) };
        let slot = self.slot_in(folder, name, &found.relative)?;
        let same = slot.relative == found.relative
            && slot.stat().is_ok_and(|stat| {
                (stat.st_dev, stat.st_ino) == (found.stat.st_dev, found.stat.st_ino)
            });
        Ok(same.then_some(slot))
    }

    /// What a handle is and where.
    pub(super) fn found(&self, handle: OwnedFd, shown: &str) -> Result<Found, Refusal> {
        let relative = self.place_of(&handle, shown)?;
        let stat = fstat(&handle).map_err(|error| errno::refusal("look at", shown, error))?;
        Ok(Found { handle, stat, relative })
    }

    /// Where an object is at this moment, by the kernel's own word.
    pub(super) fn place_of(&self, handle: impl AsFd, shown: &str) -> Result<String, Refusal> {
        let failed = |error| errno::refusal("find", shown, error);
        let handle = handle.as_fd();
        let now = kernel_path(handle).map_err(failed)?;
        let root = kernel_path(self.workspace.handle()).map_err(failed)?;
        let below = match now.strip_prefix(root.as_slice()) {
            Some([]) => return Ok(".".to_owned()),
            Some([b'/', below @ ..]) => below,
            Some(_) | None => {
                let message = format!("{shown} leads out of the workspace");
                return Err(Refusal::new(Code::PathEscape, message).at(shown));
            }
        };
        let Ok(relative) = std::str::from_utf8(below) else {
            let message = format!("{shown} leads to a name that is not UTF-8");
            return Err(Refusal::new(Code::InvalidArgument, message).at(shown));
        };
        // This is how the kernel writes that the name is gone; a file may also be called so.
        if relative.ends_with(" (deleted)") {
            let named = self.beneath_plain(relative).and_then(|named| fstat(&named));
            let own = fstat(handle).map_err(failed)?;
            if named.is_ok_and(|named| (named.st_dev, named.st_ino) != (own.st_dev, own.st_ino))
                || named.is_err()
            {
                return Err(failed(Errno::NOENT));
            }
        }
        Ok(relative.to_owned())
    }

    /// Resolves beneath the workspace, links followed.
    fn beneath(&self, relative: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        self.resolve(relative, flags, ResolveFlags::empty())
    }

    /// The same for a path that holds no links.
    pub(super) fn beneath_plain(&self, relative: &str) -> Result<OwnedFd, Errno> {
        self.resolve(relative, OFlags::PATH | OFlags::NOFOLLOW, ResolveFlags::NO_SYMLINKS)
    }

    fn resolve(&self, path: &str, flags: OFlags, how: ResolveFlags) -> Result<OwnedFd, Errno> {
        let how = how | ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        let mut tries = 0;
        loop {
            let root = self.workspace.handle();
            match openat2(root, path, flags | OFlags::CLOEXEC, Mode::empty(), how) {
                // Something was renamed while the kernel looked: it cannot vouch for the path.
                Err(Errno::AGAIN | Errno::INTR) if tries < RETRIES => tries += 1,
                result => return result,
            }
        }
    }

    fn unresolved(&self, named: &Named, error: Errno) -> Refusal {
        match error {
            Errno::XDEV | Errno::LOOP => match self.escape(named) {
                refusal if error == Errno::LOOP && refusal.code == Code::PathEscape => {
                    errno::refusal("follow", named.lexical(), error)
                }
                refusal => refusal,
            },
            error => errno::refusal("open", named.lexical(), error),
        }
    }
}

impl Slot {
    /// What has the name; a link is a link.
    pub(super) fn stat(&self) -> Result<Stat, Errno> {
        statat(&self.folder, &self.name, AtFlags::SYMLINK_NOFOLLOW)
    }
}

/// A path below a place.
pub(super) fn joined(place: &str, name: &str) -> String {
    if place == "." { name.to_owned() } else { format!("{place}/{name}") }
}

/// The kernel's own path of a handle.
fn kernel_path(handle: impl AsFd) -> Result<Vec<u8>, Errno> {
    readlinkat(CWD, proc_path(&handle), Vec::with_capacity(256)).map(std::ffi::CString::into_bytes)
}

/// Only folders.
pub(super) fn demand_folder(found: &Found) -> Result<(), Refusal> {
    match found.kind() {
        FileType::Directory => Ok(()),
        _ => {
            let message = format!("{} is not a folder", found.relative);
            Err(Refusal::new(Code::NotADirectory, message).at(&found.relative))
        }
    }
}

/// Only regular files, of a real file system, with one name.
pub(super) fn demand_file(found: &Found) -> Result<(), Refusal> {
    let path = &found.relative;
    let refuse = |code, message: String| Err(Refusal::new(code, message).at(path));
    match found.kind() {
        FileType::RegularFile => {}
        FileType::Directory => {
            return refuse(Code::IsADirectory, format!("{path} is a folder"));
        }
        FileType::Symlink
        | FileType::Fifo
        | FileType::Socket
        | FileType::CharacterDevice
        | FileType::BlockDevice
        | FileType::Unknown => {
            return refuse(Code::SpecialFile, format!("{path} is a pipe, socket or device"));
        }
    }
    let system = fstatfs(&found.handle).map_err(|error| errno::refusal("look at", path, error))?;
    if is_kernels(system.f_type) {
        return refuse(Code::SpecialFile, format!("{path} is the kernel's, not a file"));
    }
    if found.stat.st_nlink > 1 {
        let message = format!(
            "{path} has {} names (hard links), and another one may lie outside the workspace",
            found.stat.st_nlink
        );
        return Err(Refusal::new(Code::PathEscape, message)
            .at(path)
            .hint("give the file one name: copy it and move the copy over it"));
    }
    Ok(())
}

#[expect(clippy::cast_sign_loss, reason = "magic numbers are compared by their lower 32 bits")]
fn is_kernels(kind: FsWord) -> bool {
    KERNEL_FILES.contains(&(kind as u64 & 0xffff_ffff))
}
