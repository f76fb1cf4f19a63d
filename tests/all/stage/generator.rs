//! Trees of git, agent, editor and shell files, in random places and forms. Whatever a command leaves, the host's
//! git and shells run nothing of it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::harness::{Dice, Project, copy, host, look_around};

/// How many trees one call writes.
const PER_CALL: usize = 25;

/// Where an item may be put: below the folder of its round.
const PLACES: &[&str] = &[
    ".",
    "a",
    "a/b",
    "src",
    "build",
    "node_modules/x",
    "target/debug",
    "vendor/y z",
    ".hidden",
    "dist",
];

/// What makes a host program run `touch CANARY`. `AT` is a folder that exists.
const ITEMS: &[&str] = &[
    // Repositories in all forms.
    "git init -q AT; EVIL > AT/.git/config",
    "git init -q AT/n; EVIL > AT/n/.git/config",
    "git init -q AT/n; mkdir -p AT/n/.git/hooks; HOOK AT/n/.git/hooks/pre-commit",
    "git init -q AT/s; mv AT/s/.git AT/s/store; echo 'gitdir: store' > AT/s/.git; EVIL > AT/s/store/config",
    "git init -q AT/l; mv AT/l/.git AT/real; ln -s ../real AT/l/.git; EVIL > AT/real/config",
    "git init -q --bare AT/bare.git; BARE > AT/bare.git/config",
    "git init -q --bare AT/tmp; BARE > AT/tmp/config; mv AT/tmp AT/data",
    "mkdir -p AT/p/objects AT/p/refs; echo 'ref: refs/heads/m' > AT/p/HEAD; BARE > AT/p/config",
    "mkdir -p AT/.git/objects AT/.git/refs; echo 'ref: refs/heads/m' > AT/.git/HEAD; EVIL > AT/.git/config",
    "mkdir -p AT/.GIT; EVIL > AT/.GIT/config",
    "mkdir -p AT/q/o AT/q/r; ln -s o AT/q/objects; ln -s r AT/q/refs; echo 'ref: refs/heads/m' > AT/q/HEAD; BARE > AT/q/config",
    "git init -q AT/w; mkdir AT/w/c; mv AT/w/.git/config AT/w/c/conf; EVIL > AT/w/c/conf; ln -s ../c/conf AT/w/.git/config",
    // The project's own repository.
    "git config core.fsmonitor 'touch CANARY #'",
    "EVIL > AT/inc; git config include.path \"$PWD/AT/inc\"",
    "HOOK .git/hooks/pre-commit",
    "mkdir -p AT/hooks; HOOK AT/hooks/pre-commit; git config core.hooksPath \"$PWD/AT/hooks\"",
    "HOOK AT/pre-commit; ln -sf \"$PWD/AT/pre-commit\" .git/hooks/pre-commit",
    "HOOK AT/post-index-change; cp AT/post-index-change .git/hooks/",
    "echo '* filter=x' > AT/.gitattributes; git config filter.x.clean 'touch CANARY; cat'",
    "cp -r .git AT/copy; EVIL > AT/copy/config; echo \"$PWD/AT/copy\" > .git/commondir",
    // Shells.
    "echo 'touch CANARY' > AT/.bashrc",
    "echo 'touch CANARY' > AT/.profile",
    "echo 'touch CANARY' > AT/.bash_profile",
    "echo 'touch CANARY' > AT/.envrc",
    "echo 'touch CANARY' > AT/rc; ln -s rc AT/.bashrc",
    "echo 'touch CANARY' > AT/env; ln AT/env AT/.envrc",
    "EVIL > AT/.gitconfig",
    "mkdir -p AT/.config/git; EVIL > AT/.config/git/config",
    "mkdir -p AT/cfg/git; EVIL > AT/cfg/git/config; ln -s cfg AT/.config",
    // Shells and git do not start these here; that they are absent is asserted by name.
    "mkdir -p AT/.claude; echo x > AT/.claude/settings.json",
    "echo x > AT/.mcp.json",
    "mkdir -p AT/.codex AT/.gemini AT/.cursor; echo x | tee AT/.codex/config.toml AT/.gemini/settings.json > AT/.cursor/mcp.json",
    "mkdir -p AT/.vscode; echo x > AT/.vscode/tasks.json",
    "mkdir AT/ide; echo x > AT/ide/workspace.xml; ln -s ide AT/.idea",
    "echo x > AT/.nvim.lua; mkdir -p AT/.husky; echo x > AT/.husky/pre-commit",
    "mkdir -p AT/.runner; echo x > AT/.runner/config.yml",
];

