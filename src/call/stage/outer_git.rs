//! Where git configurations outside a workspace lead into it.
//!
//! A `core.hooksPath`, an `include.path` or a command of such a configuration may lie in the workspace:
//! what a call writes there would run at the next git command. These configurations count:
//!
//! - the user's and the system's, in every repository;
//! - those of a git folder outside that a working tree of the workspace belongs to: the workspace
//!   is a linked worktree or a submodule;
//! - those of the repositories above the workspace: it is a folder of their working tree.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::engine::plan::WorkTree;
use crate::stage::gitconfig::{self, Config};
use crate::stage::led::{Led, Reach};

/// Configurations that are read, at most.
const MAX_CONFIGS: usize = 256;

/// Longest text of a `.git` or `commondir` file.
const MAX_POINTER: u64 = 8 * 1024;

/// What lies around a workspace.
#[derive(Debug, Clone, Copy)]
pub(in crate::call) struct Outer<'a> {
    /// The caller's home.
    pub home: Option<&'a Path>,
    /// The folder of the caller's configurations, if it is another than `.config` there.
    pub config_home: Option<&'a Path>,
    /// The workspace, or another folder that a stage is for.
    pub root: &'a Path,
    /// The working trees of git in it.
    pub trees: &'a [WorkTree],
}

/// A configuration, and the working trees in which git reads it.
struct Source {
    file: PathBuf,
    tops: Vec<PathBuf>,
}

/// Why it is not known where configurations outside lead git to.
#[derive(Debug, thiserror::Error)]
pub enum OuterGitError {
    /// A configuration that git may understand and this program does not.
    #[error("the git configuration {} cannot be understood", .0.display())]
    NotUnderstood(PathBuf),
    /// They include each other in a circle, or there are very many.
    #[error("more than {MAX_CONFIGS} git configurations outside lead into the workspace")]
    TooMany,
}

/// The places below the root that configurations outside lead git to.
///
/// # Errors
///
/// Not all of them could be followed.
pub(in crate::call) fn led(outer: &Outer<'_>) -> Result<Vec<Led>, OuterGitError> {
    let mut found = Found { outer, led: Vec::new() };
    let mut waiting = users(outer);
    waiting.extend(repositories(outer));
    let mut seen = 0;
    while let Some(source) = waiting.pop() {
        seen += 1;
        if seen > MAX_CONFIGS {
            return Err(OuterGitError::TooMany);
        }
        if let Some(config) = read(&source.file)? {
            found.of_config(&config, &source, &mut waiting);
        }
    }
    Ok(found.led)
}

/// The user's and the system's configurations.
fn users(outer: &Outer<'_>) -> Vec<Source> {
    let mut tops = vec![outer.root.to_owned()];
    tops.extend(outer.trees.iter().map(|tree| outer.root.join(&tree.top)));
    tops.sort();
    tops.dedup();
    let xdg = outer.config_home.map(Path::to_owned);
    let xdg = xdg.or_else(|| Some(outer.home?.join(".config")));
    let files = [
        Some(PathBuf::from("/etc/gitconfig")),
        xdg.map(|folder| folder.join("git/config")),
        outer.home.map(|home| home.join(".gitconfig")),
    ];
    files.into_iter().flatten().map(|file| Source { file, tops: tops.clone() }).collect()
}

/// The configurations of git folders outside, of working trees in the workspace and around it.
fn repositories(outer: &Outer<'_>) -> Vec<Source> {
    let outside = outer.trees.iter().filter(|tree| !tree.git.starts_with(outer.root));
    let outside = outside.map(|tree| (tree.git.clone(), outer.root.join(&tree.top)));
    let above =
        outer.root.ancestors().skip(1).filter_map(|top| Some((git_of(top)?, top.to_owned())));
    let mut sources = Vec::new();
    for (git, top) in outside.chain(above) {
        let common = pointer(&git.join("commondir"), b"").map(|common| git.join(common));
        let files = [git.join("config"), git.join("config.worktree")];
        let common = common.map(|common| common.join("config"));
        for file in files.into_iter().chain(common) {
            sources.push(Source { file, tops: vec![top.clone()] });
        }
    }
    sources
}

/// The git folder of a working tree.
fn git_of(top: &Path) -> Option<PathBuf> {
    let dot_git = top.join(".git");
    if dot_git.is_dir() {
        return Some(dot_git);
    }
    Some(top.join(pointer(&dot_git, b"gitdir:")?))
}

/// The path that a file of git's consists of, after a prefix.
fn pointer(file: &Path, prefix: &[u8]) -> Option<PathBuf> {
    let found = std::fs::metadata(file).ok()?;
    if !found.is_file() || found.len() > MAX_POINTER {
        return None;
    }
    let text = std::fs::read(file).ok()?;
    Some(PathBuf::from(OsStr::from_bytes(text.strip_prefix(prefix)?.trim_ascii())))
}

/// A configuration, or nothing where git finds none either.
fn read(file: &Path) -> Result<Option<Config>, OuterGitError> {
    let not_understood = || OuterGitError::NotUnderstood(file.to_owned());
    let Ok(found) = std::fs::metadata(file) else { return Ok(None) };
    if !found.is_file() {
        return Ok(None);
    }
    if found.len() > gitconfig::MAX_BYTES as u64 {
        return Err(not_understood());
    }
    // Git runs as the caller too: what cannot be read here, it does not read.
    let Ok(text) = std::fs::read(file) else { return Ok(None) };
    gitconfig::parse(&text).map(Some).ok_or_else(not_understood)
}

