//! What makes git run nothing of a repository, for calls without `code`.
//!
//! Duty: values that are stronger than a repository's configuration, passed by git's own variables. Most keys are fixed.
//! Filters, diff and merge drivers have names of the repository's choice, so its configuration is read for
//! those names, in every repository of the workspace, submodules included. Non-goals: hooks and configuration are
//! kept from being written elsewhere (`protected`). Trust boundary: the configuration is the adversary's. It is read more
//! generously than git reads it: a name too many does no harm. What cannot be read safely is an error, and then git
//! does not work in that sandbox.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2};
use rustix::io::Errno;

use crate::workspace::Workspace;
use crate::workspace::grants::Writes;

/// Variables that are stronger than the same settings in a repository.
pub(super) const VARIABLES: [(&str, &str); 5] = [
    ("GIT_PAGER", "cat"),
    // A repository can lack objects and name the program that fetches them.
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_SSH_COMMAND", "ssh"),
    ("GIT_PROXY_COMMAND", ""),
    ("GIT_ASKPASS", ""),
];

/// Keys that run programs and have one name.
pub(super) const FIXED: [(&str, &str); 10] = [
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("core.alternateRefsCommand", "true"),
    ("log.showSignature", "false"),
    ("gpg.program", "gpg"),
    ("gpg.openpgp.program", "gpg"),
    ("gpg.x509.program", "gpgsm"),
    ("gpg.ssh.program", "ssh-keygen"),
    ("credential.helper", ""),
    ("protocol.ext.allow", "never"),
];

/// Stands in for a program that shows differences: it is given path, old file, its digest and mode, and the same of the
/// new one.
const DIFF: &str =
    r#"f() { [ "$#" -lt 7 ] || diff -u --label "a/$1" --label "b/$1" "$2" "$5"; return 0; }; f"#;

/// Largest file that is read.
const MAX_BYTES: u64 = 1 << 20;
/// Most files of all repositories together.
const MAX_FILES: usize = 1_024;
/// Most keys that are passed: all of them are variables of every process.
const MAX_KEYS: usize = 512;
/// Deepest nesting of included files and of submodules.
const MAX_DEPTH: usize = 10;

/// Why a configuration cannot be read safely.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(super) enum Unsafe {
    /// A file is too large, no text, or not a configuration.
    #[error("{0} cannot be read")]
    Unreadable(PathBuf),
    /// It includes a file that could be written while git runs.
    #[error("it includes {0}, which could change meanwhile")]
    Included(PathBuf),
    /// There are too many files or names.
    #[error("there are too many repositories or drivers")]
    TooMany,
}

/// Values for keys that repositories define. `found` are the `.git` entries of the workspace, `outside` the git folder that
/// is shown from elsewhere.
///
/// # Errors
/// What they define cannot be told.
pub(super) fn overrides(
    workspace: &Workspace,
    found: &BTreeSet<PathBuf>,
    outside: Option<&Path>,
    writes: Writes,
) -> Result<BTreeMap<String, String>, Unsafe> {
    let mut reader =
        Reader { root: workspace.root(), writes, seen: BTreeSet::new(), keys: BTreeMap::new() };
    let inside = workspace.handle();
    for path in found {
        reader.entry(inside, path)?;
    }
    // The folder of the call and those above it can be repositories without a `.git`.
    let below = workspace.cwd().strip_prefix(workspace.root()).unwrap_or(Path::new(""));
    for folder in below.ancestors() {
        reader.folder(inside, folder, 0)?;
    }
    if let Some(path) = outside {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = openat(CWD, path, flags, Mode::empty())
            .map_err(|_| Unsafe::Unreadable(path.to_owned()))?;
        let other = Reader { root: path, seen: BTreeSet::new(), ..reader };
        reader = other.of(folder.as_fd(), workspace.root())?;
    }
    Ok(reader.keys)
}

struct Reader<'a> {
    /// Where the paths start that are read.
    root: &'a Path,
    writes: Writes,
    /// Files that were read, below the root.
    seen: BTreeSet<PathBuf>,
    keys: BTreeMap<String, String>,
}

impl<'a> Reader<'a> {
    /// Reads a whole git folder that lies elsewhere, and goes back to where it came from.
    fn of(mut self, folder: BorrowedFd<'_>, root: &'a Path) -> Result<Self, Unsafe> {
        self.folder(folder, Path::new(""), 0)?;
        Ok(Self { root, seen: BTreeSet::new(), ..self })
    }

