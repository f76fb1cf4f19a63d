//! Follows git configurations to the places in a workspace that they lead to.
//!
//! Duty: read a configuration with those that it includes, wherever they lie, and note each place below
//! the root that git runs or reads because of them. Non-goals: which configurations there are
//! ([`super::repository`] finds those of the workspace, the caller those outside). Trust boundary: a
//! configuration is the host's, and what it leads through can be the adversary's: each symlink on the way
//! counts, as well as the end. What exists and cannot be read is an error, because git may read it.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::ffi::{OsStrExt, OsStringExt as _};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Component, Path, PathBuf};

use super::change::Host;
use super::gitconfig::{self, Config};
use super::led::{Led, Reach};
use super::merged::{MAX_LINKS, Merged};
use crate::workspace::protected::table::{self, Class, Row};

/// Longest `.git` or `commondir` file that is read: a path, and a little more.
const MAX_POINTER: usize = 8 * 1024;

/// Hooks that git knows. Where `core.hooksPath` is the root itself, only these names are meant.
const HOOKS: &[&str] = &[
    "applypatch-msg",
    "pre-applypatch",
    "post-applypatch",
    "pre-commit",
    "pre-merge-commit",
    "prepare-commit-msg",
    "commit-msg",
    "post-commit",
    "pre-rebase",
    "post-checkout",
    "post-merge",
    "pre-push",
    "pre-receive",
    "update",
    "proc-receive",
    "post-receive",
    "post-update",
    "reference-transaction",
    "push-to-checkout",
    "pre-auto-gc",
    "post-rewrite",
    "sendemail-validate",
    "fsmonitor-watchman",
    "p4-changelist",
    "p4-prepare-changelist",
    "p4-post-changelist",
    "p4-pre-submit",
    "post-index-change",
];

/// Why it is not known where git is led to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnknownLeads {
    /// A configuration that git may understand and this program does not.
    #[error("the git configuration {} cannot be read or understood", .0.display())]
    NotUnderstood(PathBuf),
    /// They include each other in a circle, or there are very many.
    #[error("there are more than {0} git configurations to follow")]
    TooMany(usize),
}

/// A configuration, and the working trees in which git reads it; absolute.
#[derive(Debug, Clone)]
pub struct Source {
    /// The file.
    pub file: PathBuf,
    /// Their tops.
    pub tops: Vec<PathBuf>,
}

/// What is noted of configurations' own files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Own {
    /// The file, wherever it lies: nothing else says that git reads it.
    File,
    /// Where it leads to if it is a symlink: it lies in a git folder, which has rules of its own.
    Links,
}

/// What becomes of a line at which git stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Broken {
    /// No git command works then, and the caller is told why.
    IsAnError,
    /// Git does not work in that one repository. The rest of the file counts, for when it is mended.
    IsPassedOver,
}

/// What a place is to git.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Hooks,
    Template,
    Include,
    Command,
}

/// Follows configurations and collects places.
pub struct Leads<'a> {
    root: &'a Path,
    /// The root without symlinks: what leads into it is below the root.
    real_root: PathBuf,
    home: Option<&'a Path>,
    /// The tree at the root, if it is read through a handle.
    tree: Option<&'a Merged<'a>>,
    most: usize,
    broken: Broken,
    read: usize,
    noted: HashSet<(Kind, PathBuf, OsString)>,
    found: Vec<Led>,
}

impl<'a> Leads<'a> {
    /// Nothing yet. `home` is what `~` stands for; at most `most` configurations are read.
    #[must_use]
    pub fn outside(root: &'a Path, home: Option<&'a Path>, most: usize) -> Self {
        Self::new(root, home, None, most, Broken::IsAnError)
    }

    /// The same for a tree that is read through its handle.
    #[must_use]
    pub fn within(tree: &'a Merged<'a>, home: Option<&'a Path>, most: usize) -> Self {
        Self::new(tree.root(), home, Some(tree), most, Broken::IsPassedOver)
    }

    fn new(
        root: &'a Path,
        home: Option<&'a Path>,
        tree: Option<&'a Merged<'a>>,
        most: usize,
        broken: Broken,
    ) -> Self {
        let real_root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
        let (noted, found) = (HashSet::new(), Vec::new());
        Self { root, real_root, home, tree, most, broken, read: 0, noted, found }
    }

    /// The places.
    #[must_use]
    pub fn found(self) -> Vec<Led> {
        self.found
    }