struct Found<'a> {
    outer: &'a Outer<'a>,
    led: Vec<Led>,
}

impl Found<'_> {
    fn of_config(&mut self, config: &Config, source: &Source, waiting: &mut Vec<Source>) {
        let folder = source.file.parent().unwrap_or(Path::new("/"));
        let by = |key: &str| format!("{key} of {}", source.file.display());
        for include in config.includes() {
            let file = self.absolute(folder, include);
            self.note(&file, &by("`include.path`"), None);
            waiting.push(Source { file, tops: source.tops.clone() });
        }
        for top in &source.tops {
            for hooks in config.hooks_paths() {
                self.note(&self.absolute(top, hooks), &by("`core.hooksPath`"), None);
            }
            for word in config.commands() {
                self.note(&self.absolute(top, word), &by("a command"), Some(word));
            }
        }
    }

    fn absolute(&self, base: &Path, written: &str) -> PathBuf {
        match (written.strip_prefix("~/"), self.outer.home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => base.join(written),
        }
    }

    /// Notes a place, as it is written and as symlinks lead.
    fn note(&mut self, path: &Path, by: &str, word: Option<&str>) {
        let real = path.canonicalize().ok();
        for path in [Some(normal(path)), real].into_iter().flatten() {
            let Ok(below) = path.strip_prefix(self.outer.root) else { continue };
            let is_root = below.as_os_str().is_empty();
            let places = match word {
                Some(word) => Led::by_word(word, below.to_owned(), is_root || path.is_dir(), by),
                None if is_root => continue,
                None => {
                    let (path, by) = (below.to_owned(), by.to_owned());
                    vec![Led { path, by, reach: Reach::Below }]
                }
            };
            for place in places {
                if !self.led.contains(&place) {
                    self.led.push(place);
                }
            }
        }
    }
}

/// A path without `.` and `..`, by its letters alone.
fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::CurDir => {}
            std::path::Component::ParentDir => drop(out.pop()),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn paths(outer: &Outer<'_>) -> Vec<String> {
        let mut paths: Vec<String> = led(outer)
            .unwrap()
            .into_iter()
            .filter(|led| led.reach == Reach::Below)
            .map(|led| led.path.display().to_string())
            .collect();
        paths.sort();
        paths
    }

    #[test]
    fn hooks_includes_and_commands_of_the_user_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap();
        let root = home.join("project");
        fs::create_dir_all(&root).unwrap();
        fs::write(
            home.join(".gitconfig"),
            format!(
                "[core]\n\thooksPath = .hooks\n\tfsmonitor = {}/watch.sh --x\n\
                 [include]\n\tpath = ~/project/a/../shared.inc\n[user]\n\tname = a\n\
                 [filter \"f\"]\n\tclean = sh clean.sh\n",
                root.display()
            ),
        )
        .unwrap();
        fs::write(root.join("shared.inc"), "[core]\n\thooksPath = ~/project/more\n").unwrap();
        let none = home.join("none");
        let mut outer =
            Outer { home: Some(&home), config_home: Some(&none), root: &root, trees: &[] };
        assert_eq!(paths(&outer), [".hooks", "more", "shared.inc", "watch.sh"]);
        assert!(led(&outer).unwrap().iter().any(|led| led.path == Path::new("clean.sh")));
        let elsewhere = home.join("elsewhere");
        (outer.home, outer.root) = (None, &elsewhere);
        assert!(led(&outer).unwrap().is_empty());
    }

    #[test]
    fn what_cannot_be_followed_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap();
        let root = home.join("project");
        fs::create_dir_all(&root).unwrap();
        let none = home.join("none");
        let outer = Outer { home: Some(&home), config_home: Some(&none), root: &root, trees: &[] };
        fs::write(home.join(".gitconfig"), "[include]\n\tpath = .gitconfig\n").unwrap();
        assert!(matches!(led(&outer), Err(OuterGitError::TooMany)));
        fs::write(home.join(".gitconfig"), "[core\n").unwrap();
        assert!(matches!(led(&outer), Err(OuterGitError::NotUnderstood(_))));
        fs::write(home.join(".gitconfig"), "[user]\n\tname = a\n").unwrap();
        assert_eq!(led(&outer).unwrap(), []);
    }

    #[test]
    fn repositories_above_and_outside_lead_into_a_workspace() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        let root = top.join("packages/one");
        fs::create_dir_all(&root).unwrap();
        fs::create_dir_all(top.join(".git")).unwrap();
        fs::write(top.join(".git/config"), "[core]\n\thooksPath = packages/one/hooks\n").unwrap();
        // A linked worktree: its own folder, and the common one.
        let common = top.join("main/.git");
        let own = common.join("worktrees/one");
        fs::create_dir_all(&own).unwrap();
        fs::write(own.join("commondir"), "../..\n").unwrap();
        fs::write(own.join("config.worktree"), "[core]\n\tfsmonitor = ./watch\n").unwrap();
        fs::write(common.join("config"), "[core]\n\thooksPath = tools/hooks\n").unwrap();
        let trees = [WorkTree { git: own, top: PathBuf::new() }];
        let none = top.join("none");
        let outer = Outer { home: None, config_home: Some(&none), root: &root, trees: &trees };
        assert_eq!(paths(&outer), ["hooks", "tools/hooks", "watch"]);
        let outer = Outer { trees: &[], ..outer };
        assert_eq!(paths(&outer), ["hooks"]);
    }
}
