//! Row 42, files that make the host run things later: whatever a command writes, commits, shells, editors and agents on
//! the host run nothing of it.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::harness::{On, attack};
use super::seat::Seat;

/// Files by which something runs that nobody started. None of them is there, or they hold this.
const ORIGINAL: &str = "# original\n";

const FILES: &[&str] = &[
    ".envrc",
    ".bashrc",
    ".profile",
    ".zshenv",
    ".vimrc",
    ".exrc",
    ".nvim.lua",
    ".dir-locals.el",
    ".gitconfig",
    ".mcp.json",
    ".claude/settings.json",
    ".codex/config.toml",
    ".gemini/settings.json",
    ".cursor/mcp.json",
    ".vscode/tasks.json",
    ".idea/workspace.xml",
    ".zed/tasks.json",
    ".devcontainer/devcontainer.json",
    ".runner/config.yml",
    ".husky/pre-commit",
    ".git/hooks/pre-commit",
    ".git/info/attributes",
    ".git/config.worktree",
    ".git/commondir",
    "build/.git/config",
    "target/.envrc",
    "sub/deep/.vscode/settings.json",
];

fn names(top: &Path) -> Vec<String> {
    let mut find = Command::new("find");
    let listed = find.arg(top).args(["-printf", "%P\n"]).output().unwrap();
    let mut names: Vec<String> =
        String::from_utf8(listed.stdout).unwrap().lines().map(str::to_owned).collect();
    names.sort();
    names
}

fn nothing_that_runs_later_is_written(on: On) {
    for existing in [false, true] {
        let seat = Seat::new(on, &[("src/a", ORIGINAL)]);
        let canary = seat.home.path("ran");
        let evil = format!("touch {}", canary.display());
        seat.home.git(&["init", "-q", "-b", "main"]);
        if existing {
            for name in FILES.iter().filter(|name| !name.contains(".git/")) {
                fs::create_dir_all(seat.file(name).parent().unwrap()).unwrap();
                fs::write(seat.file(name), ORIGINAL).unwrap();
            }
        }
        seat.home.git(&["add", "-A"]);
        seat.home.git(&["commit", "-qm", "first"]);
        let config = seat.text(".git/config");
        seat.give_away();
        let before = names(&seat.file(""));
        let mut script = String::new();
        for name in FILES {
            script.push_str(&format!(
                "mkdir -p $(dirname {name}); printf '#!/bin/sh\\n{evil}\\n' > {name}; chmod 755 {name}\n"
            ));
        }
        // The hooks' folder, a monitor, and a repository under another name that the index leads to.
        script.push_str(&format!(
            "git config core.hooksPath .husky; git config core.fsmonitor '{evil}'\n\
             git init -q nested; git -C nested config core.fsmonitor '{evil}'; cp -r .git store\n\
             mkdir link; printf 'gitdir: ../store' > link/.git; printf '[core]\\nfsmonitor={evil}' >> store/config\n\
             mkdir bare; cd bare; mkdir objects refs; echo 'ref: refs/heads/main' > HEAD; printf '[core]\\nbare=false\\nfsmonitor={evil}' > config\n"
        ));
        fs::write(seat.home.path("evil.sh"), &script).unwrap();
        let ran = seat.exec("all", &["sh", "-c", &script]);
        assert!(ran.code.is_some(), "{}", ran.err);
        for name in FILES {
            let path = seat.file(name);
            match fs::read_to_string(&path) {
                Ok(text) => assert!(!text.contains("touch"), "{name}: {text}"),
                Err(_) => assert!(!existing || name.contains(".git/"), "{name} is gone"),
            }
        }
        assert_eq!(seat.text(".git/config"), config);
        let is_repository = |folder: &Path| {
            ["HEAD", "objects", "refs"]
                .iter()
                .all(|name| seat.file("").join(folder).join(name).exists())
        };
        // A `config` is one of git only beside these three.
        let is_dangerous = |name: &&String| {
            name.split('/').any(|part| part == ".git")
                || Path::new(name.as_str())
                    .ancestors()
                    .filter(|it| *it != Path::new(""))
                    .any(is_repository)
        };
        let new: Vec<String> = names(&seat.file(""))
            .iter()
            .filter(|name| !before.contains(name))
            .filter(is_dangerous)
            .filter(|name| !name.starts_with(".git/"))
            .cloned()
            .collect();
        assert_eq!(new, [""; 0]);
        // What people do next.
        for folder in ["", "nested", "link", "bare", "build"] {
            let at = seat.file(folder);
            if at.is_dir() {
                let mut git = Command::new("git");
                seat.home.surround(&mut git);
                let _ = git.args(["-c", "safe.directory=*", "status"]).current_dir(&at).output();
            }
        }
        seat.home.git(&["commit", "-q", "--allow-empty", "-m", "later"]);
        assert!(!canary.exists(), "it ran on the host");
        seat.give_away();
        seat.works("all", &["sh", "-c", "echo changed > src/a"]);
        assert_eq!(seat.text("src/a"), "changed\n", "the control");
    }
}
attack!(42, "later", nothing_that_runs_later_is_written);
