//! The table of what makes the host run something later.
//!
//! Duty: say of a name, wherever it lies and whether or not it exists, whether a program of the
//! host runs it or is led by it without being asked. Non-goals: the policy's lists; which folders
//! are git folders ([`crate::stage::repository`]).
//!
//! A row's pattern is one or more names, one below the other, at any depth. It holds for the place
//! and for everything below it. `*` stands for any characters of one name. ASCII letters match in
//! either case, because some file systems fold case. [`GIT`] is the same for a git folder of any
//! name, from that folder down.
//!
//! Not in the table, on purpose: instructions for agents without hooks (`CLAUDE.md`, `AGENTS.md`),
//! which are text; what a build runs because it was asked to (`Makefile`, `package.json`,
//! `build.rs`), which is source; and `.gitattributes`, which only selects among the drivers that
//! the user configured. A driver gets the content of any clone anyway, its configuration is
//! *never*, and so is a driver's program in the workspace ([`crate::stage::led::Led`]).

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::OnceLock;

/// What a name means to the host. Ordered by strictness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// The policy decides alone.
    Source,
    /// Run by the next build, install or pipeline: only a policy that names the file lets it
    /// change.
    Named,
    /// Run without being asked: no policy lets it change.
    Never,
}

/// One row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// Names, one below the other.
    pub pattern: &'static str,
    /// What a match means.
    pub class: Class,
    /// Who runs it and when, after "it is run by".
    pub runs: &'static str,
}

macro_rules! rows {
    ($($class:ident $runs:literal: $($pattern:literal)+;)+) => {
        &[$($(Row { pattern: $pattern, class: Class::$class, runs: $runs },)+)+]
    };
}

