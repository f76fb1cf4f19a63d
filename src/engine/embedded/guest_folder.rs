//! The folder with the guest and the runtime of tools, which every sandbox shows read-only.
//!
//! It lies in the caller's cache and is named by what is in it. Its name proves nothing, since the guest is also started on
//! the host, as the launcher: each call opens the folder, compares every file with what this program was built with, and
//! starts and mounts what it opened. What is missing or differs is made anew. Trust boundary: who can write the caller's
//! files by other ways than a sandbox is the caller.

use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use runner_wire::{Bytes, Source};
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, Stat, fstat, openat2};

use crate::engine::error::EngineError;
use crate::engine::{guest, runtime};
use crate::sys;

/// The guest in the folder.
const GUEST: &str = "guest";

/// The folder of the runtime of tools in the folder.
const RUNTIME: &str = "runtime";

/// How much of a file is compared at once.
const CHUNK: usize = 64 << 10;

/// A folder that was opened and holds what it should.
#[derive(Debug)]
pub(super) struct Guest {
    folder: PathBuf,
    identity: (u64, u64),
    program: fs::File,
}

impl Guest {
    /// The folder, as the launcher mounts it.
    pub(super) fn source(&self) -> Source {
        Source { path: Bytes::from(self.folder.as_os_str()), identity: Some(self.identity) }
    }

    /// What starts the program that was compared, for children of this process.
    pub(super) fn program(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.program.as_raw_fd()).into()
    }

    /// What the program is called in lists of processes.
    pub(super) fn name(&self) -> PathBuf {
        self.folder.join(GUEST)
    }
}

/// The folder, made if it is not there or not what it should be.
pub(super) fn place(cache: &Path) -> Result<Guest, EngineError> {
    let local = |source| EngineError::Local { operation: "place the guest", source };
    let (guest, runtime) = (guest::DIGEST, runtime::DIGEST);
    let folder = cache.join(format!("guest-{}-{}", &guest[..16], &runtime[..16]));
    if let Ok(found) = open(&folder) {
        return Ok(found);
    }
    make(cache, &folder).map_err(local)?;
    open(&folder).map_err(local)
}

fn files() -> impl Iterator<Item = (PathBuf, &'static [u8], Mode)> {
    let runtime = runtime::FILES.iter();
    let runtime = runtime.map(|(name, text)| {
        (Path::new(RUNTIME).join(name), text.as_bytes(), Mode::from_raw_mode(0o444))
    });
    std::iter::once((PathBuf::from(GUEST), guest::PROGRAM, Mode::from_raw_mode(0o555)))
        .chain(runtime)
}

/// Opens the folder, if every file in it is this user's alone to change and has the right content.
fn open(folder: &Path) -> io::Result<Guest> {
    let plain = |at: &OwnedFd, name: &Path, flags: OFlags| {
        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH;
        openat2(at, name, flags | OFlags::CLOEXEC, Mode::empty(), resolve)
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let handle = openat2(CWD, folder, flags, Mode::empty(), ResolveFlags::empty())?;
    let found = ours(&handle, FileType::Directory)?;
    let mut program = None;
    for (name, content, mode) in files() {
        let file = plain(&handle, &name, OFlags::RDONLY | OFlags::NOFOLLOW)?;
        let about = ours(&file, FileType::RegularFile)?;
        let mut file = fs::File::from(file);
        let right = Mode::from_raw_mode(about.st_mode) == mode && is_same(&mut file, content)?;
        if !right {
            return Err(altered());
        }
        program.get_or_insert(file);
    }
    let program = program.ok_or_else(altered)?;
    Ok(Guest { folder: folder.to_owned(), identity: (found.st_dev, found.st_ino), program })
}

/// What is known of a file or folder, if nobody else can change it.
fn ours(handle: &OwnedFd, kind: FileType) -> io::Result<Stat> {
    let found = fstat(handle)?;
    let is_ours = found.st_uid == rustix::process::geteuid().as_raw();
    let shut = found.st_mode & 0o022 == 0;
    if is_ours && shut && FileType::from_raw_mode(found.st_mode) == kind {
        Ok(found)
    } else {
        Err(altered())
    }
}

fn altered() -> io::Error {
    io::Error::other("it is not what this program put there")
}

fn is_same(file: &mut fs::File, mut expected: &[u8]) -> io::Result<bool> {
    let mut chunk = vec![0; CHUNK];
    loop {
        match file.read(&mut chunk)? {
            0 => return Ok(expected.is_empty()),
            count => match expected.split_at_checked(count) {
                Some((same, rest)) if same == &chunk[..count] => expected = rest,
                _ => return Ok(false),
            },
        }
    }
}

fn make(cache: &Path, folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(cache)?;
    let nonce: [u8; 8] = sys::random()?;
    let new = cache.join(format!("guest-new-{:016x}", u64::from_le_bytes(nonce)));
    let made = fill(&new).and_then(|()| replace(&new, folder));
    // Gone already where it was renamed.
    let _ = fs::remove_dir_all(&new);
    made
}

fn fill(new: &Path) -> io::Result<()> {
    for folder in [new.to_owned(), new.join(RUNTIME)] {
        fs::DirBuilder::new().mode(0o755).create(folder)?;
    }
    for (name, content, mode) in files() {
        let path = new.join(name);
        let mut file = fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(mode.as_raw_mode())
            .open(path)?;
        file.write_all(content)?;
    }
    Ok(())
}

/// Puts it in place. Another process may do the same at once; a broken one gives way.
fn replace(new: &Path, folder: &Path) -> io::Result<()> {
    for _ in 0..2 {
        match fs::rename(new, folder) {
            Err(_) if open(folder).is_ok() => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {
                fs::remove_dir_all(folder)?;
            }
            renamed => return renamed,
        }
    }
    fs::rename(new, folder)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn program(cache: &Path) -> PathBuf {
        place(cache).unwrap().folder.join(GUEST)
    }

    #[test]
    fn it_is_made_once_and_made_anew_when_it_is_broken() {
        let dir = tempfile::tempdir().unwrap();
        let first = place(dir.path()).unwrap();
        assert_eq!(place(dir.path()).unwrap().identity, first.identity);
        fs::set_permissions(first.name(), fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(first.name(), "short").unwrap();
        let second = place(dir.path()).unwrap();
        assert_ne!(second.identity, first.identity);
        assert_eq!(fs::read(second.program()).unwrap(), guest::PROGRAM);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing temporary is left");
    }

    /// The guest is started on the host: neither its name, nor its size, nor its mode proves what it is.
    #[test]
    fn another_program_of_the_same_size_is_not_started() {
        let dir = tempfile::tempdir().unwrap();
        let file = program(dir.path());
        let forged = [b"#!/bin/sh\n".as_slice(), &vec![b'#'; guest::PROGRAM.len() - 10]].concat();
        fs::remove_file(&file).unwrap();
        fs::write(&file, forged).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o555)).unwrap();
        assert_eq!(fs::read(place(dir.path()).unwrap().program()).unwrap(), guest::PROGRAM);
    }

    #[test]
    fn a_link_in_its_place_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let file = program(dir.path());
        let aside = dir.path().join("aside");
        fs::rename(&file, &aside).unwrap();
        std::os::unix::fs::symlink(&aside, &file).unwrap();
        assert!(fs::symlink_metadata(program(dir.path())).unwrap().is_file());
    }
}
