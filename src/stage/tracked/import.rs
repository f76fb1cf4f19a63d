//! Objects of a stage, taken over as git takes them from another repository.
//!
//! Git believes the name of an object that it finds in a repository, and what caches beside it say: a file
//! could stand there under the name of another one's content. So the staged files of a git folder's
//! objects are not applied. Git packs from them what the host does not have, and unpacks it into an empty
//! folder, where each object gets the name that its content has. If these names are those that were asked
//! for, that folder takes the place of the staged one; else the objects are refused. Removed objects stay,
//! and caches (commit graphs, indexes of several packs) are left out.
//!
//! Non-goals: which commits may come ([`super::refs`]). Trust boundary: all of the staged folder is the
//! adversary's.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::Path;
use std::time::Instant;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, linkat, openat, statat, unlinkat};
use rustix::io::Errno;

use super::layers::parse_id;
use super::objects::staged_objects;
use super::refs::RefsError;
use super::run::{Git, Objects, Streams, path_of};

/// From so many objects on they stay in one pack, as `git fetch` does it.
const UNPACK_LIMIT: usize = 100;

/// What is taken over.
pub struct Import<'a> {
    /// The host's git folder that has the objects.
    pub host: BorrowedFd<'a>,
    /// The same folder in the stage.
    pub staged: BorrowedFd<'a>,
    /// The host's git.
    pub git: &'a Path,
    /// A private folder on the file system of the stage.
    pub room: &'a Path,
    /// When it must be done.
    pub deadline: Instant,
}

/// Replaces the staged objects by those that the host does not have. Returns the commits among them.
///
/// # Errors
///
/// The objects are not what their names say, or it cannot be known. The stage may have fewer objects then.
pub fn import(import: &Import<'_>) -> Result<Vec<String>, RefsError> {
    let Some(staged) = staged_objects(import.staged)? else {
        // What the stage removes stays.
        return match unlinkat(import.staged, "objects", AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(Vec::new()),
            Err(error) => Err(RefsError::Read(error)),
        };
    };
    let Some(digits) = digits(&staged)? else {
        replace(&staged, None, import)?;
        return Ok(Vec::new());
    };
    let Import { git, host, room, deadline, .. } = *import;
    let git = Git::new(git, host, Some(&staged), room, digits, deadline)?;
    let files = git.scratch().join("files");
    link_files(&staged, &files, digits)?;
    let all = list(&git, &files)?;
    let new = missing(&git, all.iter().map(|(id, _)| id.as_str()))?;
    if new.is_empty() {
        replace(&staged, None, import)?;
        return Ok(Vec::new());
    }
    let fresh = git.scratch().join("fresh");
    unpack(&git, &files, &fresh, &new)?;
    let made = list(&git, &fresh)?;
    if !made.iter().map(|(id, _)| id).eq(new.iter()) {
        return Err(RefsError::Forged);
    }
    replace(&staged, Some(&fresh), import)?;
    Ok(made.into_iter().filter_map(|(id, kind)| (kind == Kind::Commit).then_some(id)).collect())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Commit,
    Other,
}

/// How many digits the names of objects have, if there are any.
fn digits(objects: &OwnedFd) -> Result<Option<usize>, RefsError> {
    for (folder, names) in entries(objects)? {
        for name in names {
            let length = match file_of(&folder, &name) {
                Some(Part::Loose) => name.len() + 2,
                Some(Part::Pack) => {
                    name.len() - PACK.len() - 4 - usize::from(name.ends_with(b".pack"))
                }
                None => continue,
            };
            if matches!(length, 40 | 64) {
                return Ok(Some(length));
            }
        }
    }
    Ok(None)
}

const PACK: &[u8] = b"pack-";

/// A file that git reads objects from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Loose,
    Pack,
}

fn file_of(folder: &[u8], name: &[u8]) -> Option<Part> {
    let hex = |text: &[u8]| text.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if folder.len() == 2 && hex(folder) && hex(name) {
        return Some(Part::Loose);
    }
    let stem = name.strip_suffix(b".pack").or_else(|| name.strip_suffix(b".idx"));
    let is_pack = folder == b"pack" && stem.is_some_and(|stem| stem.starts_with(PACK));
    is_pack.then_some(Part::Pack)
}

/// The name of a folder of objects, and those of the files in it.
type FolderNames = (Vec<u8>, Vec<Vec<u8>>);

/// The names of the files in each folder of objects.
fn entries(objects: &OwnedFd) -> Result<Vec<FolderNames>, RefsError> {
    let mut found = Vec::new();
    for top in names(objects.as_fd())? {
        if let Some(folder) = open_folder(objects.as_fd(), &top)? {
            let mut files = Vec::new();
            for name in names(folder.as_fd())? {
                let stat = statat(&folder, &name[..], AtFlags::SYMLINK_NOFOLLOW)
                    .map_err(RefsError::Read)?;
                // What the stage removes stays.
                if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile {
                    files.push(name);
                }
            }
            found.push((top, files));
        }
    }
    Ok(found)
}

fn names(folder: BorrowedFd<'_>) -> Result<Vec<Vec<u8>>, RefsError> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder).map_err(RefsError::Read)? {
        let name = entry.map_err(RefsError::Read)?.file_name().to_bytes().to_vec();
        if !matches!(&name[..], b"." | b"..") {
            names.push(name);
        }
    }
    Ok(names)
}

