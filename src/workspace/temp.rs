//! A file without a name, or with one of chance, until it is complete.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};

use rustix::fs::{
    AtFlags, CWD, Gid, Mode, OFlags, RenameFlags, Stat, Uid, fchown, fstat, linkat, openat,
    renameat, renameat_with, unlinkat,
};
use rustix::io::Errno;

/// Permissions of a new file.
pub(crate) const NEW_FILE: Mode = Mode::RUSR.union(Mode::WUSR).union(Mode::RGRP).union(Mode::ROTH);

/// A file that is being written. It goes unless it gets its name.
#[derive(Debug)]
pub(crate) struct Temp {
    file: File,
    /// The name that must be removed again.
    named: Option<(OwnedFd, String)>,
}

/// Whether a file takes the place of one that has its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Replace {
    /// It does.
    Yes,
    /// Then it fails.
    No,
}

impl Temp {
    /// In this folder, without a name where the file system has such files.
    pub(crate) fn new(folder: BorrowedFd<'_>) -> Result<Self, Errno> {
        let flags = OFlags::WRONLY | OFlags::CLOEXEC;
        match openat(folder, ".", flags | OFlags::TMPFILE, NEW_FILE) {
            Ok(handle) => return Ok(Self { file: File::from(handle), named: None }),
            // What file systems without nameless files say.
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOENT | Errno::INVAL) => {}
            Err(error) => return Err(error),
        }
        let name = temp_name()?;
        let create = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let handle = openat(folder, &name, flags | create, NEW_FILE)?;
        let folder = rustix::io::fcntl_dupfd_cloexec(folder, 3)?;
        Ok(Self { file: File::from(handle), named: Some((folder, name)) })
    }

    /// Its content.
    pub(crate) fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Gives it its name.
    pub(crate) fn persist(
        &mut self,
        folder: BorrowedFd<'_>,
        name: &str,
        replace: Replace,
    ) -> Result<(), Errno> {
        if self.named.is_none() {
            let link = |name: &str| {
                let own = proc_path(&self.file);
                linkat(CWD, own, folder, name, AtFlags::SYMLINK_FOLLOW)
            };
            if replace == Replace::No {
                return link(name);
            }
            let temporary = temp_name()?;
            link(&temporary)?;
            self.named = Some((rustix::io::fcntl_dupfd_cloexec(folder, 3)?, temporary));
        }
        let Some((own, temporary)) = &self.named else { return Ok(()) };
        match replace {
            Replace::No => {
                renameat_with(own, temporary, folder, name, RenameFlags::NOREPLACE)?;
            }
            Replace::Yes => renameat(own, temporary, folder, name)?,
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

/// The name by which this process can open a handle once more.
pub(crate) fn proc_path(handle: &impl AsFd) -> String {
    format!("/proc/self/fd/{}", handle.as_fd().as_raw_fd())
}

/// A name that nothing has.
pub(crate) fn temp_name() -> Result<String, Errno> {
    let random: [u8; 12] = crate::sys::random().map_err(|_| Errno::AGAIN)?;
    let digits: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!(".runner-temp-{digits}"))
}

/// A caller who is root writes in other people's folders: what is new belongs to whom the old file or the
/// folder belongs to.
pub(crate) fn give(
    file: impl AsFd,
    folder: impl AsFd,
    existing: Option<&Stat>,
) -> Result<(), Errno> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let owner = match existing {
        Some(stat) => *stat,
        None => fstat(folder)?,
    };
    fchown(file, Some(Uid::from_raw(owner.st_uid)), Some(Gid::from_raw(owner.st_gid)))
}
