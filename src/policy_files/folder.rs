//! Opening policy files, and the configuration beside them: every check on a handle, nothing by name twice.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use runner_policy::finding::{At, Finding};
use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, ResolveFlags, Stat, fstat, openat, openat2};
use rustix::io::Errno;

use super::choice::is_name;

/// Largest policy file that is read; the policy crate refuses the same size.
const MAX_BYTES: u64 = 1 << 20;
/// Most policy files in one folder.
const MAX_FILES: usize = 256;

/// Who may have written a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writers {
    /// Whoever can: the layer is believed for another reason.
    Anyone,
    /// Root alone, by owner and mode.
    RootOnly,
}

/// A policy file as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyFile {
    /// The name without its ending.
    pub stem: String,
    /// As shown in messages.
    pub file: String,
    /// Its text.
    pub text: String,
}

/// Reads every `*.yml` in `base/below`. A folder that does not exist holds nothing.
pub fn read_folder(
    base: &Path,
    below: &str,
    writers: Writers,
    findings: &mut Vec<Finding>,
) -> Vec<PolicyFile> {
    let shown = base.join(below);
    let folder = match open_folder(base, below, writers) {
        Ok(Some(folder)) => folder,
        Ok(None) => return Vec::new(),
        Err(problem) => {
            findings.push(problem.finding(&shown));
            return Vec::new();
        }
    };
    let mut names = match names(&folder) {
        Ok(names) => names,
        Err(errno) => {
            findings.push(Problem::Unreadable(errno.into()).finding(&shown));
            return Vec::new();
        }
    };
    if names.len() > MAX_FILES {
        findings.push(Problem::TooMany(names.len()).finding(&shown));
        return Vec::new();
    }
    // The order in which a file system lists names must not show anywhere.
    names.sort();
    let mut read = Vec::new();
    for name in names {
        let file = shown.join(OsStr::from_bytes(&name));
        match read_entry(&folder, &name, writers) {
            Ok((stem, text)) => {
                read.push(PolicyFile { stem, file: file.display().to_string(), text })
            }
            Err(problem) => findings.push(problem.finding(&file)),
        }
    }
    read
}

/// Reads the one file that the caller named. Links are followed: the caller chose the path.
pub fn read_given(path: &Path, findings: &mut Vec<Finding>) -> Option<PolicyFile> {
    let read = || {
        let stem = stem_of(path.file_name().unwrap_or_default().as_bytes())?;
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let handle = openat(CWD, path, flags, Mode::empty()).map_err(Problem::opening)?;
        Ok((stem, read_handle(handle, Writers::Anyone)?))
    };
    match read() {
        Ok((stem, text)) => Some(PolicyFile { stem, file: path.display().to_string(), text }),
        Err(problem) => {
            let problem: Problem = problem;
            findings.push(problem.finding(path));
            None
        }
    }
}

/// Opens `base/below` one component at a time, so that each can be checked and none is a link.
pub(crate) fn open_folder(
    base: &Path,
    below: &str,
    writers: Writers,
) -> Result<Option<OwnedFd>, Problem> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut folder = match openat(CWD, base, flags, Mode::empty()) {
        Ok(folder) => folder,
        Err(Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(Problem::Unreadable(errno.into())),
    };
    for part in below.split('/') {
        folder = match openat(&folder, part, flags | OFlags::NOFOLLOW, Mode::empty()) {
            Ok(next) => next,
            Err(Errno::NOENT) => return Ok(None),
            // A link in place of a folder is ENOTDIR here, because of O_DIRECTORY.
            Err(Errno::NOTDIR | Errno::LOOP) => return Err(Problem::NotAFolder),
            Err(errno) => return Err(Problem::Unreadable(errno.into())),
        };
        check_writers(&stat(&folder)?, writers)?;
    }
    Ok(Some(folder))
}

/// The names in a folder that are, or look like, policies.
fn names(folder: &OwnedFd) -> Result<Vec<Vec<u8>>, Errno> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let name = entry?.file_name().to_bytes().to_vec();
        let looks = name.ends_with(b".yml") || name.ends_with(b".yaml");
        if looks && !name.starts_with(b".") {
            names.push(name);
        }
    }
    Ok(names)
}

fn read_entry(
    folder: &OwnedFd,
    name: &[u8],
    writers: Writers,
) -> Result<(String, String), Problem> {
    let stem = stem_of(name)?;
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let within = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let handle = openat2(folder, name, flags, Mode::empty(), within).map_err(Problem::opening)?;
    Ok((stem, read_handle(handle, writers)?))
}

fn stem_of(name: &[u8]) -> Result<String, Problem> {
    let name = str::from_utf8(name).map_err(|_| Problem::BadName)?;
    let stem = name.strip_suffix(".yml").ok_or(Problem::WrongEnding)?;
    if is_name(stem) { Ok(stem.to_owned()) } else { Err(Problem::BadName) }
}