/// Names that the host runs or is led by, at any depth.
pub const TABLE: &[Row] = rows! {
    Never "runner, as its configuration or state":
        ".runner" ".config/runner" ".local/state/runner" ".cache/runner";
    Never "a shell when it starts or ends":
        ".bashrc" ".bash_profile" ".bash_login" ".bash_logout" ".bash_aliases" ".profile" ".zshrc"
        ".zshenv" ".zprofile" ".zlogin" ".zlogout" ".kshrc" ".mkshrc" ".cshrc" ".tcshrc" ".login"
        ".logout" ".inputrc" ".xprofile" ".xinitrc" ".xsession" ".xsessionrc" ".pam_environment"
        ".config/fish" ".config/autostart" ".config/systemd" ".config/environment.d" ".tmux.conf"
        ".screenrc" ".bash_completion" ".bashrc.d" ".cargo/env" ".cargo/env.*";
    Never "the shell's directory hook on `cd`":
        ".envrc" ".envrc.*" ".direnv" ".autoenv" ".autoenv.zsh" ".autoenv_leave.zsh" ".env.leave"
        ".shadowenv.d" ".rvmrc" "mise.toml" ".mise.toml"
        "mise.*.toml" ".mise.*.toml" ".mise" "mise/config.toml" "mise/conf.d" ".config/mise"
        ".config/mise.toml" ".config/mise.*.toml";
    Never "git, as the user's configuration": ".gitconfig" ".config/git";
    Never "git, as hooks": ".husky" ".githooks" ".git-hooks";
    Never "another version control program in this folder":
        ".hg/hgrc" ".hg/hgrc-not-shared" ".hg/sharedpath" ".hgrc" ".jj/repo"
        ".jj/workspace-config.toml" ".sl/config" "_darcs/prefs" ".p4config";
    Never "a terminal program for git that is started here": ".lazygit.yml";
    Never "an editor that opens a file or folder here":
        ".vimrc" "_vimrc" ".gvimrc" "_gvimrc" ".exrc" "_exrc" ".nvimrc" ".nvim.lua" ".nvim" ".vim"
        ".lvimrc" ".local.vimrc" ".vimrc.local" ".config/nvim" ".emacs" ".emacs.d" ".emacs.el"
        ".dir-locals.el" ".dir-locals-2.el" ".config/emacs" ".vscode" ".vscode-insiders"
        ".vscode-server" ".vscode-oss" "*.code-workspace" ".idea" ".fleet" ".vs" ".zed"
        ".devcontainer" ".devcontainer.json" ".helix" ".config/helix" ".kakrc" ".lapce" ".nova"
        ".theia" "*.sublime-project" ".ycm_extra_conf.py" ".lazy.lua" ".luarc.json" ".luarc.jsonc"
        ".lite_project.lua" "rust-analyzer.toml" ".rust-analyzer.toml" ".externalToolBuilders"
        ".clj-kondo/hooks" ".lsp" "buildServer.json" ".bsp" "hie.yaml" ".ropeproject"
        "rust-project.json";
    Never "a debugger or interpreter that is started here":
        ".gdbinit" ".lldbinit" ".pdbrc" ".irbrc" ".pryrc" ".rprofile" ".renviron" ".iex.exs" ".ghci"
        ".octaverc" ".pythonrc" ".pythonrc.py" ".perldb" ".radare2rc" ".sqliterc" ".psqlrc" ".rdata"
        ".ocamlinit" ".rdbgrc" ".rdbgrc.rb" ".byebugrc";
    Never "an agent that is started here":
        ".claude" ".claude.json" ".mcp.json" ".codex" ".gemini" ".cursor" ".qwen" ".opencode"
        "opencode.json" "opencode.jsonc" ".copilot" ".continue" ".continuerc.json" ".aider.conf.yml"
        ".roo" ".roomodes" ".kilocode" ".kilocodemodes" ".cline" ".windsurf" ".codeium" ".amazonq"
        ".kiro" ".augment" ".junie" ".goose" ".crush" ".crush.json" "crush.json" ".trae" ".factory"
        ".agents" ".amp" ".pi" ".grok" ".github/hooks" ".config/opencode" ".config/goose" ".clinerules"
        ".kilo" "kilo.json" "kilo.jsonc" ".warp" ".tabnine" ".openhands" ".vibe" ".agent" "gptme.toml"
        "conductor.json" "firebender.json" ".github/lsp.json" ".github/mcp.json" ".github/copilot";
    Named "cargo or rustup at the next build":
        ".cargo/config.toml" ".cargo/config" "rust-toolchain" "rust-toolchain.toml";
    Named "a JavaScript package manager or runtime at its next start":
        ".npmrc" ".pnpmfile.cjs" ".pnpmfile.mjs" ".yarnrc" ".yarnrc.yml" ".yarn/releases"
        ".yarn/plugins" "bunfig.toml" ".bunfig.toml";
    Named "a build tool at its next start":
        ".mvn" "gradle/wrapper" ".bazelrc" ".bazelversion" ".bundle/config" ".buckconfig";
    Named "a hook manager at the next commit":
        ".pre-commit-config.yaml" ".pre-commit-config.yml" "lefthook.yml" "lefthook.yaml"
        "lefthook.toml" "lefthook.json" ".lefthook.yml" ".lefthook.yaml" ".lefthook.toml"
        ".lefthook.json" "lefthook-local.*" ".lefthook-local.*" ".lefthook" ".lefthook-local"
        "prek.toml" "hk.pkl" "captainhook.json" "grumphp.yml" ".huskyrc" ".huskyrc.*"
        ".overcommit.yml" ".simple-git-hooks.*" "simple-git-hooks.*" ".lintstagedrc*"
        "lint-staged.config.*" "commitlint.config.*" ".commitlintrc*";
    Named "git, which fetches from where it says, at the next submodule update": ".gitmodules";
    Named "git's extension for large files at the next fetch": ".lfsconfig";
    Named "the shell's directory hook on `cd`, where the user has set one up for it":
        ".tool-versions" "flake.nix" "shell.nix" "devenv.nix" "devenv.yaml" "devbox.json";
    Named "the project's pipeline after the next push":
        ".github/workflows" ".github/actions" ".gitlab-ci.yml" ".gitlab/ci" "Jenkinsfile" ".circleci"
        ".travis.yml" "azure-pipelines.yml" ".azure-pipelines" "bitbucket-pipelines.yml" ".buildkite"
        ".drone.yml" ".drone.star" ".woodpecker.yml" ".woodpecker.yaml" ".woodpecker"
        ".forgejo/workflows" ".gitea/workflows" ".teamcity" "appveyor.yml" ".appveyor.yml"
        ".cirrus.yml" ".cirrus.star" "cloudbuild.yaml" ".semaphore" ".gitpod.yml"
        ".gitpod.dockerfile";
};