/// Names of the class *never* that no host program of these tests opens.
const NAMES: &[&str] = &[
    ".claude",
    ".mcp.json",
    ".codex",
    ".gemini",
    ".cursor",
    ".vscode",
    ".idea",
    ".nvim.lua",
    ".husky",
    ".runner",
];

/// The script of one round: some items at random places of a folder of its own.
fn round(dice: &mut Dice, number: usize, canaries: &Path) -> String {
    let mut script = String::new();
    for item in 0..2 + dice.below(4) {
        let at = format!("'t{number}/{}'", dice.of(PLACES));
        let canary = canaries.join(format!("{number}-{item}")).display().to_string();
        let config = "printf '[core]\\n repositoryformatversion = 0\\n bare = KIND\\n fsmonitor = \"touch CANARY #\"\\n'";
        let text = dice.of(ITEMS);
        let text = text
            .replace("EVIL", &config.replace("KIND", "false"))
            .replace("BARE", &config.replace("KIND", "false\\n worktree = ."))
            .replace("HOOK", "hook CANARY")
            .replace("CANARY", &canary)
            .replace("AT", &at);
        script.push_str(&format!("mkdir -p {at}; ({text}) 2>/dev/null\n"));
    }
    // What is applied in the same call.
    script.push_str(&format!("echo {number} > 't{number}/fine'\n"));
    script
}

const HOOK: &str = "hook() { mkdir -p \"$(dirname \"$2\")\"; printf '#!/bin/sh\\ntouch %s\\n' \"$1\" > \"$2\"; chmod +x \"$2\"; }\n";

fn made(canaries: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(canaries).unwrap().flatten();
    entries.map(|entry| entry.file_name().into_string().unwrap()).collect()
}

/// Runs so many rounds; on a copy without us, every `control`th call shows that the trees are real.
fn rounds(count: usize, seed: u64, control: usize) {
    let mut dice = Dice::new(seed);
    let mut real = 0;
    for (at, first) in (0..count).step_by(PER_CALL).enumerate() {
        let project = Project::new();
        let canaries = project.home.path("canaries");
        fs::create_dir(&canaries).unwrap();
        let numbers = first..count.min(first + PER_CALL);
        let mut script = HOOK.to_owned();
        for number in numbers.clone() {
            script.push_str(&round(&mut dice, number, &canaries));
        }
        if at % control == 0 {
            let copied = project.home.path("real");
            copy(&project.file(""), &copied);
            host(&copied, &copied, &["bash", "-c", &script]);
            look_around(&copied);
            real += made(&canaries).len();
            for name in made(&canaries) {
                fs::remove_file(canaries.join(name)).unwrap();
            }
            fs::remove_dir_all(copied).unwrap();
        }
        let result = project.sh("contained", &script);
        for number in numbers {
            let fine = project.text(&format!("t{number}/fine"));
            assert_eq!(fine.trim(), number.to_string(), "the control: {result:#}");
        }
        look_around(&project.file(""));
        assert_eq!(
            made(&canaries),
            BTreeSet::new(),
            "seed {seed}, call {at}:\n{script}\n{result:#}"
        );
        for folder in super::harness::folders(&project.file("")) {
            for name in NAMES {
                assert!(!folder.join(name).exists(), "{}/{name}", folder.display());
            }
        }
    }
    println!("{count} rounds; {real} canaries on the copies without us");
    assert!(real > 0, "the trees are harmless");
}

#[test]
fn thirty_trees_run_nothing_on_the_host() {
    rounds(30, 18, 1);
}

#[test]
fn a_thousand_trees_run_nothing_on_the_host() {
    let seed = std::env::var("RUNNER_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
    rounds(1000, seed.unwrap_or(4242), 8);
}