    /// A `.git`: a folder, or a file that says where it is.
    fn entry(&mut self, base: BorrowedFd<'_>, path: &Path) -> Result<(), Unsafe> {
        let parent = path.parent().unwrap_or(Path::new(""));
        match read(base, path) {
            Ok(Some(text)) => match text.trim().strip_prefix("gitdir:") {
                Some(to) => match self.inside(parent, to.trim()) {
                    Some(folder) => self.folder(base, &folder, 0),
                    None => Ok(()),
                },
                None => Ok(()),
            },
            Ok(None) => self.folder(base, path, 0),
            Err(()) => Err(Unsafe::Unreadable(path.to_owned())),
        }
    }

    /// A folder that may be a git folder.
    fn folder(&mut self, base: BorrowedFd<'_>, folder: &Path, depth: usize) -> Result<(), Unsafe> {
        if depth > MAX_DEPTH {
            return Err(Unsafe::TooMany);
        }
        if open(base, &folder.join("HEAD")).is_none() {
            return Ok(());
        }
        for name in ["config", "config.worktree"] {
            self.file(base, &folder.join(name), 0)?;
        }
        if let Ok(Some(common)) = read(base, &folder.join("commondir"))
            && let Some(common) = self.inside(folder, common.trim())
            && common != folder
        {
            self.folder(base, &common, depth + 1)?;
        }
        self.modules(base, &folder.join("modules"), depth + 1)
    }

    /// The git folders of submodules; their names can have slashes.
    fn modules(&mut self, base: BorrowedFd<'_>, folder: &Path, depth: usize) -> Result<(), Unsafe> {
        if depth > MAX_DEPTH {
            return Err(Unsafe::TooMany);
        }
        for name in folders(base, folder) {
            let path = folder.join(name);
            if open(base, &path.join("HEAD")).is_some() {
                self.folder(base, &path, depth)?;
            } else {
                self.modules(base, &path, depth + 1)?;
            }
        }
        Ok(())
    }

    /// A path that a file in `folder` names, below the root; `None` if it lies elsewhere, where no sandbox sees it.
    fn inside(&self, folder: &Path, named: &str) -> Option<PathBuf> {
        let whole = self.root.join(folder).join(named);
        let mut plain = PathBuf::new();
        for part in whole.components() {
            match part {
                Component::ParentDir => drop(plain.pop()),
                Component::CurDir => {}
                part => plain.push(part),
            }
        }
        plain.strip_prefix(self.root).ok().map(Path::to_owned)
    }

    /// One configuration file and what it includes.
    fn file(&mut self, base: BorrowedFd<'_>, path: &Path, depth: usize) -> Result<(), Unsafe> {
        if !self.seen.insert(path.to_owned()) {
            return Ok(());
        }
        if self.seen.len() > MAX_FILES || depth > MAX_DEPTH {
            return Err(Unsafe::TooMany);
        }
        let unreadable = || Unsafe::Unreadable(path.to_owned());
        let Some(text) = read(base, path).map_err(|()| unreadable())? else { return Ok(()) };
        for (key, value) in settings(&text).ok_or_else(unreadable)? {
            if let Some(included) = included(&key, &value) {
                self.include(base, path, included, depth)?;
            }
            for (key, value) in harmless(&key) {
                self.keys.insert(key, value);
            }
            if self.keys.len() > MAX_KEYS {
                return Err(Unsafe::TooMany);
            }
        }
        Ok(())
    }

    fn include(
        &mut self,
        base: BorrowedFd<'_>,
        from: &Path,
        named: &str,
        depth: usize,
    ) -> Result<(), Unsafe> {
        // The home of a sandbox is empty.
        if named.starts_with('~') {
            return Ok(());
        }
        let written = || Err(Unsafe::Included(PathBuf::from(named)));
        let Some(path) = self.inside(from.parent().unwrap_or(Path::new("")), named) else {
            let scratch = Path::new(named).starts_with("/tmp") || named.contains("%(");
            return if scratch { written() } else { Ok(()) };
        };
        let guarded = path.iter().any(|part| part == ".git");
        if !guarded && self.writes == Writes::Some {
            return written();
        }
        self.file(base, &path, depth + 1)
    }
}

fn open(base: BorrowedFd<'_>, path: &Path) -> Option<OwnedFd> {
    opened(base, path, OFlags::PATH).ok()
}

fn opened(base: BorrowedFd<'_>, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    openat2(base, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve)
}

/// The text of a file; `None` if there is none.
fn read(base: BorrowedFd<'_>, path: &Path) -> Result<Option<String>, ()> {
    let handle = match opened(base, path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY) {
        Ok(handle) => handle,
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
        Err(_) => return Err(()),
    };
    let stat = fstat(&handle).map_err(drop)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => {}
        FileType::Directory => return Ok(None),
        _ => return Err(()),
    }
    let mut text = String::new();
    let read = File::from(handle).take(MAX_BYTES + 1).read_to_string(&mut text);
    match read {
        Ok(length) if length as u64 <= MAX_BYTES => Ok(Some(text)),
        Ok(_) | Err(_) => Err(()),
    }
}

