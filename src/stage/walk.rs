//! Walks a stage and tells what a call changed.
//!
//! Duty: compare a stage with the host's tree, and list the changes in an order in which they can
//! be applied: a new folder before its entries, the contents of a removed folder before the folder,
//! and the contents of a folder before the file that takes its place. Every path occurs once.
//! Non-goals: judging; the conflict test of the apply step. Trust boundary: the stage is the
//! adversary's, and no process writes to it any more. The host's tree is the adversary's too and
//! may change at any moment. Both are read through handles of one folder at a time, no symlink is
//! followed, no mount of the host is entered, and every quantity is bounded.

use std::collections::{BTreeSet, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use rustix::fs::{Mode, OFlags, RawDir, ResolveFlags, fstat, openat, openat2};
use rustix::io::Errno;

use super::access::{self, Grant};
use super::change::{Change, Facts, Host, Origin, Staged, What};
use super::handles::{open_folder, split};
use super::layer::{self, Entry, EntryError, StageFolder, View};
use crate::ids::Identity;
use crate::sys::{FileHandle, file_handle};

/// Most names that are read, of the stage and of the host's folders that it hides: as many files as
/// a large build leaves, four times over.
pub const MAX_ENTRIES: usize = 1_000_000;

/// Deepest folder that is entered, as in a walk of the workspace. Each level keeps two handles
/// open.
pub const MAX_DEPTH: usize = 256;

/// Most bytes of staged files: more than a stage may hold on disk. A file with holes counts in
/// full, because it may have to be compared in full.
pub const MAX_BYTES: u64 = 64 << 30;

/// Most bytes of all paths that are returned: a million paths of usual length.
pub const MAX_NAMES: usize = 256 << 20;

/// Bytes that are compared at a time.
const BLOCK: usize = 64 * 1024;

/// How much a walk may meet before it gives up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Names that are read.
    pub entries: usize,
    /// Folders below each other.
    pub depth: usize,
    /// Bytes of staged files.
    pub bytes: u64,
    /// Bytes of the paths that are returned.
    pub names: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { entries: MAX_ENTRIES, depth: MAX_DEPTH, bytes: MAX_BYTES, names: MAX_NAMES }
    }
}

/// Why a stage cannot be walked. Then nothing of it is applied.
#[derive(Debug, thiserror::Error)]
pub enum WalkError {
    /// More names than [`Bounds::entries`].
    #[error("the call left or removed more than {0} names")]
    TooMany(usize),
    /// Deeper than [`Bounds::depth`].
    #[error("{0} lies too deep below the workspace")]
    TooDeep(PathBuf),
    /// More than [`Bounds::bytes`].
    #[error("the call left more than {0} bytes")]
    TooLarge(u64),
    /// More than [`Bounds::names`].
    #[error("the paths that the call changed are longer than {0} bytes together")]
    TooLong(usize),
    /// The stage cannot be read.
    #[error("cannot read {path} in the stage: {source}")]
    Stage {
        /// Below the root.
        path: PathBuf,
        /// What is wrong.
        source: EntryError,
    },
    /// The host's tree cannot be read where the stage changes it.
    #[error("cannot read {path} on the host: {source}")]
    Host {
        /// Below the root.
        path: PathBuf,
        /// What the kernel said.
        source: Errno,
    },
}

/// Lists what a stage changes in the host's tree.
///
/// `host_root` is the root that the stage lay over. A name whose kind, content and permission bits are
/// the host's is no change. The root's own permission bits are not looked at.
///
/// # Errors
/// See [`WalkError`].
pub fn walk(
    upper: BorrowedFd<'_>,
    host_root: BorrowedFd<'_>,
    bounds: Bounds,
) -> Result<Vec<Change>, WalkError> {
    let mut walk = Walk {
        bounds,
        entries: 0,
        bytes: 0,
        names: 0,
        changes: Vec::new(),
        copies: Vec::new(),
        linked: Vec::new(),
    };
    let root = Path::new("");
    let upper = layer::open_folder(upper, OsStr::new("."))
        .map_err(|error| stage_error(root, error.into()))?;
    let view = match layer::read(upper.as_fd(), OsStr::new(".")) {
        Ok(Entry::Folder { view, .. }) => view,
        Ok(_) => return Err(stage_error(root, Errno::NOTDIR.into())),
        Err(error) => return Err(stage_error(root, error)),
    };
    let host = match open_host(host_root, OsStr::new(".")) {
        Ok(handle) => Below::Folder(handle),
        Err(error) => return Err(WalkError::Host { path: root.to_owned(), source: error }),
    };
    let defaults = host.defaults();
    let mut stack = vec![walk.stage_frame(PathBuf::new(), upper, host, view, defaults)?];
    while let Some(frame) = stack.last_mut() {
        match frame.names.pop() {
            Some(name) => {
                if let Some(next) = walk.name(frame, &name)? {
                    if stack.len() > bounds.depth {
                        return Err(WalkError::TooDeep(next.path));
                    }
                    stack.push(next);
                }
            }
            None => {
                let after = stack.pop().and_then(|frame| frame.after);
                if let Some((path, what, host)) = after {
                    walk.push(path, what, host)?;
                }
            }
        }
    }
    let Walk { mut changes, copies, linked, .. } = walk;
    let mut there = HashSet::new();
    if !copies.is_empty() {
        there = sources(&changes, host_root);
        there.extend(linked);
    }
    for (at, from) in copies {
        changes[at].lost = !there.contains(&from);
    }
    Ok(changes)
}