/// Names in a git folder that git runs or is led by, from the folder down. The folders of linked
/// worktrees and submodules that exist are git folders of their own, and only what is new in
/// `worktrees` and `modules` is meant here.
pub const GIT: &[Row] = rows! {
    Never "every git command in the repository, as its configuration":
        "config" "config.lock" "config.worktree" "config.worktree.lock";
    Never "git, as hooks": "hooks";
    Never "git, which is led by it to another folder":
        "commondir" "gitdir" "modules" "worktrees" "objects/info/alternates"
        "objects/info/http-alternates" "remotes" "branches" "info/grafts" "refs/replace";
    Never "git, which selects filters and drivers by it": "info/attributes";
    Never "git when the unfinished rebase or sequence goes on":
        "rebase-merge" "rebase-apply" "sequencer";
};

/// Names in a git folder that are data, from the folder down. The commits that some of them name are
/// looked at as those of branches are.
const GIT_DATA: &[&str] = &[
    "HEAD",
    "ORIG_HEAD",
    "FETCH_HEAD",
    "MERGE_HEAD",
    "MERGE_MODE",
    "MERGE_MSG",
    "MERGE_RR",
    "MERGE_AUTOSTASH",
    "AUTO_MERGE",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "REBASE_HEAD",
    "SQUASH_MSG",
    "COMMIT_EDITMSG",
    "TAG_EDITMSG",
    "NOTES_EDITMSG",
    "EDIT_DESCRIPTION",
    "ADD_EDIT.patch",
    "BISECT_ANCESTORS_OK",
    "BISECT_EXPECTED_REV",
    "BISECT_FIRST_PARENT",
    "BISECT_HEAD",
    "BISECT_LOG",
    "BISECT_NAMES",
    "BISECT_RUN",
    "BISECT_START",
    "BISECT_TERMS",
    "index",
    "sharedindex.*",
    "objects",
    "refs",
    "logs",
    "packed-refs",
    "shallow",
    "info/exclude",
    "info/refs",
    "info/sparse-checkout",
    "description",
    "locked",
    "rr-cache",
    "lost-found",
    "lfs",
    "gc.log",
    "gc.pid",
    "gitk.cache",
];

/// Everything else in a git folder: programs beside git keep there what they run.
const GIT_OTHER: Row = Row {
    pattern: "*",
    class: Class::Never,
    runs: "programs that keep their own files in git folders",
};

/// What git makes while it writes. One that is left keeps git from writing.
const GIT_LOCK: Row = Row {
    pattern: "*.lock",
    class: Class::Never,
    runs: "git, which takes it for another git at work",
};

/// The strictest row for a path at any depth.
#[must_use]
pub fn find(path: &Path) -> Option<&'static Row> {
    strictest(path, Reach::AtOrBelow)
}

/// The strictest row for a symlink: as [`find`], and also where the link stands for a folder that a
/// row's pattern leads through. A link named `.cargo` brings a `.cargo/config.toml` of its target.
#[must_use]
pub fn find_for_link(path: &Path) -> Option<&'static Row> {
    strictest(path, Reach::AlsoAbove)
}

/// Why a path below a git folder is no data.
#[must_use]
pub fn find_in_git(below: &Path) -> Option<&'static Row> {
    let names: Vec<&[u8]> = below.iter().map(OsStrExt::as_bytes).collect();
    let last = names.last()?;
    let is_data = || GIT_DATA.iter().any(|pattern| leads_along(pattern, &names, Reach::AlsoAbove));
    run_in_git(below)
        .or_else(|| fits(GIT_LOCK.pattern.as_bytes(), last).then_some(&GIT_LOCK))
        .or_else(|| (!is_data()).then_some(&GIT_OTHER))
}

