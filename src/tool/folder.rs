//! Opening tool files: every check on a handle, no link followed, sizes and counts bounded.
//!
//! Trust boundary: a workspace's folder is the adversary's. A link in it could make a stranger's
//! file into a tool, or show one in an error, so none is followed, not even inside the folder.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use runner_policy::finding::{At, Finding};
use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2};
use rustix::io::Errno;

use super::builtin::BuiltIn;
use crate::ids::ToolName;
use crate::ids::tool_name::FORM;

/// Largest file of a tool. Bundles of generated code do not belong here.
pub const MAX_BYTES: u64 = 1 << 20;
/// Most tools in one folder.
const MAX_TOOLS: usize = 256;
/// Most names in one folder that are looked at.
const MAX_NAMES: usize = 10_000;

/// The forms of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// `NAME.yml`: everything in one file.
    Yaml,
    /// `NAME.tool.ts` or `NAME.tool.js`: a module that says of itself what it is.
    Module,
    /// A function of this program.
    BuiltIn,
    /// A tool of an MCP server.
    Mcp,
}

/// A file as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolFile {
    /// The name, by its file.
    pub name: ToolName,
    /// Which form, by its ending.
    pub form: Form,
    /// The file's own name.
    pub file: String,
    /// Its text.
    pub text: String,
}

/// A file or folder by device and number: two ways to it are one.
pub type Identity = (u64, u64);

/// An open folder of tools.
#[derive(Debug)]
pub struct Folder {
    handle: OwnedFd,
    /// Which folder it is.
    pub identity: Identity,
}

/// What became of one file.
pub type Outcome = Result<ToolFile, Box<(Option<ToolName>, Finding)>>;

impl Folder {
    /// Opens `base/below`; below the base no component is a link. `None` if there is none.
    ///
    /// # Errors
    /// It is there, and is no folder that can be used.
    pub fn open(base: &Path, below: &str) -> Result<Option<Self>, Box<Finding>> {
        let shown = if below.is_empty() { base.to_owned() } else { base.join(below) };
        let failed = |problem: Problem| Box::new(problem.finding(&shown));
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut handle = match openat(CWD, base, flags, Mode::empty()) {
            Ok(handle) => handle,
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::NOTDIR) => return Err(failed(Problem::NoFolder("it is not a folder"))),
            Err(errno) => return Err(failed(Problem::Unreadable(errno.into()))),
        };
        for part in below.split('/').filter(|part| !part.is_empty()) {
            handle = match openat(&handle, part, flags | OFlags::NOFOLLOW, Mode::empty()) {
                Ok(next) => next,
                Err(Errno::NOENT) => return Ok(None),
                // A link in place of a folder is ENOTDIR here, because of O_DIRECTORY.
                Err(Errno::NOTDIR | Errno::LOOP) => return Err(failed(Problem::NotAFolder)),
                Err(errno) => return Err(failed(Problem::Unreadable(errno.into()))),
            };
        }
        let stat = fstat(&handle).map_err(|errno| failed(Problem::Unreadable(errno.into())))?;
        Ok(Some(Self { handle, identity: (stat.st_dev, stat.st_ino) }))
    }

    /// Reads every tool in it, in the order of names.
    ///
    /// # Errors
    /// The folder cannot be listed, or holds too much.
    pub fn read(&self, shown: &Path) -> Result<Vec<Outcome>, Box<Finding>> {
        let mut names = self.names().map_err(|problem| Box::new(problem.finding(shown)))?;
        names.sort();
        Ok(names.iter().map(|name| self.tool(name, &shown.join(OsStr::from_bytes(name)))).collect())
    }

    /// The names that are, or look like, tools.
    fn names(&self) -> Result<Vec<Vec<u8>>, Problem> {
        let unreadable = |errno: Errno| Problem::Unreadable(errno.into());
        let mut names = Vec::new();
        for (count, entry) in Dir::read_from(&self.handle).map_err(unreadable)?.enumerate() {
            let name = entry.map_err(unreadable)?.file_name().to_bytes().to_vec();
            if count > MAX_NAMES {
                return Err(Problem::TooMany(MAX_NAMES));
            }
            if looks_like_a_tool(&name) {
                names.push(name);
            }
        }
        if names.len() > MAX_TOOLS { Err(Problem::TooMany(MAX_TOOLS)) } else { Ok(names) }
    }

    /// Reads one of them.
    pub fn tool(&self, name: &[u8], shown: &Path) -> Outcome {
        let (stem, form) =
            split(name).map_err(|problem| Box::new((None, problem.finding(shown))))?;
        let failed = |problem: Problem| Box::new((Some(stem.clone()), problem.finding(shown)));
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let within =
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let handle = openat2(&self.handle, name, flags, Mode::empty(), within)
            .map_err(|errno| failed(Problem::opening(errno)))?;
        let text = read(handle).map_err(failed)?;
        let file = String::from_utf8_lossy(name).into_owned();
        Ok(ToolFile { name: stem, form, file, text })
    }
}

