//! What must not have appeared during a call, and did.
//!
//! Duty: after a call, look at each guarded path of its plan and move aside what is there. Moving, not
//! removing: it may also be the caller's own, made at the same moment on the host. Trust boundary: the
//! sandbox is gone by now, but what it left is the adversary's: parents are opened without following
//! links, and only a name is changed.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, RenameFlags, ResolveFlags, openat2, renameat_with};
use rustix::io::Errno;

/// How many names are tried for what is moved aside.
const TRIES: u32 = 100;

/// Something that appeared where nothing may.
#[derive(Debug, PartialEq, Eq)]
pub struct Appeared {
    /// Where.
    pub path: PathBuf,
    /// Where it is now; `None` if it could not be moved.
    pub moved_to: Option<PathBuf>,
}

/// Moves aside what has appeared at guarded paths.
#[must_use]
pub fn sweep(guarded: &[PathBuf]) -> Vec<Appeared> {
    guarded
        .iter()
        .filter(|path| path.symlink_metadata().is_ok())
        .map(|path| Appeared { path: path.clone(), moved_to: move_aside(path) })
        .collect()
}

fn move_aside(path: &Path) -> Option<PathBuf> {
    let (parent, name) = (path.parent()?, path.file_name()?);
    let folder = openat2(
        CWD,
        parent,
        OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
        ResolveFlags::NO_SYMLINKS,
    )
    .ok()?;
    for number in 0..TRIES {
        let mut aside = OsString::from(name);
        aside.push(format!(".quarantined-{number}"));
        match renameat_with(&folder, name, &folder, &aside, RenameFlags::NOREPLACE) {
            Ok(()) => return Some(parent.join(aside)),
            Err(Errno::EXIST) => {}
            Err(_) => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_appeared_is_moved_aside_and_nothing_is_lost() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        let (file, folder, none) = (top.join("commondir"), top.join("modules"), top.join("hooks"));
        std::fs::write(&file, "evil").unwrap();
        std::fs::write(top.join("commondir.quarantined-0"), "older").unwrap();
        std::fs::create_dir_all(folder.join("x")).unwrap();
        let swept = sweep(&[file.clone(), folder.clone(), none]);
        assert_eq!(
            swept,
            [
                Appeared {
                    path: file.clone(),
                    moved_to: Some(top.join("commondir.quarantined-1"))
                },
                Appeared {
                    path: folder.clone(),
                    moved_to: Some(top.join("modules.quarantined-0"))
                },
            ]
        );
        assert!(!file.exists() && !folder.exists() && top.join("modules.quarantined-0/x").is_dir());
        assert_eq!(std::fs::read_to_string(top.join("commondir.quarantined-0")).unwrap(), "older");
    }
}