/// The row of [`GIT`] for a path below a git folder.
#[must_use]
pub fn run_in_git(below: &Path) -> Option<&'static Row> {
    let names: Vec<&[u8]> = below.iter().map(OsStrExt::as_bytes).collect();
    GIT.iter().find(|row| holds(row, &names, Reach::AtOrBelow))
}

/// Whether a symlink could stand where the host runs something: a row of [`TABLE`] says so of its
/// name, or the rows of [`GIT`] do if it lies in a git folder.
#[must_use]
pub fn could_be_run_through(link: &Path) -> bool {
    let never = find_for_link(link).is_some_and(|row| row.class == Class::Never);
    never || link.ancestors().any(|folder| link.strip_prefix(folder).is_ok_and(is_git_row))
}

/// Whether a path from a git folder down is in [`GIT`]; the folder itself is not.
fn is_git_row(below: &Path) -> bool {
    !below.as_os_str().is_empty() && run_in_git(below).is_some()
}

/// Whether two names are the same but for the case of ASCII letters.
#[must_use]
pub fn is_same_name(one: &[u8], two: &[u8]) -> bool {
    one.eq_ignore_ascii_case(two)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// At the place or below it.
    AtOrBelow,
    /// Also at a folder above the place.
    AlsoAbove,
}

fn strictest(path: &Path, reach: Reach) -> Option<&'static Row> {
    let names: Vec<&[u8]> = path.iter().map(OsStrExt::as_bytes).collect();
    let index = index();
    let mut found: Option<&'static Row> = None;
    for (at, name) in names.iter().enumerate() {
        let named = index.named.get(&name.to_ascii_lowercase()).into_iter().flatten();
        for row in named.chain(&index.starred) {
            let stricter = found.is_none_or(|found| found.class < row.class);
            if stricter && holds(row, &names[at..], reach) {
                found = Some(row);
            }
        }
    }
    found
}

/// Whether a row's pattern leads along these names.
fn holds(row: &Row, names: &[&[u8]], reach: Reach) -> bool {
    leads_along(row.pattern, names, reach)
}

fn leads_along(pattern: &str, names: &[&[u8]], reach: Reach) -> bool {
    let mut names = names.iter();
    pattern.split('/').all(|part| match names.next() {
        Some(name) => fits(part.as_bytes(), name),
        None => reach == Reach::AlsoAbove,
    })
}

/// Whether a name fits a part with at most one `*`.
fn fits(part: &[u8], name: &[u8]) -> bool {
    let Some(star) = part.iter().position(|byte| *byte == b'*') else {
        return is_same_name(part, name);
    };
    let (start, end) = (&part[..star], &part[star + 1..]);
    name.len() >= start.len() + end.len()
        && is_same_name(start, &name[..start.len()])
        && is_same_name(end, &name[name.len() - end.len()..])
}

/// The rows by their first name in lower case. Most names of a tree begin no row.
struct Index {
    named: HashMap<Vec<u8>, Vec<&'static Row>>,
    starred: Vec<&'static Row>,
}