/// Reads a regular file whole, within bounds.
pub(crate) fn read_handle(handle: OwnedFd, writers: Writers) -> Result<String, Problem> {
    let stat = stat(&handle)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(Problem::NotAFile);
    }
    check_writers(&stat, writers)?;
    let mut bytes = Vec::new();
    // The size in `stat` may be out of date; the cap holds for what arrives.
    let file = std::fs::File::from(handle);
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(Problem::Unreadable)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(Problem::TooLarge);
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        Problem::NotUtf8(position(&error.as_bytes()[..valid]))
    })
}

/// Line and column of the byte after `before`.
fn position(before: &[u8]) -> At {
    let text = str::from_utf8(before).unwrap_or_default();
    let line = text.matches('\n').count() + 1;
    let column = text.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    let bounded = |figure: usize| u32::try_from(figure).unwrap_or(u32::MAX);
    At { line: bounded(line), column: bounded(column), width: 1 }
}

fn stat(handle: impl AsFd) -> Result<Stat, Problem> {
    fstat(handle).map_err(|errno| Problem::Unreadable(errno.into()))
}

fn check_writers(stat: &Stat, writers: Writers) -> Result<(), Problem> {
    match writers {
        Writers::Anyone => Ok(()),
        Writers::RootOnly if stat.st_uid != 0 => Err(Problem::NotRoots(stat.st_uid)),
        Writers::RootOnly if stat.st_mode & 0o022 != 0 => Err(Problem::WritableByOthers),
        Writers::RootOnly => Ok(()),
    }
}

/// What is wrong with a file or folder before its text is looked at.
#[derive(Debug)]
pub(crate) enum Problem {
    Missing,
    Unreadable(io::Error),
    NotAFile,
    NotAFolder,
    LinkOutside,
    TooLarge,
    TooMany(usize),
    NotUtf8(At),
    BadName,
    WrongEnding,
    NotRoots(u32),
    WritableByOthers,
}

impl Problem {
    pub(crate) fn opening(errno: Errno) -> Self {
        match errno {
            Errno::NOENT => Self::Missing,
            // openat2 reports leaving the folder, by a link or otherwise, as EXDEV.
            Errno::XDEV => Self::LinkOutside,
            errno => Self::Unreadable(errno.into()),
        }
    }

    fn finding(self, file: &Path) -> Finding {
        let mut at = At::default();
        let (code, message, help): (_, String, Option<String>) = match self {
            Self::Missing => ("policy_missing", "there is no such file".into(), None),
            Self::Unreadable(error) => (
                "policy_unreadable",
                format!("cannot be read: {error}"),
                Some("a policy that cannot be read stops every run; make it readable or remove it".into()),
            ),
            Self::NotAFile => {
                ("policy_not_a_file", "is not a regular file".into(), Some("a policy is a file NAME.yml".into()))
            }
            Self::NotAFolder => (
                "policy_folder_invalid",
                "is not a folder, or is reached through a link".into(),
                Some("make it a real folder; links could lead to policies of another user".into()),
            ),
            Self::LinkOutside => (
                "policy_link_outside",
                "is a link that leads out of its folder".into(),
                Some("copy the file here; only links within the folder are followed".into()),
            ),
            Self::TooLarge => (
                "too_large",
                format!("has more than {MAX_BYTES} bytes"),
                Some("split it and join the parts with extends".into()),
            ),
            Self::TooMany(count) => (
                "too_many_policies",
                format!("holds {count} policies; at most {MAX_FILES} are read"),
                Some("move what is not used elsewhere".into()),
            ),
            Self::NotUtf8(place) => {
                at = place;
                ("not_utf8", "is not valid UTF-8 from here on".into(), Some("save it as UTF-8".into()))
            }
            Self::BadName => (
                "policy_name_invalid",
                "is not a usable name for a policy".into(),
                Some("use small letters, digits, - and _, beginning with a letter, and the ending .yml".into()),
            ),
            Self::WrongEnding => (
                "policy_name_invalid",
                "does not end in .yml, so it would be ignored".into(),
                Some("rename it to NAME.yml, or move it out of the folder".into()),
            ),
            Self::NotRoots(uid) => (
                "managed_not_root",
                format!("belongs to user {uid}; managed policies must belong to root"),
                Some(format!("chown root:root {}", file.display())),
            ),
            Self::WritableByOthers => (
                "managed_writable",
                "can be changed by others than root".into(),
                Some(format!("chmod go-w {}", file.display())),
            ),
        };
        Finding {
            code,
            file: file.display().to_string(),
            at,
            message,
            help,
            excerpt: String::new(),
        }
    }
}

#[cfg(test)]
#[path = "folder_tests.rs"]
mod tests;