/// The handles of the host's files that were changed or removed. A file that was moved in the stage
/// is a copy of one of them.
fn sources(changes: &[Change], host: BorrowedFd<'_>) -> HashSet<FileHandle> {
    let files = changes.iter().filter(|change| matches!(change.host, Host::File(_)));
    let handle = |change: &Change| {
        let (folder, name) = split(&change.path)?;
        let folder = open_folder(host, folder).ok()?;
        file_handle(folder.as_fd(), name).ok()
    };
    files.filter_map(handle).collect()
}

/// A folder that is being looked through.
struct Frame {
    path: PathBuf,
    /// `None` in a folder of the host that the stage removed.
    upper: Option<StageFolder>,
    host: Below,
    /// Whether the host's names are hidden here, and so below: folders that were made in an opaque
    /// folder have no mark of their own.
    view: View,
    /// What the host's default access list gives to new entries.
    defaults: Rc<[Grant]>,
    /// Names still to come, last first.
    names: Vec<OsString>,
    /// What is said once the folder's contents are through.
    after: Option<(PathBuf, What, Host)>,
}

/// What the host has below a folder of the stage.
enum Below {
    /// Nothing.
    Nothing,
    /// A folder.
    Folder(OwnedFd),
    /// Another file system, mounted over the folder. The call did not see what is in it.
    Mounted(Facts),
}

impl Below {
    fn handle(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Folder(handle) => Some(handle.as_fd()),
            Self::Nothing | Self::Mounted(_) => None,
        }
    }

    /// What the default access list of the host's folder gives. Nothing where it cannot be read.
    fn defaults(&self) -> Rc<[Grant]> {
        let of = |folder| access::grants(folder, OsStr::new("."), &[access::DEFAULT]);
        self.handle().and_then(of).unwrap_or_default().into()
    }
}

/// What the stage says of a folder.
#[derive(Debug, Clone, Copy)]
struct StagedFolder {
    mode: u32,
    view: View,
    listed: bool,
}

struct Walk {
    bounds: Bounds,
    entries: usize,
    bytes: u64,
    names: usize,
    changes: Vec<Change>,
    /// Files whose name the host does not have, and what they are copies of.
    copies: Vec<(usize, FileHandle)>,
    /// Files of the host that got further names in the stage and are otherwise unchanged.
    linked: Vec<FileHandle>,
}

impl Walk {
    /// Looks at one name; the folder to enter next, if it is one.
    fn name(&mut self, frame: &Frame, name: &OsStr) -> Result<Option<Frame>, WalkError> {
        let path = frame.path.join(name);
        let host = match &frame.host {
            Below::Nothing => Host::Absent,
            Below::Mounted(facts) => Host::Other(*facts),
            Below::Folder(handle) => layer::host(handle.as_fd(), name)
                .map_err(|source| WalkError::Host { path: path.clone(), source })?,
        };
        let entry = match &frame.upper {
            None => Entry::Whiteout,
            Some(upper) => match layer::read(upper.as_fd(), name) {
                Ok(entry) => entry,
                // Only the host has the name, and the stage hides it.
                Err(EntryError::Refused(Errno::NOENT)) => Entry::Whiteout,
                Err(error) => return Err(stage_error(&path, error)),
            },
        };
        match entry {
            Entry::Whiteout => self.over(frame, name, path, What::Removed, host),
            Entry::Folder { mode, view, copied, listed } => {
                if listed && !matches!(host, Host::Folder(_)) && gives_more(frame, name, &host) {
                    return self.over(frame, name, path, What::Special, host);
                }
                let at = self.changes.len();
                let folder = StagedFolder { mode, view, listed };
                let next = self.folder(frame, name, path, folder, host)?;
                if let Some(made) = self.changes.get_mut(at) {
                    made.lost = copied && made.host == Host::Absent;
                }
                Ok(next)
            }
            Entry::File(staged, attributes) => {
                self.bytes = self.bytes.saturating_add(staged.size);
                if self.bytes > self.bounds.bytes {
                    return Err(WalkError::TooLarge(self.bounds.bytes));
                }
                let origin = attributes.origin(frame.host.handle(), name);
                let staged = Staged { origin, ..staged };
                if is_same_file(frame, name, &staged, &host) {
                    if staged.links > 1 && origin == Origin::Host {
                        self.linked.extend(attributes.copied_from());
                    }
                    return Ok(None);
                }
                if attributes.is_listed() && gives_more(frame, name, &host) {
                    return self.over(frame, name, path, What::Special, host);
                }
                if host == Host::Absent
                    && let Some(from) = attributes.copied_from()
                {
                    self.copies.push((self.changes.len(), from));
                }
                self.over(frame, name, path, What::File(staged), host)
            }
            Entry::Link(target) => match &host {
                Host::Link { target: present, .. } if *present == target => Ok(None),
                _ => self.over(frame, name, path, What::Link { target }, host),
            },
            Entry::Special { mode, device } => {
                let same = frame
                    .host
                    .handle()
                    .is_some_and(|host| layer::is_same_special(host, name, mode, device));
                if same && matches!(host, Host::Other(_)) {
                    return Ok(None);
                }
                self.over(frame, name, path, What::Special, host)
            }
        }
    }