fn open_folder(at: BorrowedFd<'_>, name: &[u8]) -> Result<Option<OwnedFd>, RefsError> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::DIRECTORY;
    match openat(at, name, flags, Mode::empty()) {
        Ok(folder) => Ok(Some(folder)),
        Err(Errno::NOTDIR | Errno::LOOP | Errno::NXIO) => Ok(None),
        Err(error) => Err(RefsError::Read(error)),
    }
}

/// Puts the files that git reads objects from into a folder without whiteouts, caches and marks of the
/// overlay.
fn link_files(objects: &OwnedFd, into: &Path, digits: usize) -> Result<(), RefsError> {
    make_folder(into)?;
    for (folder, names) in entries(objects)? {
        let Some(from) = open_folder(objects.as_fd(), &folder)? else { continue };
        let to = into.join(bytes(&folder));
        let mut made = false;
        for name in names {
            let Some(part) = file_of(&folder, &name) else { continue };
            if part == Part::Loose && name.len() + 2 != digits {
                return Err(RefsError::Odd("the name of an object"));
            }
            if !made {
                make_folder(&to)?;
                made = true;
            }
            linkat(&from, &name[..], CWD, to.join(bytes(&name)), AtFlags::empty())
                .map_err(RefsError::Read)?;
        }
    }
    Ok(())
}

fn bytes(name: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(name))
}

fn make_folder(path: &Path) -> Result<(), RefsError> {
    DirBuilder::new().mode(0o755).create(path).map_err(RefsError::Io)
}

/// The ids of all objects in a folder, in order.
fn list(git: &Git<'_>, folder: &Path) -> Result<Vec<(String, Kind)>, RefsError> {
    let format = "--batch-check=%(objectname) %(objecttype)";
    let answer = git.run_with(
        Objects::Of(folder),
        &["cat-file", "--batch-all-objects", "--buffer", format],
        Streams::Text(b""),
    )?;
    let mut found = Vec::new();
    for line in answer.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let mut words = line.split(|byte| *byte == b' ');
        let id = parse_id(words.next().unwrap_or_default())?;
        found.push(match words.next() {
            Some(b"commit") => (id, Kind::Commit),
            Some(b"tree" | b"blob" | b"tag") => (id, Kind::Other),
            _ => return Err(RefsError::GitFailed),
        });
    }
    found.sort();
    found.dedup();
    Ok(found)
}

/// Those of the ids that the host does not have.
fn missing<'i>(
    git: &Git<'_>,
    ids: impl Iterator<Item = &'i str>,
) -> Result<BTreeSet<String>, RefsError> {
    let input: String = ids.flat_map(|id| [id, "\n"]).collect();
    let args = ["cat-file", "--batch-check=%(objectname) ok", "--buffer"];
    let answer = git.run_with(Objects::Host, &args, Streams::Text(input.as_bytes()))?;
    let mut missing = BTreeSet::new();
    for line in answer.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        if let Some(id) = line.strip_suffix(b" missing") {
            missing.insert(parse_id(id)?);
        } else if !line.ends_with(b" ok") {
            return Err(RefsError::GitFailed);
        }
    }
    Ok(missing)
}

/// Has git write objects anew.
fn unpack(git: &Git<'_>, from: &Path, to: &Path, ids: &BTreeSet<String>) -> Result<(), RefsError> {
    make_folder(to)?;
    let (asked, packed) = (git.scratch().join("ids"), git.scratch().join("pack"));
    let text: String = ids.iter().flat_map(|id| [id.as_str(), "\n"]).collect();
    fs::write(&asked, text).map_err(RefsError::Io)?;
    let open = |path: &Path| File::open(path).map_err(RefsError::Io);
    let pack = File::create(&packed).map_err(RefsError::Io)?;
    git.run_with(
        Objects::Of(from),
        &["pack-objects", "--stdout", "-q", "--window=0", "--delta-base-offset"],
        Streams::Files(open(&asked)?, Some(pack)),
    )?;
    let args: &[&str] = if ids.len() < UNPACK_LIMIT {
        &["unpack-objects", "-q"]
    } else {
        &["index-pack", "--stdin"]
    };
    git.run_with(Objects::Of(to), args, Streams::Files(open(&packed)?, None))?;
    Ok(())
}

/// Puts a folder, or nothing, in the place of the staged one.
fn replace(staged: &OwnedFd, fresh: Option<&Path>, import: &Import<'_>) -> Result<(), RefsError> {
    let place = path_of(staged)?;
    fs::remove_dir_all(&place).map_err(RefsError::Io)?;
    let Some(fresh) = fresh else { return Ok(()) };
    let mode = |name: &Path| {
        let path = Path::new("objects").join(name);
        let stat = statat(import.host, &path, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        Some(fs::Permissions::from_mode(stat.st_mode & 0o7777))
    };
    // The host's own folders keep their permissions.
    let take_over = || -> io::Result<()> {
        for entry in fs::read_dir(fresh)? {
            let entry = entry?;
            if let Some(mode) = mode(Path::new(&entry.file_name())) {
                fs::set_permissions(entry.path(), mode)?;
            } else if entry.file_type()?.is_dir() && fs::read_dir(entry.path())?.next().is_none() {
                fs::remove_dir(entry.path())?;
            }
        }
        if let Some(mode) = mode(Path::new("")) {
            fs::set_permissions(fresh, mode)?;
        }
        fs::rename(fresh, &place)
    };
    take_over().map_err(RefsError::Io)
}
