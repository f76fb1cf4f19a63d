//! The refs of a git folder in two layers: as the host has them, and with the stage on top.
//!
//! Duty: which refs a stage touches, and the value of a ref in both views. Non-goals: objects, the
//! reftable format (refused). Trust boundary: names and contents of the staged layer are the
//! adversary's. Symlinks are followed in neither layer.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read as _;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, fgetxattr, fstat, openat2, statat,
};
use rustix::io::Errno;

use super::refs::RefsError;

/// Longest name of a ref; git has no longer ones, as they are paths.
const MAX_NAME: usize = 4096;
/// Longest file of one ref.
const MAX_LOOSE: u64 = 8192;
/// Longest `packed-refs`.
const MAX_PACKED: u64 = 64 * 1024 * 1024;
/// Most entries below `refs` that are looked at.
const MAX_ENTRIES: usize = 200_000;
/// Longest chain of symbolic refs, as in git.
const MAX_CHAIN: usize = 5;

/// Files of a git folder where git keeps commits to go on with, or to go back to.
const KEPT: [&str; 8] = [
    "ORIG_HEAD",
    "MERGE_HEAD",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "REBASE_HEAD",
    "MERGE_AUTOSTASH",
    "BISECT_START",
    "BISECT_EXPECTED_REV",
];

/// Which of the two views is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum View {
    /// The host's refs.
    Host,
    /// The host's refs with the stage on top.
    Staged,
}

/// A ref as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Value {
    /// An object id in hexadecimal digits, 40 or 64.
    Id(String),
    /// The name of another ref.
    Symbolic(Vec<u8>),
}

/// What a layer has under a name.
#[derive(Debug)]
pub(super) enum Seen {
    /// Nothing: what is below shows through.
    Through,
    /// Nothing, and what is below is hidden.
    Hidden,
    File(OwnedFd),
    Folder(OwnedFd, Opaque),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opaque {
    Yes,
    No,
}

/// A git folder in two layers.
pub(super) struct Layers<'a> {
    host: BorrowedFd<'a>,
    staged: BorrowedFd<'a>,
    host_packed: BTreeMap<Vec<u8>, String>,
    staged_packed: Option<BTreeMap<Vec<u8>, String>>,
}

impl<'a> Layers<'a> {
    pub(super) fn open(host: BorrowedFd<'a>, staged: BorrowedFd<'a>) -> Result<Self, RefsError> {
        let mut layers = Self { host, staged, host_packed: BTreeMap::new(), staged_packed: None };
        for layer in [host, staged] {
            match statat(layer, "reftable", AtFlags::SYMLINK_NOFOLLOW) {
                Err(Errno::NOENT) => {}
                Ok(_) => return Err(RefsError::Reftable),
                Err(error) => return Err(RefsError::Read(error)),
            }
        }
        if let Seen::File(file) = look(host, b"packed-refs")? {
            layers.host_packed = parse_packed(&read(file, MAX_PACKED)?)?;
        }
        layers.staged_packed = match look(staged, b"packed-refs")? {
            Seen::Through => None,
            Seen::Hidden => Some(BTreeMap::new()),
            Seen::File(file) => Some(parse_packed(&read(file, MAX_PACKED)?)?),
            Seen::Folder(..) => return Err(RefsError::Odd("packed-refs")),
        };
        Ok(layers)
    }

    /// The names of all refs whose files the stage changes, hides or removes, without `HEAD`.
    pub(super) fn touched(&self) -> Result<BTreeSet<Vec<u8>>, RefsError> {
        let mut touched = BTreeSet::new();
        let mut budget = MAX_ENTRIES;
        let mut open = vec![b"refs".to_vec()];
        while let Some(name) = open.pop() {
            match look(self.staged, &name)? {
                Seen::Through => {}
                Seen::Hidden => self.host_below(name, &mut touched, &mut budget)?,
                Seen::File(_) => {
                    if !name.ends_with(b".lock") {
                        touched.insert(name);
                    }
                }
                Seen::Folder(folder, opaque) => {
                    open.extend(children(folder.as_fd(), &name, &mut budget)?);
                    if opaque == Opaque::Yes {
                        self.host_below(name, &mut touched, &mut budget)?;
                    }
                }
            }
        }
        if let Some(staged) = &self.staged_packed {
            let names = self.host_packed.keys().chain(staged.keys());
            let changed = names.filter(|name| self.host_packed.get(*name) != staged.get(*name));
            touched.extend(changed.cloned());
        }
        Ok(touched)
    }

