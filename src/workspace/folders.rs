//! Makes missing write folders and files, and removes them again if nothing was written into them.
//!
//! Duty: one folder after the other, below the workspace, following no link, owned by the caller; a file that a
//! policy names exactly is made empty. Trust
//! boundary: the workspace is the adversary's: each parent is opened from the workspace's handle,
//! and what is made is made relative to that handle.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Gid, Mode, OFlags, RenameFlags, ResolveFlags, Uid, chownat,
    mkdirat, openat2, renameat_with, statat, unlinkat,
};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::{Owner, Workspace};

/// How things are made.
pub struct Making<'a> {
    /// Whom they belong to.
    pub owner: Owner,
    /// Is told of each path before it is made, absolute.
    pub announce: &'a dyn Fn(&Path) -> io::Result<()>,
    /// Where they may have been put away; what is there is used again.
    pub aside: Option<&'a Path>,
}

/// Makes a folder and its missing parents. Each is announced before it is made, and goes into `made`.
///
/// # Errors
/// `ELOOP` where a link stands; else as the system says.
pub fn make(
    workspace: &Workspace,
    relative: &Path,
    making: &Making<'_>,
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
            (making.announce)(&absolute)?;
        }
        let there = match put_back(&absolute, &handle, Path::new(name), making.aside) {
            true => Ok(()),
            false => mkdirat(&handle, name, Mode::from(0o755)),
        };
        match there {
            Ok(()) => {
                own(&handle, Path::new(name), making.owner)?;
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
    making: &Making<'_>,
    made: &mut Vec<PathBuf>,
) -> io::Result<()> {
    let absolute = workspace.root().join(relative);
    (making.announce)(&absolute)?;
    let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    let parent = relative.parent().filter(|parent| !parent.as_os_str().is_empty());
    let folder = openat2(
        workspace.handle(),
        parent.unwrap_or(Path::new(".")),
        OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
        beneath,
    )?;
    let name = Path::new(relative.file_name().unwrap_or_default());
    if !put_back(&absolute, &folder, name, making.aside) {
        openat2(
            &folder,
            name,
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC,
            Mode::from(0o644),
            beneath,
        )?;
    }
    made.push(absolute);
    own(&folder, name, making.owner)?;
    Ok(())
}

/// Gives something new to its owner. Only root makes things for others.
fn own(folder: &OwnedFd, name: &Path, owner: Owner) -> rustix::io::Result<()> {
    if !geteuid().is_root() {
        return Ok(());
    }
    let (uid, gid) = (Uid::from_raw(owner.uid), Gid::from_raw(owner.gid));
    chownat(folder, name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)
}

/// What a path's thing is called while it is put away.
fn name_aside(path: &Path) -> String {
    blake3::hash(path.as_os_str().as_encoded_bytes()).to_hex()[..32].to_owned()
}

/// Puts back what was put away for this path; whether there was something.
fn put_back(absolute: &Path, folder: &OwnedFd, name: &Path, aside: Option<&Path>) -> bool {
    aside.is_some_and(|aside| {
        let from = aside.join(name_aside(absolute));
        renameat_with(CWD, from, folder, name, RenameFlags::NOREPLACE).is_ok()
    })
}

/// Puts back what was put away for this path, if it is not there: another call may have done so.
///
/// # Errors
/// Its folder is gone or was replaced by a link, or nothing was put away.
pub fn bring_back(absolute: &Path, aside: &Path) -> io::Result<()> {
    let (folder, name) = place_of(absolute)?;
    let there = || statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW).is_ok();
    if put_back(absolute, &folder, name, Some(aside)) || there() {
        Ok(())
    } else {
        Err(Errno::NOENT.into())
    }
}

/// The folder that a path lies in, reached through no link, and the path's name in it. What was made there may have been
/// moved since, and a link put in the place of any of its parents: whoever acts, acts on the handle.
fn place_of(absolute: &Path) -> io::Result<(OwnedFd, &Path)> {
    let (Some(parent), Some(name)) = (absolute.parent(), absolute.file_name()) else {
        return Err(Errno::INVAL.into());
    };
    let folder = openat2(
        CWD,
        parent,
        OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
        ResolveFlags::NO_SYMLINKS,
    )?;
    Ok((folder, Path::new(name)))
}

/// Puts folders and files that are still empty away, innermost first, if there is a folder for that on the same file
/// system; else removes them. What is not empty, or gone, or behind a link, stays as it is.
pub fn put_away(made: &[PathBuf], aside: &Path) {
    for path in made.iter().rev() {
        let Ok((folder, name)) = place_of(path) else { continue };
        let away = aside.join(name_aside(path));
        let moved = emptiness(&folder, name).is_some()
            && renameat_with(&folder, name, CWD, &away, RenameFlags::NOREPLACE).is_ok();
        if !moved {
            remove(&folder, name);
        } else if emptiness(CWD, &away).is_none() {
            // Somebody wrote into it in that moment: it is theirs.
            let _ = renameat_with(CWD, &away, &folder, name, RenameFlags::NOREPLACE);
        }
    }
}

/// What is there with nothing in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Empty {
    File,
    Folder,
}