    /// A folder of the stage.
    fn folder(
        &mut self,
        frame: &Frame,
        name: &OsStr,
        path: PathBuf,
        staged: StagedFolder,
        host: Host,
    ) -> Result<Option<Frame>, WalkError> {
        let StagedFolder { mode, view, listed } = staged;
        let below = match (&frame.host, &host) {
            (Below::Mounted(facts), _) => Below::Mounted(*facts),
            (Below::Folder(handle), Host::Folder(facts)) => {
                below(handle.as_fd(), name, *facts, &path)?
            }
            _ => Below::Nothing,
        };
        match &host {
            Host::Folder(facts) if facts.mode == mode => {}
            // The call saw the folder under the mount, not what is mounted.
            Host::Folder(_) if matches!(below, Below::Mounted(_)) => {}
            _ => self.push(path.clone(), What::Folder { mode }, host)?,
        }
        let Some(parent) = &frame.upper else { return Ok(None) };
        let upper = layer::open_folder(parent.as_fd(), name)
            .map_err(|error| stage_error(&path, error.into()))?;
        let view = if frame.view == View::Opaque { View::Opaque } else { view };
        let defaults = match (&below, listed) {
            (_, false) => Rc::default(),
            (Below::Folder(_), true) => below.defaults(),
            (Below::Nothing | Below::Mounted(_), true) => Rc::clone(&frame.defaults),
        };
        self.stage_frame(path, upper, below, view, defaults).map(Some)
    }

    /// Something that is no folder, or nothing, where the host may have a folder.
    fn over(
        &mut self,
        frame: &Frame,
        name: &OsStr,
        path: PathBuf,
        what: What,
        host: Host,
    ) -> Result<Option<Frame>, WalkError> {
        match (&host, &what) {
            (Host::Absent, What::Removed) => return Ok(None),
            // What is mounted there was not seen by the call, so it did not remove it.
            (Host::Other(_), What::Removed) if matches!(frame.host, Below::Mounted(_)) => {
                return Ok(None);
            }
            _ => {}
        }
        let Host::Folder(facts) = &host else {
            self.push(path, what, host)?;
            return Ok(None);
        };
        let Some(handle) = frame.host.handle() else { return Ok(None) };
        let below = below(handle, name, *facts, &path)?;
        let names = match &below {
            Below::Folder(handle) => self.list(handle.as_fd(), &path, Side::Host)?,
            // The folder under a mount looked empty to the call.
            Below::Nothing | Below::Mounted(_) => BTreeSet::new(),
        };
        let host = match &below {
            Below::Mounted(facts) => Host::Other(*facts),
            Below::Nothing | Below::Folder(_) => host,
        };
        let after = Some((path.clone(), what, host));
        let names = names.into_iter().rev().collect();
        let (view, defaults) = (View::Opaque, Rc::default());
        Ok(Some(Frame { path, upper: None, host: below, view, defaults, names, after }))
    }

    fn stage_frame(
        &mut self,
        path: PathBuf,
        upper: StageFolder,
        host: Below,
        view: View,
        defaults: Rc<[Grant]>,
    ) -> Result<Frame, WalkError> {
        let mut names = self.list(upper.as_fd(), &path, Side::Stage)?;
        if view == View::Opaque
            && let Below::Folder(handle) = &host
        {
            names.extend(self.list(handle.as_fd(), &path, Side::Host)?);
        }
        let names = names.into_iter().rev().collect();
        Ok(Frame { path, upper: Some(upper), host, view, defaults, names, after: None })
    }

