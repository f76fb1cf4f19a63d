//! Makes missing write folders and files, and removes them again if nothing was written into them.
//!
//! Duty: one folder after the other, below the workspace, following no link, owned by the caller; a file that a
//! policy names exactly is made empty. Trust
//! boundary: the workspace is the adversary's: each parent is opened from the workspace's handle,
//! and what is made is made relative to that handle.

use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::AtFlags;
use rustix::fs::{Gid, Mode, OFlags, ResolveFlags, Uid, chownat, fchown, mkdirat, openat2, statat};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::workspace::{Owner, Workspace};

/// Is told of each path before it is made, absolute.
pub type Announce<'a> = &'a dyn Fn(&Path) -> io::Result<()>;

/// Makes a folder and its missing parents. Each is announced before it is made, and goes into `made`.
///
/// # Errors
/// `ELOOP` where a link stands; else as the system says.
pub fn make(
    workspace: &Workspace,
    relative: &Path,
    owner: Owner,
    announce: Announce<'_>,
    made: &mut Vec<PathBuf>,
) -> io::Result<()> {
    let mut parent = PathBuf::from(".");
    for name in relative {
        let handle = openat2(
            workspace.handle(),
            &parent,
            OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS,
        )?;
        let absolute =
            workspace.root().join(parent.strip_prefix(".").unwrap_or(&parent)).join(name);
        // What is there already is somebody's own, and is not announced.
        if statat(&handle, name, AtFlags::SYMLINK_NOFOLLOW)
            .is_err_and(|error| error == Errno::NOENT)
        {
            announce(&absolute)?;
        }
        match mkdirat(&handle, name, Mode::from(0o755)) {
            Ok(()) => {
                // Only root makes folders for others.
                if geteuid().is_root() {
                    chownat(
                        &handle,
                        name,
                        Some(Uid::from_raw(owner.uid)),
                        Some(Gid::from_raw(owner.gid)),
                        AtFlags::SYMLINK_NOFOLLOW,
                    )?;
                }
                made.push(absolute);
            }
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        parent.push(name);
    }
    Ok(())
}

/// Makes an empty file in a folder that exists. It is announced before, and goes into `made`.
///
/// # Errors
/// `ELOOP` where a link stands, `EEXIST` where something else appeared; else as the system says.
pub fn make_file(
    workspace: &Workspace,
    relative: &Path,
    owner: Owner,
    announce: Announce<'_>,
    made: &mut Vec<PathBuf>,
) -> io::Result<()> {
    let absolute = workspace.root().join(relative);
    announce(&absolute)?;
    let handle = openat2(
        workspace.handle(),
        relative,
        OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        Mode::from(0o644),
        ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS,
    )?;
    made.push(absolute);
    if geteuid().is_root() {
        fchown(&handle, Some(Uid::from_raw(owner.uid)), Some(Gid::from_raw(owner.gid)))?;
    }
    Ok(())
}

/// Removes folders and files that are still empty, innermost first. What is not empty, or gone, stays as
/// it is.
pub fn remove_if_empty(made: &[PathBuf]) {
    for path in made.iter().rev() {
        let empty_file =
            path.symlink_metadata().is_ok_and(|found| found.is_file() && found.len() == 0);
        if empty_file {
            drop(std::fs::remove_file(path));
        } else {
            // `rmdir` follows no link at the end and removes nothing that holds something.
            drop(std::fs::remove_dir(path));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn workspace() -> (tempfile::TempDir, Workspace) {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let workspace = Workspace::find(Some(&root), None).unwrap();
        (dir, workspace)
    }

    #[test]
    fn folders_are_made_and_empty_ones_are_removed() {
        let (_dir, workspace) = workspace();
        let mut made = Vec::new();
        let owner = workspace.owner();
        make(&workspace, Path::new("a/b/c"), owner, &|_| Ok(()), &mut made).unwrap();
        make(&workspace, Path::new("a/d"), owner, &|_| Ok(()), &mut made).unwrap();
        let root = workspace.root();
        assert_eq!(made, [root.join("a"), root.join("a/b"), root.join("a/b/c"), root.join("a/d")]);
        std::fs::write(root.join("a/b/kept"), "").unwrap();
        remove_if_empty(&made);
        assert!(
            root.join("a/b/kept").exists()
                && !root.join("a/b/c").exists()
                && !root.join("a/d").exists()
        );
    }

    #[test]
    fn an_empty_file_is_made_and_removed_if_it_stays_empty() {
        let (_dir, workspace) = workspace();
        let mut made = Vec::new();
        for name in ["kept", "empty"] {
            make_file(&workspace, Path::new(name), workspace.owner(), &|_| Ok(()), &mut made)
                .unwrap();
        }
        assert!(
            make_file(&workspace, Path::new("kept"), workspace.owner(), &|_| Ok(()), &mut made)
                .is_err()
        );
        assert_eq!(made.len(), 2, "what was there already is not ours");
        std::fs::write(workspace.root().join("kept"), "x").unwrap();
        remove_if_empty(&made);
        assert!(workspace.root().join("kept").exists() && !workspace.root().join("empty").exists());
    }

    #[test]
    fn no_folder_is_made_through_a_link() {
        let (_dir, workspace) = workspace();
        let outside = tempfile::tempdir().unwrap();
        symlink(outside.path(), workspace.root().join("link")).unwrap();
        let mut made = Vec::new();
        let error =
            make(&workspace, Path::new("link/x"), workspace.owner(), &|_| Ok(()), &mut made)
                .unwrap_err();
        assert_eq!(error.raw_os_error(), Some(Errno::LOOP.raw_os_error()));
        assert!(!outside.path().join("x").exists() && made.is_empty());
    }
}
