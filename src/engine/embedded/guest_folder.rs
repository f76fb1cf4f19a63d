//! The folder with the guest and the runtime of tools, which every sandbox shows read-only.
//!
//! It lies in the caller's cache and is named by what is in it. It is trusted as far as the caller's own files are: no
//! sandbox can write it. What is missing or of another size is made anew.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::engine::error::EngineError;
use crate::engine::{guest, runtime};
use crate::sys;

/// The guest in the folder.
const GUEST: &str = "guest";

/// The folder of the runtime of tools in the folder.
const RUNTIME: &str = "runtime";

/// The folder, made if it is not there.
pub(super) fn place(cache: &Path) -> Result<PathBuf, EngineError> {
    let local = |source| EngineError::Local { operation: "place the guest", source };
    let (guest, runtime) = (guest::DIGEST, runtime::DIGEST);
    let folder = cache.join(format!("guest-{}-{}", &guest[..16], &runtime[..16]));
    if !is_whole(&folder) {
        make(cache, &folder).map_err(local)?;
    }
    Ok(folder)
}

/// The executable in the folder.
pub(super) fn program(folder: &Path) -> PathBuf {
    folder.join(GUEST)
}

fn files() -> impl Iterator<Item = (PathBuf, &'static [u8], u32)> {
    let runtime = runtime::FILES.iter();
    let runtime =
        runtime.map(|(name, text)| (Path::new(RUNTIME).join(name), text.as_bytes(), 0o444));
    std::iter::once((PathBuf::from(GUEST), guest::PROGRAM, 0o555)).chain(runtime)
}

/// Whether every file is there, is this user's alone to change, and has its size.
fn is_whole(folder: &Path) -> bool {
    let me = rustix::process::geteuid().as_raw();
    let ours = |path: &Path| {
        let found = fs::symlink_metadata(path).ok();
        found.filter(|found| found.uid() == me && found.mode() & 0o022 == 0)
    };
    ours(folder).is_some_and(|found| found.is_dir())
        && files().all(|(name, content, mode)| {
            ours(&folder.join(name)).is_some_and(|found| {
                found.is_file()
                    && found.len() == content.len() as u64
                    && found.mode() & 0o777 == mode
            })
        })
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
        let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
        file.write_all(content)?;
    }
    Ok(())
}

/// Puts it in place. Another process may do the same at once; a broken one gives way.
fn replace(new: &Path, folder: &Path) -> io::Result<()> {
    for _ in 0..2 {
        match fs::rename(new, folder) {
            Err(_) if is_whole(folder) => return Ok(()),
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

    #[test]
    fn it_is_made_once_and_made_anew_when_it_is_broken() {
        let dir = tempfile::tempdir().unwrap();
        let folder = place(dir.path()).unwrap();
        let inode = || fs::metadata(&folder).unwrap().ino();
        let first = inode();
        assert_eq!(place(dir.path()).unwrap(), folder);
        assert_eq!(inode(), first);
        fs::set_permissions(program(&folder), fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(program(&folder), "short").unwrap();
        assert_eq!(place(dir.path()).unwrap(), folder);
        assert_eq!(fs::read(program(&folder)).unwrap(), guest::PROGRAM);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing temporary is left");
    }
}