    /// The `HEAD` files of linked worktrees that the stage has.
    pub(super) fn worktree_heads(&self) -> Result<Vec<Vec<u8>>, RefsError> {
        let folder = match look(self.staged, b"worktrees")? {
            Seen::Through | Seen::Hidden => return Ok(Vec::new()),
            Seen::File(_) => return Err(RefsError::Odd("worktrees")),
            Seen::Folder(folder, _) => folder,
        };
        let mut heads = Vec::new();
        for mut name in children(folder.as_fd(), b"worktrees", &mut MAX_ENTRIES.clone())? {
            name.extend_from_slice(b"/HEAD");
            match look(self.staged, &name)? {
                Seen::Through | Seen::Hidden => {}
                Seen::File(_) => heads.push(name),
                Seen::Folder(..) => return Err(RefsError::Odd("HEAD")),
            }
        }
        Ok(heads)
    }

    /// The ids in files of the stage where git keeps commits to go on with, or to go back to, with the name
    /// of the file: of the git folder and of its linked worktrees.
    pub(super) fn kept_ids(&self) -> Result<Vec<(Vec<u8>, String)>, RefsError> {
        let mut folders = vec![Vec::new()];
        if let Seen::Folder(folder, _) = look(self.staged, b"worktrees")? {
            folders.extend(children(folder.as_fd(), b"worktrees", &mut MAX_ENTRIES.clone())?);
        }
        let mut ids = Vec::new();
        for folder in folders {
            for name in KEPT {
                let name = if folder.is_empty() {
                    name.as_bytes().to_vec()
                } else {
                    [&folder[..], b"/", name.as_bytes()].concat()
                };
                let Seen::File(file) = look(self.staged, &name)? else { continue };
                let text = read(file, MAX_LOOSE)?;
                // A branch's name stands there too, and what is behind an id.
                let words = text.split(|byte| *byte == b'\n').filter_map(|line| {
                    parse_id(line.split(u8::is_ascii_whitespace).next().unwrap_or_default()).ok()
                });
                ids.extend(words.map(|id| (name.clone(), id)));
            }
        }
        Ok(ids)
    }

    /// The object id that a ref has in a view, or `None` if it names nothing.
    pub(super) fn resolve(&self, view: View, name: &[u8]) -> Result<Option<String>, RefsError> {
        let mut name = name.to_vec();
        for _ in 0..MAX_CHAIN {
            match self.value(view, &name)? {
                None => return Ok(None),
                Some(Value::Id(id)) => return Ok(Some(id)),
                Some(Value::Symbolic(target)) => name = target,
            }
        }
        Err(RefsError::Odd("a chain of symbolic refs"))
    }

    fn value(&self, view: View, name: &[u8]) -> Result<Option<Value>, RefsError> {
        let seen = match view {
            View::Host => Seen::Through,
            View::Staged => look(self.staged, name)?,
        };
        let seen = match seen {
            Seen::Through => look(self.host, name)?,
            seen => seen,
        };
        if let Seen::File(file) = seen {
            return parse_loose(&read(file, MAX_LOOSE)?).map(Some);
        }
        let packed = match view {
            View::Host => &self.host_packed,
            View::Staged => self.staged_packed.as_ref().unwrap_or(&self.host_packed),
        };
        Ok(packed.get(name).cloned().map(Value::Id))
    }

    /// Adds all loose refs that the host has at or below a name.
    fn host_below(
        &self,
        name: Vec<u8>,
        touched: &mut BTreeSet<Vec<u8>>,
        budget: &mut usize,
    ) -> Result<(), RefsError> {
        let mut open = vec![name];
        while let Some(name) = open.pop() {
            match look(self.host, &name)? {
                Seen::Through | Seen::Hidden => {}
                Seen::File(_) => {
                    if !name.ends_with(b".lock") {
                        touched.insert(name);
                    }
                }
                Seen::Folder(folder, _) => open.extend(children(folder.as_fd(), &name, budget)?),
            }
        }
        Ok(())
    }
}

/// What a layer has under a relative name.
pub(super) fn look(layer: BorrowedFd<'_>, name: &[u8]) -> Result<Seen, RefsError> {
    check_name(name)?;
    // The handle of the folder reached so far; the layer itself at the start.
    let mut folder: Option<OwnedFd> = None;
    let mut through = match is_opaque(layer)? {
        Opaque::Yes => Seen::Hidden,
        Opaque::No => Seen::Through,
    };
    let mut parts = name.split(|byte| *byte == b'/').peekable();
    while let Some(part) = parts.next() {
        let at = folder.as_ref().map_or(layer, |folder| folder.as_fd());
        let stat = match statat(at, part, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Ok(through),
            Err(error) => return Err(RefsError::Read(error)),
        };
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => {
                let next = openat2(at, part, flags | OFlags::DIRECTORY, Mode::empty(), beneath)
                    .map_err(RefsError::Read)?;
                let opaque = is_opaque(next.as_fd())?;
                if parts.peek().is_none() {
                    return Ok(Seen::Folder(next, opaque));
                }
                if opaque == Opaque::Yes {
                    through = Seen::Hidden;
                }
                folder = Some(next);
            }
            FileType::RegularFile if parts.peek().is_none() => {
                let file =
                    openat2(at, part, flags, Mode::empty(), beneath).map_err(RefsError::Read)?;
                return Ok(Seen::File(file));
            }
            // A file where a folder would have to be.
            FileType::RegularFile => return Ok(Seen::Hidden),
            FileType::CharacterDevice if stat.st_rdev == 0 => return Ok(Seen::Hidden),
            _ => return Err(RefsError::Odd("a ref that is no file")),
        }
    }
    Ok(through)
}