    /// The names in a folder.
    fn list(
        &mut self,
        folder: BorrowedFd<'_>,
        path: &Path,
        side: Side,
    ) -> Result<BTreeSet<OsString>, WalkError> {
        let mut names = BTreeSet::new();
        let mut buffer = [MaybeUninit::uninit(); 16 * 1024];
        let mut entries = RawDir::new(folder, &mut buffer);
        while let Some(entry) = entries.next() {
            let entry = entry.map_err(|error| match side {
                Side::Stage => stage_error(path, error.into()),
                Side::Host => WalkError::Host { path: path.to_owned(), source: error },
            })?;
            let name = entry.file_name().to_bytes();
            if matches!(name, b"." | b"..") {
                continue;
            }
            self.entries += 1;
            if self.entries > self.bounds.entries {
                return Err(WalkError::TooMany(self.bounds.entries));
            }
            names.insert(OsStr::from_bytes(name).to_owned());
        }
        Ok(names)
    }

    fn push(&mut self, path: PathBuf, what: What, host: Host) -> Result<(), WalkError> {
        self.names = self.names.saturating_add(path.as_os_str().len());
        if self.names > self.bounds.names {
            return Err(WalkError::TooLong(self.bounds.names));
        }
        self.changes.push(Change { path, what, host, lost: false });
        Ok(())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Stage,
    Host,
}

fn stage_error(path: &Path, source: EntryError) -> WalkError {
    WalkError::Stage { path: path.to_owned(), source }
}

/// Opens a folder of the host, unless something is mounted there.
fn open_host(parent: BorrowedFd<'_>, name: &OsStr) -> Result<OwnedFd, Errno> {
    openat2(
        parent,
        name,
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        Mode::empty(),
        ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV,
    )
}

/// The host's folder `name`, which was seen with these facts.
fn below(
    parent: BorrowedFd<'_>,
    name: &OsStr,
    facts: Facts,
    path: &Path,
) -> Result<Below, WalkError> {
    match open_host(parent, name) {
        Ok(handle) => Ok(Below::Folder(handle)),
        Err(Errno::XDEV) => Ok(Below::Mounted(facts)),
        // Gone since, or something else by now; the apply step finds that the facts differ.
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(Below::Nothing),
        Err(source) => Err(WalkError::Host { path: path.to_owned(), source }),
    }
}

/// Whether the access lists of a staged entry give rights that neither the host's entry of that name gives,
/// nor the default list of the folder.
fn gives_more(frame: &Frame, name: &OsStr, host: &Host) -> bool {
    let Some(upper) = &frame.upper else { return true };
    let lists = [access::ACCESS, access::DEFAULT];
    let staged = access::grants(upper.as_fd(), name, &lists);
    let mut given = frame.defaults.to_vec();
    if let (Host::File(_), Some(folder)) = (host, frame.host.handle()) {
        given.extend(access::grants(folder, name, &[access::ACCESS]).unwrap_or_default());
    }
    access::gives_more(staged.as_deref(), &given)
}

/// Whether a staged file is what the host has: permission bits, size, then every byte.
fn is_same_file(frame: &Frame, name: &OsStr, staged: &Staged, host: &Host) -> bool {
    let (Host::File(facts), Some(upper), Some(below)) = (host, &frame.upper, frame.host.handle())
    else {
        return false;
    };
    if staged.mode != facts.mode || staged.size != facts.size {
        return false;
    }
    let open = |folder: BorrowedFd<'_>, expected: Identity| {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let handle = openat(folder, name, flags | OFlags::NOCTTY, Mode::empty()).ok()?;
        let stat = fstat(&handle).ok()?;
        let same = Identity { dev: stat.st_dev, ino: stat.st_ino } == expected;
        same.then(|| File::from(handle))
    };
    // What cannot be read is taken for changed.
    let Some(mine) = open(upper.as_fd(), staged.identity) else { return false };
    let Some(theirs) = open(below, facts.identity) else { return false };
    is_same_content(mine, theirs).unwrap_or(false)
}

fn is_same_content(mut one: File, mut two: File) -> std::io::Result<bool> {
    let mut blocks = (vec![0u8; BLOCK], vec![0u8; BLOCK]);
    loop {
        let length = fill(&mut one, &mut blocks.0)?;
        if fill(&mut two, &mut blocks.1)? != length || blocks.0[..length] != blocks.1[..length] {
            return Ok(false);
        }
        if length < BLOCK {
            return Ok(true);
        }
    }
}

/// Reads until the block is full or the file ends.
fn fill(file: &mut File, block: &mut [u8]) -> std::io::Result<usize> {
    let mut length = 0;
    while length < block.len() {
        match file.read(&mut block[length..]) {
            Ok(0) => break,
            Ok(read) => length += read,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(length)
}

#[cfg(test)]
#[path = "walk_tests.rs"]
mod tests;
