//! Where the caller's own git configuration leads into a workspace.
//!
//! A `core.hooksPath`, an `include.path` or a command of the user's configuration may lie in the
//! workspace: what a call writes there would run at the next git command, in any repository.

use std::path::{Path, PathBuf};

use crate::stage::gitconfig::{self, Config};
use crate::stage::repository::Led;

/// Configurations that are followed by `include.path`, at most.
const MAX_CONFIGS: usize = 64;

/// The places below `root` that the user's and the system's configuration lead git to.
pub(super) fn led(home: Option<&Path>, config_home: Option<&Path>, root: &Path) -> Vec<Led> {
    let xdg = config_home.map(Path::to_owned).or_else(|| Some(home?.join(".config")));
    let mut waiting: Vec<PathBuf> = vec!["/etc/gitconfig".into()];
    waiting.extend(xdg.map(|folder| folder.join("git/config")));
    waiting.extend(home.map(|home| home.join(".gitconfig")));
    let mut found = Vec::new();
    let mut seen = 0;
    while let Some(file) = waiting.pop() {
        seen += 1;
        let Some(config) = read(&file).filter(|_| seen <= MAX_CONFIGS) else { continue };
        let by = file.display().to_string();
        let folder = file.parent().unwrap_or(Path::new("/"));
        let absolute = |written: &str| match (written.strip_prefix("~/"), home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => folder.join(written),
        };
        for include in config.includes().map(absolute) {
            note(&mut found, &include, root, "include.path", &by);
            waiting.push(include);
        }
        for hooks in config.hooks_paths() {
            note(&mut found, &absolute(hooks), root, "core.hooksPath", &by);
            // A relative one means the same folder in every worktree.
            if !hooks.starts_with(['/', '~']) {
                note(&mut found, &root.join(hooks), root, "core.hooksPath", &by);
            }
        }
        for command in config.commands() {
            let program = command.trim_start_matches('!').split_whitespace().next();
            if let Some(program) = program {
                note(&mut found, &absolute(program), root, "a command", &by);
            }
        }
    }
    found
}

fn read(file: &Path) -> Option<Config> {
    let found = std::fs::metadata(file).ok()?;
    if !found.is_file() || found.len() > gitconfig::MAX_BYTES as u64 {
        return None;
    }
    gitconfig::parse(&std::fs::read(file).ok()?)
}

fn note(found: &mut Vec<Led>, path: &Path, root: &Path, key: &str, file: &str) {
    // Both as it is written and as symlinks lead.
    for path in [Some(path.to_owned()), path.canonicalize().ok()].into_iter().flatten() {
        if let Ok(below) = path.strip_prefix(root)
            && !below.as_os_str().is_empty()
        {
            let led = Led { path: below.to_owned(), by: format!("`{key}` of {file}") };
            if !found.contains(&led) {
                found.push(led);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hooks_includes_and_commands_in_the_workspace_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap();
        let root = home.join("project");
        std::fs::create_dir_all(&root).unwrap();
        std::fs::write(
            home.join(".gitconfig"),
            format!(
                "[core]\n\thooksPath = .hooks\n\tfsmonitor = {}/watch.sh --x\n\
                 [include]\n\tpath = ~/project/shared.inc\n[user]\n\tname = a\n",
                root.display()
            ),
        )
        .unwrap();
        std::fs::write(root.join("shared.inc"), "[core]\n\thooksPath = ~/project/more\n").unwrap();
        let none = home.join("none");
        let mut paths: Vec<PathBuf> =
            led(Some(&home), Some(&none), &root).into_iter().map(|led| led.path).collect();
        paths.sort();
        let wanted = [".hooks", "more", "shared.inc", "watch.sh"];
        assert_eq!(paths, wanted.map(PathBuf::from));
        assert!(led(None, Some(&none), &home.join("elsewhere")).is_empty());
    }
}
