//! The layer of covers: what lies over denied files and folders in the overlay of a workspace.
//!
//! Duty: make a folder of ours that holds one entry for each hidden path, at the same path, and nothing
//! else; make it once and share it among calls that hide the same. Non-goals: finding what is hidden
//! ([`crate::workspace::survey`]) and mounting (an engine does).
//!
//! | hidden | its cover |
//! | --- | --- |
//! | a denied file | an empty file |
//! | key material, a socket, a pipe, a device | an empty file with mode 000 |
//! | a denied folder | an empty folder that hides what lies below (`user.overlay.opaque`) |
//! | a folder of key material, one that the caller cannot read | the same, with mode 000 |
//!
//! A layer can also hold files with a content of ours ([`Content`]).
//!
//! Folders above a cover show the attributes of their topmost layer, which is this one: they copy
//! permissions, owner, time and access lists of the real folder, anew for each call.
//!
//! Trust boundary: layers lie in the caller's state folder, which no workspace holds. A layer is complete
//! before it has its name, and is never changed after that but for those attributes: a sandbox that
//! has it mounted would show what lies below.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use runner_wire::{MARK, MARK_MAX};
use rustix::fs::{
    AtFlags, CWD, Gid, Mode, OFlags, RenameFlags, ResolveFlags, Stat, Timespec, Timestamps, Uid,
    XattrFlags, fchmod, fchown, fgetxattr, fsetxattr, fstat, linkat, mkdirat, openat, openat2,
    renameat_with, statat, utimensat,
};
use rustix::io::Errno;

use super::materials::Missing;
use crate::engine::plan::Layer;
use crate::ids::Identity;
use crate::workspace::{Owner, attributes};

/// The folder of layers in the caller's state folder.
pub const FOLDER: &str = "covers";

/// Changes whenever the same covers would be made in another way.
const FORMAT: u64 = 1;

/// Names that one inode may have; ext4 takes 65,000.
const LINKS_MAX: usize = 60_000;

/// The attribute that makes a folder of a layer hide what lies below it in other layers.
const OPAQUE: &str = "user.overlay.opaque";

/// What lies over a hidden path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cover {
    /// An empty file.
    EmptyFile,
    /// An empty, unreadable file.
    ClosedFile,
    /// An empty folder.
    EmptyFolder,
    /// An empty folder that cannot be entered.
    ClosedFolder,
}

impl Cover {
    fn mode(self) -> Mode {
        match self {
            Self::EmptyFile => Mode::from(0o644),
            Self::EmptyFolder => Mode::from(0o755),
            Self::ClosedFile | Self::ClosedFolder => Mode::empty(),
        }
    }
}

/// A file with a content of ours, which looks otherwise like the one of the host that it lies over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    /// Tells the content and the attributes apart from all others.
    pub digest: String,
    /// A file of ours that has the content.
    pub source: PathBuf,
    /// Permission bits.
    pub mode: u32,
    /// Whom it belongs to.
    pub owner: Owner,
    /// Its modification time, in seconds and nanoseconds.
    pub modified: (i64, i64),
}

/// Why a layer cannot be made.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot make the covers of denied files in {folder}: {error}; check its permissions and free \
     space, and that its file system takes extended attributes, or set XDG_STATE_HOME to a folder \
     on another one"
)]
pub struct CoverError {
    /// The folder of layers.
    pub folder: PathBuf,
    /// What the system said.
    #[source]
    pub error: io::Error,
}

/// What a layer is made for.
pub struct Covering<'a> {
    /// The folder that is shown as an overlay.
    pub over: BorrowedFd<'a>,
    /// Which folder it is.
    pub identity: Identity,
    /// What lies where, by path below it.
    pub covers: &'a BTreeMap<PathBuf, Cover>,
    /// Files with a content of ours, by path below it.
    pub contents: &'a BTreeMap<PathBuf, Content>,
    /// Whom covers belong to: the user that the command runs as.
    pub owner: Owner,
    /// The caller's state folder.
    pub state: &'a Path,
    /// Whether to make what is missing.
    pub missing: Missing,
}

/// The layer with these covers.
///
/// # Errors
/// It cannot be made.
pub fn layer(covering: &Covering<'_>) -> Result<Layer, CoverError> {
    let folder = covering.state.join(FOLDER);
    let mark = mark(covering);
    let path = folder.join(&mark);
    let failed = |error| CoverError { folder: folder.clone(), error };
    let handle = match open_layer(&path, &mark) {
        Some(handle) => handle,
        None if covering.missing == Missing::Describe => {
            return Ok(Layer { path, identity: Identity::UNMADE, mark });
        }
        None => make(covering, &folder, &mark).map_err(failed)?,
    };
    let found = fstat(&handle).map_err(|error| failed(error.into()))?;
    if covering.missing == Missing::Make {
        in_use(&path).map_err(failed)?;
        let parents = parents(covering);
        let refreshed = parents.iter().try_for_each(|parent| refresh(covering, &handle, parent));
        refreshed.map_err(|error| failed(error.into()))?;
    }
    Ok(Layer { path, identity: Identity { dev: found.st_dev, ino: found.st_ino }, mark })
}