fn is_opaque(folder: BorrowedFd<'_>) -> Result<Opaque, RefsError> {
    let mut value = [0_u8; 8];
    match fgetxattr(folder, "user.overlay.opaque", &mut value[..]) {
        Ok(1) if value[0] == b'y' => Ok(Opaque::Yes),
        Ok(_) => Err(RefsError::Odd("an opaque mark")),
        Err(Errno::NODATA | Errno::OPNOTSUPP) => Ok(Opaque::No),
        Err(error) => Err(RefsError::Read(error)),
    }
}

fn children(
    folder: BorrowedFd<'_>,
    name: &[u8],
    budget: &mut usize,
) -> Result<Vec<Vec<u8>>, RefsError> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder).map_err(RefsError::Read)? {
        let entry = entry.map_err(RefsError::Read)?;
        let part = entry.file_name().to_bytes();
        if matches!(part, b"." | b"..") {
            continue;
        }
        *budget = budget.checked_sub(1).ok_or(RefsError::TooMany)?;
        names.push([name, b"/", part].concat());
    }
    Ok(names)
}

fn read(file: OwnedFd, most: u64) -> Result<Vec<u8>, RefsError> {
    let stat = fstat(&file).map_err(RefsError::Read)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(RefsError::Odd("a ref that is no file"));
    }
    let mut bytes = Vec::new();
    File::from(file).take(most + 1).read_to_end(&mut bytes).map_err(RefsError::Io)?;
    if bytes.len() as u64 > most { Err(RefsError::TooMany) } else { Ok(bytes) }
}

/// The name of a ref as a path: ordinary parts, nothing that git would not take.
fn check_name(name: &[u8]) -> Result<(), RefsError> {
    let ordinary = name.len() <= MAX_NAME
        && name.split(|byte| *byte == b'/').all(|part| !matches!(part, b"" | b"." | b".."))
        && !name.iter().any(u8::is_ascii_control);
    if ordinary { Ok(()) } else { Err(RefsError::Odd("the name of a ref")) }
}

fn parse_loose(bytes: &[u8]) -> Result<Value, RefsError> {
    if let Some(target) = bytes.strip_prefix(b"ref:") {
        let target = target.trim_ascii();
        check_name(target)?;
        // `.invalid` stands in `HEAD` where refs are kept in another format.
        if !target.starts_with(b"refs/") || target == b"refs/heads/.invalid" {
            return Err(RefsError::Odd("a symbolic ref"));
        }
        return Ok(Value::Symbolic(target.to_vec()));
    }
    // Git takes the first word.
    let id = bytes.split(u8::is_ascii_whitespace).next().unwrap_or_default();
    parse_id(id).map(Value::Id)
}

/// An object id: 40 or 64 lower-case hexadecimal digits.
pub(super) fn parse_id(id: &[u8]) -> Result<String, RefsError> {
    let digits = id.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    match std::str::from_utf8(id) {
        Ok(id) if digits && matches!(id.len(), 40 | 64) => Ok(id.to_owned()),
        _ => Err(RefsError::Odd("an object id")),
    }
}

fn parse_packed(bytes: &[u8]) -> Result<BTreeMap<Vec<u8>, String>, RefsError> {
    let mut refs = BTreeMap::new();
    for line in bytes.split(|byte| *byte == b'\n') {
        // A heading, or what the tag above it peels to.
        if line.is_empty() || line.starts_with(b"#") || line.starts_with(b"^") {
            continue;
        }
        let space = line.iter().position(|byte| *byte == b' ');
        let (id, name) = line.split_at(space.ok_or(RefsError::Odd("a line of packed-refs"))?);
        let name = &name[1..];
        check_name(name)?;
        if !name.starts_with(b"refs/") {
            return Err(RefsError::Odd("the name of a ref"));
        }
        refs.insert(name.to_vec(), parse_id(id)?);
    }
    Ok(refs)
}
