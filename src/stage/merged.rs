//! The tree as it would be if every change were applied: the host's, with the changes over it.
//!
//! Duty: say what stands at a path, on the host and afterwards, and resolve symlinks in it.
//! Non-goals: deciding. Trust boundary: both are the adversary's. The host is read from one handle,
//! without following a symlink.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2};
use rustix::io::Errno;

use super::change::{Change, Facts, Host, What};
use super::layer;
use crate::ids::Identity;

/// Most bytes of a path that is given to the kernel at once; a path may be longer than `PATH_MAX`.
const MAX_PART: usize = 2048;

/// Most symlinks that are followed for one path, as in the kernel.
pub(super) const MAX_LINKS: usize = 40;

/// Longest target that is resolved.
const MAX_TARGET: usize = 4096;

/// The host's tree with changes over it.
pub struct Merged<'a> {
    host: BorrowedFd<'a>,
    upper: BorrowedFd<'a>,
    root: &'a Path,
    changes: HashMap<&'a Path, &'a Change>,
    /// Paths in lower case at which something is left.
    left: HashMap<Vec<u8>, ()>,
}

impl<'a> Merged<'a> {
    /// `root` is the absolute path of the tree.
    #[must_use]
    pub fn new(
        host: BorrowedFd<'a>,
        upper: BorrowedFd<'a>,
        root: &'a Path,
        changes: &'a [Change],
    ) -> Self {
        let left = changes
            .iter()
            .filter(|change| change.what != What::Removed)
            .map(|change| (folded(&change.path), ()))
            .collect();
        let changes = changes.iter().map(|change| (change.path.as_path(), change)).collect();
        Self { host, upper, root, changes, left }
    }

    /// The absolute path of the tree.
    #[must_use]
    pub fn root(&self) -> &'a Path {
        self.root
    }

    /// The change at a path.
    #[must_use]
    pub fn change(&self, path: &Path) -> Option<&'a Change> {
        self.changes.get(path).copied()
    }

    /// What the host has at a path. Nothing where it cannot be read.
    #[must_use]
    pub fn on_host(&self, path: &Path) -> Host {
        let Some(name) = path.file_name() else { return Host::Absent };
        let parent = path.parent().unwrap_or(Path::new(""));
        match open_folder(self.host, parent) {
            Ok(folder) => layer::host(folder.as_fd(), name).unwrap_or(Host::Absent),
            Err(_) => Host::Absent,
        }
    }

    /// Whether a change leaves something at a path, in any case of its letters.
    #[must_use]
    pub fn is_left(&self, path: &Path) -> bool {
        self.left.contains_key(&folded(path))
    }

    /// Whether something stands at a path if every change is applied.
    #[must_use]
    pub fn is_there_afterwards(&self, path: &Path) -> bool {
        match self.change(path) {
            Some(change) => change.what != What::Removed,
            None => self.on_host(path) != Host::Absent,
        }
    }

    /// A file of the host that is still the one with these facts, if it is not longer than `most`.
    #[must_use]
    pub fn read_host(&self, path: &Path, facts: Option<Facts>, most: usize) -> Option<Vec<u8>> {
        let bytes = read(self.host, path, facts.map(|facts| facts.identity), most)?;
        let Host::File(now) = self.on_host(path) else { return None };
        facts.is_none_or(|facts| facts == now).then_some(bytes)
    }

    /// A file of the stage, if it is not longer than `most`.
    #[must_use]
    pub fn read_staged(&self, change: &Change, most: usize) -> Option<Vec<u8>> {
        let What::File(staged) = &change.what else { return None };
        read(self.upper, &change.path, Some(staged.identity), most)
    }

    /// Where a target that is written at `folder` leads afterwards, below the root.
    ///
    /// `None` if it leads out, if it cannot be told, or if it goes up after it went down: what it
    /// went down through could become a symlink later.
    #[must_use]
    pub fn resolve(&self, folder: &Path, target: &OsStr) -> Option<PathBuf> {
        let [_, End::Inside(afterwards)] = self.ends(folder, target, &|_| false)? else {
            return None;
        };
        Some(afterwards)
    }

    /// Whether a target that is written at `folder` leads, through any symlinks of the host and of the
    /// stage, to a place below the root or to one outside that `outside` knows.
    #[must_use]
    pub fn leads_within(
        &self,
        folder: &Path,
        target: &OsStr,
        outside: &dyn Fn(&Path) -> bool,
    ) -> bool {
        outside(Path::new(target)) || self.ends(folder, target, outside).is_some()
    }

    /// Both ends of a target: with the host's symlinks first, and with those of the stage.
    fn ends(
        &self,
        folder: &Path,
        target: &OsStr,
        outside: &dyn Fn(&Path) -> bool,
    ) -> Option<[End; 2]> {
        self.lexical(folder, target)?;
        let end = |prefer| {
            let end = self.resolve_by(folder, target, prefer, &mut Vec::new())?;
            match &end {
                End::Outside(path) => outside(path).then_some(end),
                End::Inside(_) => Some(end),
            }
        };
        // A change on the way may be held: then the host's symlink is the one that is followed.
        Some([end(Prefer::Host)?, end(Prefer::Stage)?])
    }

    /// The symlinks of the host on the way from `folder` along a target, and the end, as far as they lie
    /// below the root.
    #[must_use]
    pub fn trail(&self, folder: &Path, target: &OsStr) -> Vec<PathBuf> {
        let mut met = Vec::new();
        if let Some(End::Inside(end)) = self.resolve_by(folder, target, Prefer::Host, &mut met) {
            met.push(end);
        }
        met
    }

    fn resolve_by(
        &self,
        folder: &Path,
        target: &OsStr,
        prefer: Prefer,
        met: &mut Vec<PathBuf>,
    ) -> Option<End> {
        let mut place = folder.to_owned();
        let mut rest: Vec<PathBuf> = vec![PathBuf::from(target)];
        let mut links = 0;
        while let Some(next) = rest.pop() {
            if next.as_os_str().len() > MAX_TARGET {
                return None;
            }
            let mut next: &Path = &next;
            if next.is_absolute() {
                let Ok(below) = next.strip_prefix(self.root) else {
                    let mut path = next.to_owned();
                    path.extend(rest.iter().rev());
                    return Some(End::Outside(path));
                };
                next = below;
                place = PathBuf::new();
            }
            let mut parts = next.components();
            while let Some(part) = parts.next() {
                match part {
                    Component::CurDir => {}
                    Component::ParentDir => {
                        if !place.pop() {
                            return None;
                        }
                    }
                    Component::Normal(name) => {
                        place.push(name);
                        if let Some(target) = self.link(&place, prefer) {
                            links += 1;
                            if links > MAX_LINKS {
                                return None;
                            }
                            met.push(place.clone());
                            place.pop();
                            rest.push(parts.as_path().to_owned());
                            rest.push(target);
                            break;
                        }
                    }
                    Component::RootDir | Component::Prefix(_) => return None,
                }
            }
        }
        Some(End::Inside(place))
    }

    /// Where a target leads below the root, by the text alone.
    #[must_use]
    pub fn lexical(&self, folder: &Path, target: &OsStr) -> Option<PathBuf> {
        let mut target = Path::new(target);
        let mut place = folder.to_owned();
        if target.is_absolute() {
            target = target.strip_prefix(self.root).ok()?;
            place = PathBuf::new();
        }
        let mut down = false;
        for part in target.components() {
            match part {
                Component::CurDir => {}
                Component::ParentDir if down || !place.pop() => return None,
                Component::ParentDir => {}
                Component::Normal(name) => {
                    down = true;
                    place.push(name);
                }
                Component::RootDir | Component::Prefix(_) => return None,
            }
        }
        Some(place)
    }

    /// The same for a text that may go up after it went down, as git reads it: the system follows no
    /// symlink in it that is not there.
    #[must_use]
    pub fn normal(&self, folder: &Path, target: &Path) -> Option<PathBuf> {
        let (mut place, mut target) = (folder.to_owned(), target);
        if target.is_absolute() {
            (place, target) = (PathBuf::new(), target.strip_prefix(self.root).ok()?);
        }
        for part in target.components() {
            match part {
                Component::CurDir => {}
                Component::ParentDir => place.pop().then_some(())?,
                Component::Normal(name) => place.push(name),
                Component::RootDir | Component::Prefix(_) => return None,
            }
        }
        Some(place)
    }

    /// The target of the symlink that stands at a path afterwards.
    fn link(&self, path: &Path, prefer: Prefer) -> Option<PathBuf> {
        let host = |host: Host| match host {
            Host::Link { target, .. } => Some(PathBuf::from(target)),
            _ => None,
        };
        let Some(change) = self.change(path) else { return host(self.on_host(path)) };
        let staged = match &change.what {
            What::Link { target } => Some(PathBuf::from(target)),
            _ => None,
        };
        match prefer {
            Prefer::Stage => staged,
            Prefer::Host => host(change.host.clone()).or(staged),
        }
    }
}

