//! Makes missing write folders, and removes them again if nothing was written into them.
//!
//! Duty: one folder after the other, below the workspace, following no link, owned by the caller. Trust
//! boundary: the workspace is the adversary's: each parent is opened from the workspace's handle,
//! and what is made is made relative to that handle.

use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::AtFlags;
use rustix::fs::{Gid, Mode, OFlags, ResolveFlags, Uid, chownat, mkdirat, openat2};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::workspace::{Owner, Workspace};

/// Makes a folder and its missing parents. Each that is made goes into `made`, absolute.
///
/// # Errors
/// `ELOOP` where a link stands; else as the system says.
pub fn make(
    workspace: &Workspace,
    relative: &Path,
    owner: Owner,
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
                made.push(
                    workspace.root().join(parent.strip_prefix(".").unwrap_or(&parent)).join(name),
                );
            }
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        parent.push(name);
    }
    Ok(())
}

/// Removes folders that are still empty, innermost first. What is not empty, or gone, stays as it is.
pub fn remove_if_empty(made: &[PathBuf]) {
    for folder in made.iter().rev() {
        // `rmdir` follows no link at the end and removes nothing that holds something.
        drop(std::fs::remove_dir(folder));
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
        make(&workspace, Path::new("a/b/c"), owner, &mut made).unwrap();
        make(&workspace, Path::new("a/d"), owner, &mut made).unwrap();
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
    fn no_folder_is_made_through_a_link() {
        let (_dir, workspace) = workspace();
        let outside = tempfile::tempdir().unwrap();
        symlink(outside.path(), workspace.root().join("link")).unwrap();
        let mut made = Vec::new();
        let error =
            make(&workspace, Path::new("link/x"), workspace.owner(), &mut made).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(Errno::LOOP.raw_os_error()));
        assert!(!outside.path().join("x").exists() && made.is_empty());
    }
}