fn looks_like_a_tool(name: &[u8]) -> bool {
    let Ok(name) = str::from_utf8(name) else { return name.ends_with(b".yml") };
    !name.starts_with('.')
        && (name.ends_with(".yml") || name.ends_with(".yaml") || name.contains(".tool."))
}

/// The name of the tool and its form, by the name of the file.
fn split(name: &[u8]) -> Result<(ToolName, Form), Problem> {
    let name = str::from_utf8(name).map_err(|_| Problem::BadName)?;
    let module = || name.strip_suffix(".tool.ts").or_else(|| name.strip_suffix(".tool.js"));
    let (stem, form) = match (module(), name.strip_suffix(".yml")) {
        (Some(stem), _) => (stem, Form::Module),
        (None, Some(stem)) => (stem, Form::Yaml),
        (None, None) => return Err(Problem::WrongEnding),
    };
    stem.parse().map(|stem| (stem, form)).map_err(|_| Problem::BadName)
}

fn read(handle: OwnedFd) -> Result<String, Problem> {
    let stat = fstat(&handle).map_err(|errno| Problem::Unreadable(errno.into()))?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(Problem::NotAFile);
    }
    let mut bytes = Vec::new();
    // The size in `stat` may be out of date; the cap holds for what arrives.
    let file = std::fs::File::from(handle);
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(Problem::Unreadable)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(Problem::TooLarge);
    }
    String::from_utf8(bytes).map_err(|_| Problem::NotUtf8)
}

/// What is wrong with a file or folder before its text is looked at.
#[derive(Debug)]
enum Problem {
    Missing,
    Unreadable(io::Error),
    NotAFile,
    NotAFolder,
    NoFolder(&'static str),
    Link,
    TooLarge,
    TooMany(usize),
    NotUtf8,
    BadName,
    WrongEnding,
}

impl Problem {
    fn opening(errno: Errno) -> Self {
        match errno {
            Errno::NOENT => Self::Missing,
            Errno::LOOP | Errno::XDEV => Self::Link,
            errno => Self::Unreadable(errno.into()),
        }
    }

    fn finding(self, file: &Path) -> Finding {
        let (code, message, help) = match self {
            Self::Missing => ("tool_missing", "there is no such file".to_owned(), None),
            Self::Unreadable(error) => {
                ("tool_unreadable", format!("cannot be read: {error}"), None)
            }
            Self::NotAFile => (
                "tool_not_a_file",
                "is not a regular file".to_owned(),
                Some("a tool is a file NAME.yml, NAME.tool.ts or NAME.tool.js".to_owned()),
            ),
            Self::NotAFolder => (
                "tool_folder_invalid",
                "is not a folder, or is reached through a link".to_owned(),
                Some("make it a real folder, or name it with --tools".to_owned()),
            ),
            Self::NoFolder(why) => ("tool_folder_invalid", why.to_owned(), None),
            Self::Link => (
                "tool_link",
                "is a link".to_owned(),
                Some("copy the file here; links could lead to files of another user".to_owned()),
            ),
            Self::TooLarge => (
                "too_large",
                format!("has more than {MAX_BYTES} bytes"),
                Some("move parts to modules that it imports".to_owned()),
            ),
            Self::TooMany(most) => (
                "too_many_tools",
                format!("holds more than {most} files; no more are looked at"),
                Some("move what is not used elsewhere".to_owned()),
            ),
            Self::NotUtf8 => {
                ("not_utf8", "is not valid UTF-8".to_owned(), Some("save it as UTF-8".to_owned()))
            }
            Self::BadName => ("bad_name", "does not name a tool".to_owned(), Some(FORM.to_owned())),
            Self::WrongEnding => (
                "bad_name",
                "has an ending that no tool has, so it would be ignored".to_owned(),
                Some("rename it to NAME.yml, NAME.tool.ts or NAME.tool.js".to_owned()),
            ),
        };
        let file = file.display().to_string();
        Finding { code, file, at: At::default(), message, help, excerpt: String::new() }
    }
}

/// A folder that the caller named and that is not there.
pub(super) fn no_folder(path: &Path) -> Finding {
    Problem::NoFolder("there is no such folder").finding(path)
}

/// A folder that the caller named where the managed configuration allows no custom tools.
pub(super) fn not_local(path: &Path) -> Finding {
    Problem::NoFolder("the managed configuration says `disableLocalTools`").finding(path)
}

/// A file that the caller named and that is not there.
pub(super) fn missing(path: &Path) -> Finding {
    Problem::Missing.finding(path)
}

/// A tool that is part of this program.
pub(super) fn built_in(tool: &BuiltIn) -> Option<ToolFile> {
    let name = tool.name.parse().ok()?;
    Some(ToolFile { name, form: Form::BuiltIn, file: tool.file(), text: tool.text.to_owned() })
}

/// A tool that we ship, by the name of its file.
pub(super) fn shipped(file: &str, text: &str) -> Option<ToolFile> {
    let (name, form) = split(file.as_bytes()).ok()?;
    Some(ToolFile { name, form, file: file.to_owned(), text: text.to_owned() })
}