/// What tells layers apart. It is the name of the layer, and marks its root.
fn mark(covering: &Covering<'_>) -> String {
    let mut hasher = blake3::Hasher::new();
    let (identity, owner) = (covering.identity, covering.owner);
    for number in [FORMAT, identity.dev, identity.ino, owner.uid.into(), owner.gid.into()] {
        hasher.update(&number.to_le_bytes());
    }
    for (path, cover) in covering.covers {
        let name = path.as_os_str().as_bytes();
        hasher.update(&(name.len() as u64).to_le_bytes());
        hasher.update(name);
        hasher.update(&[*cover as u8]);
    }
    for (path, content) in covering.contents {
        let name = path.as_os_str().as_bytes();
        hasher.update(&(name.len() as u64).to_le_bytes());
        hasher.update(name);
        hasher.update(content.digest.as_bytes());
    }
    hasher.finalize().to_hex()[..32].to_owned()
}

/// Folders of the layer that are not covers: they lie above one. The root is the first.
fn parents<'a>(covering: &Covering<'a>) -> BTreeSet<&'a Path> {
    let mut parents = BTreeSet::from([Path::new("")]);
    let mut last = None;
    for path in covering.covers.keys().chain(covering.contents.keys()) {
        let parent = path.parent().unwrap_or(Path::new(""));
        // Paths come in order: those of one folder stand together.
        if last.replace(parent) != Some(parent) {
            // A folder that is known came with all above it.
            parents.extend(
                parent.ancestors().take_while(|above| !parents.contains(above)).collect::<Vec<_>>(),
            );
        }
    }
    parents
}

/// A layer that is there and complete.
fn open_layer(path: &Path, mark: &str) -> Option<OwnedFd> {
    let handle = openat(CWD, path, FOLDER_FLAGS, Mode::empty()).ok()?;
    let mut value = [0; MARK_MAX];
    let length = fgetxattr(&handle, MARK, &mut value).ok()?;
    (value.get(..length) == Some(mark.as_bytes())).then_some(handle)
}

const FOLDER_FLAGS: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Makes a layer under a name of its own, and gives it its name when it is complete.
fn make(covering: &Covering<'_>, folder: &Path, mark: &str) -> io::Result<OwnedFd> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let random: [u8; 8] = crate::sys::random()?;
    let temporary = folder.join(format!(".new-{:016x}", u64::from_le_bytes(random)));
    std::fs::DirBuilder::new().mode(0o700).create(&temporary)?;
    let made = fill(covering, &temporary, mark).and_then(|handle| {
        let path = folder.join(mark);
        match renameat_with(CWD, &temporary, CWD, &path, RenameFlags::NOREPLACE) {
            Ok(()) => Ok(handle),
            // Another call was first: both have made the same.
            Err(Errno::EXIST) => open_layer(&path, mark).ok_or(Errno::EXIST.into()),
            Err(error) => Err(error.into()),
        }
    });
    // Gone already if it was renamed.
    let _ = std::fs::remove_dir_all(&temporary);
    made
}

fn fill(covering: &Covering<'_>, folder: &Path, mark: &str) -> io::Result<OwnedFd> {
    let root = openat(CWD, folder, FOLDER_FLAGS, Mode::empty())?;
    let parents = parents(covering);
    for parent in parents.iter().filter(|parent| !parent.as_os_str().is_empty()) {
        mkdirat(&root, *parent, Mode::from(0o700))?;
    }
    let mut linked: BTreeMap<Cover, (usize, &Path)> = BTreeMap::new();
    for (path, cover) in covering.covers {
        match cover {
            Cover::EmptyFolder | Cover::ClosedFolder => make_folder(covering, &root, path, *cover)?,
            Cover::EmptyFile | Cover::ClosedFile => match linked.get_mut(cover) {
                Some((count, first)) if *count < LINKS_MAX => {
                    linkat(&root, *first, &root, path, AtFlags::empty())?;
                    *count += 1;
                }
                _ => {
                    make_file(covering, &root, path, *cover)?;
                    linked.insert(*cover, (1, path));
                }
            },
        }
    }
    for (path, content) in covering.contents {
        place(&root, path, content)?;
    }
    // Deepest first: a folder that is closed afterwards could not be entered.
    for parent in parents.iter().rev() {
        refresh(covering, &root, parent)?;
    }
    fsetxattr(&root, MARK, mark.as_bytes(), XattrFlags::empty())?;
    Ok(root)
}