/// Where a chain of symlinks ends.
#[derive(Debug, Clone, PartialEq, Eq)]
enum End {
    /// Below the root.
    Inside(PathBuf),
    /// Where it left the root: an absolute path, of which nothing was looked up.
    Outside(PathBuf),
}

/// Which symlink counts where a change replaces one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Prefer {
    Stage,
    Host,
}

/// A path in lower case.
fn folded(path: &Path) -> Vec<u8> {
    path.as_os_str().as_bytes().to_ascii_lowercase()
}

/// Opens a folder below another, without following a symlink, however long the path is.
fn open_folder(base: BorrowedFd<'_>, path: &Path) -> Result<OwnedFd, Errno> {
    let open = |base: BorrowedFd<'_>, path: &Path| {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        openat2(
            base,
            path,
            OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
            Mode::empty(),
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS,
        )
    };
    if path.as_os_str().len() <= MAX_PART {
        return open(base, path);
    }
    let mut handle = open(base, Path::new(""))?;
    let mut part = PathBuf::new();
    for name in path {
        if part.as_os_str().len() + name.len() >= MAX_PART {
            handle = open(handle.as_fd(), &part)?;
            part = PathBuf::new();
        }
        part.push(name);
    }
    open(handle.as_fd(), &part)
}

/// Reads a regular file below a folder, if it is the expected one.
fn read(
    base: BorrowedFd<'_>,
    path: &Path,
    expected: Option<Identity>,
    most: usize,
) -> Option<Vec<u8>> {
    let folder = open_folder(base, path.parent()?).ok()?;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let handle = openat(&folder, path.file_name()?, flags | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let stat = fstat(&handle).ok()?;
    let found = Identity { dev: stat.st_dev, ino: stat.st_ino };
    let regular = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    if !regular || expected.is_some_and(|expected| expected != found) {
        return None;
    }
    let mut bytes = Vec::new();
    File::from(handle).take(most as u64 + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() <= most).then_some(bytes)
}