/// Whether there is a file or folder with nothing in it.
fn emptiness(folder: impl AsFd, name: &Path) -> Option<Empty> {
    let found = statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile => (found.st_size == 0).then_some(Empty::File),
        FileType::Directory => {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let handle = openat2(folder, name, flags, Mode::empty(), ResolveFlags::empty()).ok()?;
            let own = |name: &[u8]| matches!(name, b"." | b"..");
            let mut entries = Dir::new(handle).ok()?;
            // An entry that cannot be read is one.
            entries
                .all(|entry| entry.is_ok_and(|entry| own(entry.file_name().to_bytes())))
                .then_some(Empty::Folder)
        }
        _ => None,
    }
}

/// Removes folders and files that are still empty, innermost first. What is not empty, or gone, or behind a link, stays
/// as it is.
pub fn remove_if_empty(made: &[PathBuf]) {
    for path in made.iter().rev() {
        if let Ok((folder, name)) = place_of(path) {
            remove(&folder, name);
        }
    }
}

fn remove(folder: &OwnedFd, name: &Path) {
    let _ = match emptiness(folder, name) {
        Some(Empty::File) => unlinkat(folder, name, AtFlags::empty()),
        // This removes nothing that holds something, and follows no link.
        Some(Empty::Folder) => unlinkat(folder, name, AtFlags::REMOVEDIR),
        None => Ok(()),
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn making(owner: Owner) -> Making<'static> {
        Making { owner, announce: &|_| Ok(()), aside: None }
    }

    fn workspace() -> (tempfile::TempDir, Workspace) {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let workspace =
            Workspace::find(Some(&root), &crate::environment::Environment::default()).unwrap();
        (dir, workspace)
    }

    #[test]
    fn folders_are_made_and_empty_ones_are_removed() {
        let (_dir, workspace) = workspace();
        let mut made = Vec::new();
        let owner = workspace.owner();
        make(&workspace, Path::new("a/b/c"), &making(owner), &mut made).unwrap();
        make(&workspace, Path::new("a/d"), &making(owner), &mut made).unwrap();
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
            make_file(&workspace, Path::new(name), &making(workspace.owner()), &mut made).unwrap();
        }
        assert!(
            make_file(&workspace, Path::new("kept"), &making(workspace.owner()), &mut made)
                .is_err()
        );
        assert_eq!(made.len(), 2, "what was there already is not ours");
        std::fs::write(workspace.root().join("kept"), "x").unwrap();
        remove_if_empty(&made);
        assert!(workspace.root().join("kept").exists() && !workspace.root().join("empty").exists());
    }

    #[test]
    fn what_is_put_away_comes_back_as_the_same() {
        use std::os::unix::fs::MetadataExt;

        let (_dir, workspace) = workspace();
        let aside = tempfile::tempdir().unwrap();
        let making = Making { aside: Some(aside.path()), ..making(workspace.owner()) };
        let root = workspace.root().to_owned();
        let make_all = || {
            let mut made = Vec::new();
            make(&workspace, Path::new("a/b"), &making, &mut made).unwrap();
            make(&workspace, Path::new("used"), &making, &mut made).unwrap();
            make_file(&workspace, Path::new("lock"), &making, &mut made).unwrap();
            made
        };
        let inodes =
            || ["a", "a/b", "lock"].map(|name| root.join(name).symlink_metadata().unwrap().ino());
        let made = make_all();
        let before = inodes();
        std::fs::write(root.join("used/x"), "").unwrap();
        put_away(&made, aside.path());
        assert!(!root.join("a").exists() && !root.join("lock").exists());
        assert!(root.join("used/x").exists(), "what was written into stays");
        std::fs::remove_dir_all(root.join("used")).unwrap();
        make_all();
        assert_eq!(inodes(), before);
        // Without a place for it, it is removed.
        put_away(&made, Path::new("/nowhere"));
        assert!(!root.join("a").exists() && !root.join("lock").exists());
    }

    #[test]
    fn nothing_is_removed_or_put_away_through_a_link() {
        let (_dir, workspace) = workspace();
        let (outside, aside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let root = workspace.root();
        let mut made = Vec::new();
        for folder in ["a/b", "plain/b"] {
            make(&workspace, Path::new(folder), &making(workspace.owner()), &mut made).unwrap();
        }
        make_file(&workspace, Path::new("a/f"), &making(workspace.owner()), &mut made).unwrap();
        // What was made is moved away, and a link to somebody else's folder takes its place.
        std::fs::rename(root.join("a"), root.join("moved")).unwrap();
        symlink(outside.path(), root.join("a")).unwrap();
        let theirs = ["b", "f"].map(|name| outside.path().join(name));
        std::fs::create_dir(&theirs[0]).unwrap();
        std::fs::write(&theirs[1], "").unwrap();
        put_away(&made, aside.path());
        assert!(theirs.iter().all(|path| path.exists()) && root.join("a").is_symlink());
        // The control: what is no link was put away.
        assert!(!root.join("plain").exists());
        bring_back(&root.join("plain"), aside.path()).unwrap();
        remove_if_empty(&made);
        assert!(theirs.iter().all(|path| path.exists()) && root.join("a").is_symlink());
        assert!(!root.join("plain").exists());
    }

    #[test]
    fn no_folder_is_made_through_a_link() {
        let (_dir, workspace) = workspace();
        let outside = tempfile::tempdir().unwrap();
        symlink(outside.path(), workspace.root().join("link")).unwrap();
        let mut made = Vec::new();
        let error = make(&workspace, Path::new("link/x"), &making(workspace.owner()), &mut made)
            .unwrap_err();
        assert_eq!(error.raw_os_error(), Some(Errno::LOOP.raw_os_error()));
        assert!(!outside.path().join("x").exists() && made.is_empty());
    }
}