    /// Follows a configuration, and those that it includes.
    ///
    /// # Errors
    /// See [`UnknownLeads`].
    pub fn follow(&mut self, source: Source, own: Own) -> Result<(), UnknownLeads> {
        self.note_own(&source.file, own, &source.file.display().to_string());
        let Source { file, tops } = source;
        let mut waiting = vec![file];
        while let Some(file) = waiting.pop() {
            let Some(config) = self.config(&file)? else { continue };
            let folder = file.parent().unwrap_or(Path::new("/"));
            let by = self.shown(&file);
            for include in config.includes() {
                let file = self.absolute(folder, include);
                self.note(&file, &format!("`include.path` of {by}"), Kind::Include, include);
                waiting.push(file);
            }
            self.of_config(&config, &tops, &by);
        }
        Ok(())
    }

    /// Notes where a configuration leads from these working trees, except by its includes.
    pub fn of_config(&mut self, config: &Config, tops: &[PathBuf], by: &str) {
        for top in tops {
            for hooks in config.hooks_paths() {
                self.hooks(&self.absolute(top, hooks), &format!("`core.hooksPath` of {by}"));
            }
            for template in config.templates() {
                let (path, by) =
                    (self.absolute(top, template), format!("`init.templateDir` of {by}"));
                self.note(&path, &by, Kind::Template, template);
                self.hooks(&path.join("hooks"), &by);
            }
            for word in config.commands() {
                let path = self.absolute(top, word);
                self.note(&path, &format!("a command of {by}"), Kind::Command, word);
            }
        }
    }

    /// Follows the configurations of a git folder for a working tree of it.
    ///
    /// # Errors
    /// See [`UnknownLeads`].
    pub fn repository(&mut self, git: &Path, top: &Path) -> Result<(), UnknownLeads> {
        let text = self.text(&git.join("commondir"), MAX_POINTER).ok().flatten();
        let common =
            text.and_then(|text| self.end(&git.join(OsStr::from_bytes(text.trim_ascii()))));
        let own = [git.join("config"), git.join("config.worktree")];
        for file in own.into_iter().chain(common.as_ref().map(|common| common.join("config"))) {
            self.follow(Source { file, tops: vec![top.to_owned()] }, Own::Links)?;
        }
        // Of a git folder inside, the table has the hooks, and the survey their symlinks.
        for git in [Some(git), common.as_deref()].into_iter().flatten() {
            if git.strip_prefix(self.root).is_err() {
                let hooks = git.join("hooks");
                self.hooks(&hooks, &format!("the hooks in {}", hooks.display()));
            }
        }
        Ok(())
    }

    /// The git folder of the working tree with this top, by its `.git`.
    #[must_use]
    pub fn git_of(&self, top: &Path) -> Option<PathBuf> {
        let dot_git = self.end(&top.join(".git"))?;
        if self.is_folder(&dot_git) {
            return Some(dot_git);
        }
        let text = self.text(&dot_git, MAX_POINTER).ok()??;
        let target = text.strip_prefix(b"gitdir:")?.trim_ascii();
        self.end(&top.join(OsStr::from_bytes(target)))
    }

    /// Notes what a file outside leads to that the host runs or reads.
    pub fn note_own(&mut self, file: &Path, own: Own, by: &str) {
        let trail = self.trail(file).0;
        if own == Own::Links && trail.len() < 2 {
            return;
        }
        self.note(file, by, Kind::Include, OsStr::new(""));
    }

    /// Notes what a name in the caller's home leads to, unless its own name says enough.
    pub fn note_in_home(&mut self, path: &Path, row: &Row) {
        let is_never =
            |place: &Path| table::find(place).is_some_and(|found| found.class == Class::Never);
        let trail = self.trail(path).0;
        let mut inside = trail.iter().filter_map(|place| place.strip_prefix(self.root).ok());
        if inside.all(is_never) {
            return;
        }
        let by = format!("{}: it is run by {}", path.display(), row.runs);
        self.note(path, &by, Kind::Include, OsStr::new(""));
    }

    /// Notes a folder with hooks, and where symlinks at their names lead.
    fn hooks(&mut self, folder: &Path, by: &str) {
        if !self.note(folder, by, Kind::Hooks, OsStr::new("")) {
            return;
        }
        let Some(folder) = self.end(folder) else { return };
        for hook in HOOKS.iter().map(|hook| folder.join(hook)) {
            if self.link(&hook).is_some() {
                self.note(&hook, by, Kind::Include, OsStr::new(""));
            }
        }
    }