fn make_folder(
    covering: &Covering<'_>,
    root: &OwnedFd,
    path: &Path,
    cover: Cover,
) -> io::Result<()> {
    mkdirat(root, path, Mode::from(0o700))?;
    let handle = openat(root, path, FOLDER_FLAGS, Mode::empty())?;
    fsetxattr(&handle, OPAQUE, b"y", XattrFlags::empty())?;
    give(&handle, covering.owner)?;
    Ok(fchmod(&handle, cover.mode())?)
}

fn make_file(covering: &Covering<'_>, root: &OwnedFd, path: &Path, cover: Cover) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let handle = openat(root, path, flags, Mode::from(0o600))?;
    give(&handle, covering.owner)?;
    Ok(fchmod(&handle, cover.mode())?)
}

fn place(root: &OwnedFd, path: &Path, content: &Content) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = std::fs::File::from(openat(root, path, flags, Mode::from(0o600))?);
    io::copy(&mut std::fs::File::open(&content.source)?, &mut file)?;
    let handle = OwnedFd::from(file);
    give(&handle, content.owner)?;
    fchmod(&handle, Mode::from(content.mode & 0o777))?;
    let (tv_sec, tv_nsec) = content.modified;
    let last_modification = Timespec { tv_sec, tv_nsec };
    let times = Timestamps { last_access: last_modification, last_modification };
    Ok(utimensat(&handle, "", &times, AtFlags::EMPTY_PATH)?)
}

/// Gives a file to the user that the command runs as. Only root can, and only root has to.
fn give(handle: &OwnedFd, owner: Owner) -> io::Result<()> {
    if rustix::process::geteuid().is_root() {
        let (uid, gid) = (Uid::from_raw(owner.uid), Gid::from_raw(owner.gid));
        fchown(handle, Some(uid), Some(gid))?;
    }
    Ok(())
}

/// Gives a folder of the layer the attributes that the real one has now. A folder that is gone keeps
/// those that it had.
fn refresh(covering: &Covering<'_>, layer: &OwnedFd, path: &Path) -> Result<(), Errno> {
    let name = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    let look = |at: BorrowedFd<'_>| statat(at, name, AtFlags::SYMLINK_NOFOLLOW);
    let Ok(real) = look(covering.over) else { return Ok(()) };
    let own = look(layer.as_fd())?;
    if same(&real, &own) || (real.st_mode ^ own.st_mode) & FILE_TYPE != 0 {
        return Ok(());
    }
    let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    let Ok(real_handle) = openat2(covering.over, name, FOLDER_FLAGS, Mode::empty(), beneath) else {
        return Ok(());
    };
    let handle = openat(layer, name, FOLDER_FLAGS, Mode::empty())?;
    attributes::copy(real_handle.as_fd(), handle.as_fd())
}

/// The bits of a mode that tell the type.
const FILE_TYPE: u32 = 0o170_000;

fn same(real: &Stat, own: &Stat) -> bool {
    let facts =
        |stat: &Stat| (stat.st_mode, stat.st_uid, stat.st_gid, stat.st_mtime, stat.st_mtime_nsec);
    facts(real) == facts(own)
}

/// Notes that a layer is in use: [`forget`] leaves it alone for a while.
fn in_use(layer: &Path) -> io::Result<()> {
    let note = note_of(layer);
    match utimensat(CWD, &note, &NOW, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => std::fs::write(note, b""),
        result => Ok(result?),
    }
}

const NOW: Timestamps = Timestamps {
    last_access: Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_NOW },
    last_modification: Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_NOW },
};

fn note_of(layer: &Path) -> PathBuf {
    layer.with_extension("used")
}

/// How long after its last use a layer is kept: longer than any sandbox can live.
pub(super) const KEPT_SECONDS: u64 = 8 * 24 * 3600;

/// Removes layers that no sandbox can have mounted any more; how many.
#[must_use]
pub fn forget(state: &Path) -> u64 {
    let folder = state.join(FOLDER);
    let Ok(entries) = std::fs::read_dir(&folder) else { return 0 };
    let mut removed = 0;
    for entry in entries.flatten() {
        let path = entry.path();
        if path.extension().is_some() {
            continue;
        }
        let used = std::fs::metadata(note_of(&path)).or_else(|_| entry.metadata());
        let age = used.and_then(|used| used.modified()).ok().and_then(|at| at.elapsed().ok());
        if age.is_some_and(|age| age.as_secs() > KEPT_SECONDS) {
            open_up(&path);
            removed += u64::from(std::fs::remove_dir_all(&path).is_ok());
            let _ = std::fs::remove_file(note_of(&path));
        }
    }
    removed
}

/// Makes closed folders of a layer removable for an ordinary caller.
fn open_up(layer: &Path) {
    let mut folders = vec![layer.to_owned()];
    while let Some(folder) = folders.pop() {
        let _ = rustix::fs::chmod(&folder, Mode::from(0o700));
        let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        let below = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        folders.extend(below.map(|entry| entry.path()));
    }
}

#[cfg(test)]
#[path = "covers_tests.rs"]
mod tests;