fn index() -> &'static Index {
    static INDEX: OnceLock<Index> = OnceLock::new();
    INDEX.get_or_init(|| {
        let mut index = Index { named: HashMap::new(), starred: Vec::new() };
        for row in TABLE {
            let first = row.pattern.split('/').next().unwrap_or_default();
            if first.contains('*') {
                index.starred.push(row);
            } else {
                let first = first.to_ascii_lowercase().into_bytes();
                index.named.entry(first).or_default().push(row);
            }
        }
        index
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(path: &str) -> Class {
        find(Path::new(path)).map_or(Class::Source, |row| row.class)
    }

    #[test]
    fn names_are_found_at_any_depth_in_any_case_and_with_all_below() {
        for path in [
            ".bashrc",
            "a/.envrc",
            "a/b/.VSCode/tasks.json",
            ".Husky/_/x",
            "x/.claude/settings.json",
            "a.code-workspace",
            "sub/.github/hooks/x",
            ".config/fish/config.fish",
            ".emacs.d/init.el",
            ".cargo/config.toml/.envrc",
            ".shadowenv.d/500_default.lisp",
            "a/.autoenv_leave.zsh",
            "a/.env.leave",
            "buildServer.json",
            ".bsp/x.json",
            "a/hie.yaml",
            ".ropeproject/config.py",
            "rust-project.json",
            ".bash_completion",
            ".bashrc.d/x.sh",
            ".cargo/env",
            ".cargo/env.fish",
        ] {
            assert_eq!(class(path), Class::Never, "{path}");
        }
        for path in [
            ".cargo/config",
            "x/.cargo/CONFIG.toml",
            ".github/workflows/ci.yml",
            ".npmrc",
            "Jenkinsfile",
            "jenkinsfile",
            ".lintstagedrc",
            ".lintstagedrc.json",
            ".gitmodules",
            "rust-toolchain",
            "commitlint.config.js",
            ".commitlintrc",
            ".commitlintrc.yml",
        ] {
            assert_eq!(class(path), Class::Named, "{path}");
        }
        for path in [
            "",
            "src/main.rs",
            ".cargo/credentials-x",
            ".github/ISSUE_TEMPLATE/x",
            "CLAUDE.md",
            "AGENTS.md",
            ".gitattributes",
            ".gitignore",
            "config",
            "hooks/x",
            "workflows/ci.yml",
            ".bashrcx",
            "x.bashrc",
            ".config/other",
            "cargo/config.toml",
            ".cargo",
            "env",
            ".env.example",
            "hie.yml",
            "commitlint.md",
        ] {
            assert_eq!(class(path), Class::Source, "{path}");
        }
    }

    #[test]
    fn a_link_above_a_named_place_counts_as_the_place() {
        let link = |path: &str| find_for_link(Path::new(path)).map(|row| row.class);
        assert_eq!(link("x/.yarn"), Some(Class::Named));
        assert_eq!(link("x/.cargo"), Some(Class::Never), "a shell reads `env` in it");
        assert_eq!(link(".github"), Some(Class::Never));
        assert_eq!(link(".config"), Some(Class::Never));
        assert_eq!(link(".husky"), Some(Class::Never));
        assert_eq!(link("cargo"), None);
    }

    #[test]
    fn names_in_a_git_folder_are_found_from_the_folder_down() {
        let found = |path: &str| find_in_git(Path::new(path)).is_some();
        for path in [
            "config",
            "CONFIG",
            "hooks",
            "hooks/pre-commit",
            "commondir",
            "modules/x/HEAD",
            "objects/info/alternates",
            "info/attributes",
            "rebase-merge/git-rebase-todo",
            "worktrees/x",
            "refs/replace/aa",
            "lazygit.yml",
            "safe",
            "sl/config",
            "index.lock",
            "refs/heads/x.lock",
            "info/other",
            "OTHER_HEAD",
        ] {
            assert!(found(path), "{path}");
        }
        for path in [
            "HEAD",
            "index",
            "objects/aa/bb",
            "refs/heads/config",
            "logs/HEAD",
            "info/exclude",
            "info",
            "refs/heads/hooks/x",
            "packed-refs",
            "COMMIT_EDITMSG",
            "BISECT_LOG",
            "MERGE_HEAD",
            "lfs/objects/aa",
            "sharedindex.abc",
            "objects/info",
            "objects/info/packs",
        ] {
            assert!(!found(path), "{path}");
        }
    }

    #[test]
    fn rows_are_written_once_and_can_match() {
        let mut patterns: Vec<String> =
            TABLE.iter().map(|row| row.pattern.to_ascii_lowercase()).collect();
        patterns.sort();
        let all = patterns.len();
        patterns.dedup();
        assert_eq!(patterns.len(), all);
        for row in TABLE {
            assert!(row.pattern.split('/').all(|part| part.matches('*').count() <= 1));
            assert_eq!(class(&row.pattern.replace('*', "x")), row.class, "{}", row.pattern);
        }
    }
}