    /// A text of a configuration as an absolute path.
    fn absolute(&self, base: &Path, written: &OsStr) -> PathBuf {
        let bytes = written.as_bytes();
        let (Some(home), Some(rest)) = (self.home, bytes.strip_prefix(b"~")) else {
            return base.join(written);
        };
        // `~/x`, and `~me/x` if that is the caller's.
        let name = home.file_name().map(OsStrExt::as_bytes).unwrap_or_default();
        let rest = rest.strip_prefix(b"/").or_else(|| rest.strip_prefix(name)?.strip_prefix(b"/"));
        rest.map_or_else(|| base.join(written), |rest| home.join(OsStr::from_bytes(rest)))
    }

    /// Notes a place, as it is written and as symlinks lead. Whether that is new.
    fn note(&mut self, path: &Path, by: &str, kind: Kind, word: &OsStr) -> bool {
        if !self.noted.insert((kind, path.to_owned(), word.to_owned())) {
            return false;
        }
        let mut places = self.trail(path).0;
        places.push(normal(path));
        places.sort();
        places.dedup();
        for place in places {
            let Ok(below) = place.strip_prefix(self.root) else { continue };
            for led in self.led(below, by, kind, word) {
                if !self.found.contains(&led) {
                    self.found.push(led);
                }
            }
        }
        true
    }

    /// What is meant by a place below the root.
    fn led(&self, path: &Path, by: &str, kind: Kind, word: &OsStr) -> Vec<Led> {
        let below =
            |path: &Path| Led { path: path.to_owned(), by: by.to_owned(), reach: Reach::Below };
        let all = |names: &mut dyn Iterator<Item = &'static str>| {
            names.map(|name| below(Path::new(name))).collect()
        };
        match (kind, path.as_os_str().is_empty()) {
            (Kind::Command, is_root) => {
                let is_folder = is_root || self.is_folder(&self.root.join(path));
                Led::by_word(word, path.to_owned(), is_folder, by)
            }
            (Kind::Hooks, true) => all(&mut HOOKS.iter().copied()),
            (Kind::Template, true) => all(&mut table::GIT.iter().map(|row| row.pattern)),
            (Kind::Include, true) => Vec::new(),
            (Kind::Hooks | Kind::Template | Kind::Include, false) => vec![below(path)],
        }
    }

    /// A file's name for people.
    fn shown(&self, file: &Path) -> String {
        file.strip_prefix(self.root).unwrap_or(file).display().to_string()
    }

    /// A configuration, or nothing where git finds none either.
    fn config(&mut self, file: &Path) -> Result<Option<Config>, UnknownLeads> {
        let not_understood = || UnknownLeads::NotUnderstood(file.to_owned());
        let Some(text) = self.text(file, gitconfig::MAX_BYTES).map_err(|_| not_understood())?
        else {
            return Ok(None);
        };
        self.read += 1;
        if self.read > self.most {
            return Err(UnknownLeads::TooMany(self.most));
        }
        let config = match self.broken {
            Broken::IsAnError => gitconfig::parse(&text),
            Broken::IsPassedOver => gitconfig::parse_broken(&text),
        };
        config.map(Some).ok_or_else(not_understood)
    }

    /// The content of a file, through symlinks. Nothing where none is.
    fn text(&self, file: &Path, most: usize) -> io::Result<Option<Vec<u8>>> {
        let Some(file) = self.end(file) else { return Ok(None) };
        if let Some((tree, below)) = self.inside(&file) {
            match tree.on_host(below) {
                Host::Absent | Host::Folder(_) | Host::Link { .. } => return Ok(None),
                Host::File(_) => {
                    let text = tree.read_host(below, None, most);
                    return text.map(Some).ok_or_else(|| io::ErrorKind::InvalidData.into());
                }
                // A file that is mounted there, say.
                Host::Other(_) => {}
            }
        }
        read(&file, most)
    }

    fn is_folder(&self, path: &Path) -> bool {
        match self.inside(path) {
            Some((_, below)) if below.as_os_str().is_empty() => true,
            Some((tree, below)) => matches!(tree.on_host(below), Host::Folder(_)),
            None => path.symlink_metadata().is_ok_and(|found| found.is_dir()),
        }
    }

    /// The target of the symlink at a path.
    fn link(&self, path: &Path) -> Option<PathBuf> {
        let Some((tree, below)) = self.inside(path) else { return path.read_link().ok() };
        match tree.on_host(below) {
            Host::Link { target, .. } => Some(PathBuf::from(target)),
            _ => None,
        }
    }

    fn inside<'p>(&self, path: &'p Path) -> Option<(&'a Merged<'a>, &'p Path)> {
        Some((self.tree?, path.strip_prefix(self.root).ok()?))
    }

    /// Where a path ends, if symlinks do not lead in a circle.
    #[must_use]
    pub fn end(&self, path: &Path) -> Option<PathBuf> {
        let (mut trail, end) = self.trail(path);
        if end == End::Known { trail.pop() } else { None }
    }

    /// The symlinks on the way along a path, and where it ends.
    fn trail(&self, path: &Path) -> (Vec<PathBuf>, End) {
        let mut met = Vec::new();
        let mut place = PathBuf::from("/");
        let mut rest = vec![path.to_owned()];
        let mut links = 0;
        while let Some(next) = rest.pop() {
            let mut next: &Path = &next;
            if let Ok(below) = next.strip_prefix(self.root) {
                (place, next) = (self.root.to_owned(), below);
            }
            let mut parts = next.components();
            while let Some(part) = parts.next() {
                match part {
                    Component::CurDir | Component::Prefix(_) => {}
                    Component::RootDir => place = PathBuf::from("/"),
                    Component::ParentDir => drop(place.pop()),
                    Component::Normal(name) => place.push(name),
                }
                if place == self.real_root {
                    place = self.root.to_owned();
                }
                let Component::Normal(_) = part else { continue };
                if place == self.root {
                    continue;
                }
                if let Some(target) = self.link(&place) {
                    links += 1;
                    if links > MAX_LINKS {
                        return (met, End::Unknown);
                    }
                    met.push(place.clone());
                    place.pop();
                    rest.push(parts.as_path().to_owned());
                    rest.push(target);
                    break;
                }
            }
        }
        met.push(place);
        (met, End::Known)
    }
}