/// The folders in a folder.
fn folders(base: BorrowedFd<'_>, folder: &Path) -> Vec<PathBuf> {
    use std::os::unix::ffi::OsStrExt;
    let Ok(handle) = opened(base, folder, OFlags::RDONLY | OFlags::DIRECTORY) else {
        return Vec::new();
    };
    let Ok(entries) = Dir::read_from(&handle) else { return Vec::new() };
    let names = entries.filter_map(Result::ok).map(|entry| entry.file_name().to_owned());
    let names = names.filter(|name| !matches!(name.to_bytes(), b"." | b".."));
    let path = |name: std::ffi::CString| {
        PathBuf::from(std::ffi::OsStr::from_bytes(name.to_bytes()).to_owned())
    };
    names.take(MAX_FILES).map(path).collect()
}

/// Every key with its value. A line that may continue the one before is taken for a line of its own as well.
/// `None` where git itself would stop.
fn settings(text: &str) -> Option<Vec<(String, String)>> {
    let blank = |c: char| c.is_ascii_whitespace() || c == '\u{b}';
    let mut found = Vec::new();
    let mut section = String::new();
    let mut continued = false;
    for line in text.strip_prefix('\u{feff}').unwrap_or(text).split('\n') {
        let may_continue =
            std::mem::replace(&mut continued, line.trim_end_matches('\r').ends_with('\\'));
        let mut rest = line.trim_start_matches(blank);
        while rest.starts_with('[') {
            match header(rest) {
                Some((name, after)) => {
                    section = name;
                    rest = after.trim_start_matches(blank);
                }
                None if may_continue => break,
                None => return None,
            }
        }
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '-').unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        if !name.is_empty() {
            let value = after.trim_start_matches(blank).strip_prefix('=').unwrap_or("true");
            let value = value.trim_matches(blank).trim_matches('"');
            found.push((format!("{section}.{}", name.to_ascii_lowercase()), value.to_owned()));
        }
    }
    Some(found)
}

/// `[section]`, `[section.sub]` or `[section "sub"]` as the beginning of a key, and what follows.
fn header(text: &str) -> Option<(String, &str)> {
    let inner = text.strip_prefix('[')?;
    let end = inner.find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '.'))?;
    let (base, rest) = inner.split_at(end);
    let mut name = base.to_ascii_lowercase();
    if let Some(after) = rest.strip_prefix(']') {
        return Some((name, after));
    }
    let quoted = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '\u{b}');
    name.push('.');
    let mut chars = quoted.strip_prefix('"')?.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return quoted.get(at + 2..)?.strip_prefix(']').map(|after| (name, after)),
            '\\' => name.push(chars.next()?.1),
            c => name.push(c),
        }
    }
    None
}

/// The file that a setting includes.
fn included<'v>(key: &str, value: &'v str) -> Option<&'v str> {
    let (section, variable) = key.split_once('.')?;
    let includes = match section {
        "include" => variable == "path",
        "includeif" => variable.ends_with(".path"),
        _ => false,
    };
    (includes && !value.is_empty()).then_some(value)
}

/// What to set instead, for a key that names a program.
fn harmless(key: &str) -> Vec<(String, String)> {
    let Some((section, rest)) = key.split_once('.') else { return Vec::new() };
    let (name, variable) = rest.rsplit_once('.').unwrap_or(("", rest));
    let with =
        |variable: &str, value: &str| (format!("{section}.{name}.{variable}"), value.to_owned());
    match (section, name, variable) {
        ("diff", "", "external") => vec![("diff.external".to_owned(), DIFF.to_owned())],
        (_, "", _) => Vec::new(),
        ("filter", _, _) => {
            let mut keys: Vec<_> = ["clean", "smudge", "process"].map(|key| with(key, "")).into();
            keys.push(with("required", "false"));
            keys
        }
        ("diff", _, "textconv") => vec![with("textconv", "cat")],
        ("diff", _, "command") => vec![with("command", DIFF)],
        ("merge", _, "driver") => vec![with("driver", "false")],
        ("remote", _, "uploadpack") => vec![with("uploadpack", "git-upload-pack")],
        ("remote", _, "receivepack") => vec![with("receivepack", "git-receive-pack")],
        ("credential", _, "helper") => vec![with("helper", "")],
        ("tar", _, "command") => {
            vec![with("command", if name.ends_with("gz") { "gzip -cn" } else { "cat" })]
        }
        ("trailer" | "hook", _, "command" | "cmd") => vec![with(variable, "true")],
        _ => Vec::new(),
    }
}

#[cfg(test)]
#[path = "gitconfig_tests.rs"]
mod tests;