/// Whether a path's end is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Known,
    Unknown,
}

/// Reads a file outside, of at most `most` bytes. Nothing where the caller's git finds none.
fn read(file: &Path, most: usize) -> io::Result<Option<Vec<u8>>> {
    // What cannot be looked up is out of reach of the caller's git too.
    let Ok(found) = file.symlink_metadata() else { return Ok(None) };
    let kind = found.file_type();
    if kind.is_fifo() || kind.is_socket() {
        return Err(io::ErrorKind::InvalidData.into());
    }
    // Git stops at a folder; `/dev/null` is empty.
    if !kind.is_file() {
        return Ok(None);
    }
    let mut text = Vec::new();
    File::open(file)?.take(most as u64 + 1).read_to_end(&mut text)?;
    if text.len() > most { Err(io::ErrorKind::InvalidData.into()) } else { Ok(Some(text)) }
}

/// A path without `.` and `..`, by its letters alone.
fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(out.pop()),
            other => out.push(other),
        }
    }
    out
}

/// The configuration that a caller gives in `GIT_CONFIG_COUNT` and its kin, and the folder of
/// `GIT_TEMPLATE_DIR`.
#[must_use]
pub fn given(variable: &dyn Fn(&str) -> Option<OsString>) -> Config {
    let count = variable("GIT_CONFIG_COUNT").and_then(|count| count.to_str()?.parse().ok());
    let numbered = (0..count.unwrap_or(0).min(MAX_GIVEN)).filter_map(|at| {
        let key = variable(&format!("GIT_CONFIG_KEY_{at}"))?.into_vec();
        let value = variable(&format!("GIT_CONFIG_VALUE_{at}"))?.into_vec();
        setting(&key, value)
    });
    let template = variable("GIT_TEMPLATE_DIR");
    let template = template.and_then(|folder| setting(b"init.templatedir", folder.into_vec()));
    Config::given(numbered.chain(template).collect())
}

/// Most settings that are taken from variables.
const MAX_GIVEN: usize = 1024;

/// `section.name` or `section.subsection.name`, and a value.
fn setting(key: &[u8], value: Vec<u8>) -> Option<gitconfig::Setting> {
    let dot = |c: &u8| *c == b'.';
    let (first, last) = (key.iter().position(dot)?, key.iter().rposition(dot)?);
    let lower = |part: &[u8]| String::from_utf8_lossy(part).to_ascii_lowercase();
    Some(gitconfig::Setting {
        section: lower(&key[..first]),
        subsection: (first < last).then(|| key[first + 1..last].to_vec()),
        name: lower(&key[last + 1..]),
        value: Some(value),
    })
}

#[cfg(test)]
#[path = "leads_tests.rs"]
mod tests;
