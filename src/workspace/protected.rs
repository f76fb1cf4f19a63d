//! Paths that no policy can open: what is never writable, and what is never readable.
//!
//! Duty: say of a path below a workspace whether it is protected, and how. Non-goals: mounting. The
//! policy holds the same lists for commands; here they are read part by part, because the broker needs
//! to know more than yes or no.

use std::path::{Component, Path};

use runner_policy::paths;

/// How an existing path is protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guard {
    /// It is not.
    Open,
    /// What is in it may be writable, but it cannot be renamed, removed or replaced.
    Anchored,
    /// It and everything below it is read-only.
    ReadOnly,
}

/// Names that are protected wherever they stand, with all that is below them: our own folder, and what
/// shells and editors run when they start or open a folder.
const NAMES: &[&str] = &[
    ".runner",
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    ".kshrc",
    ".cshrc",
    ".tcshrc",
    ".login",
    ".inputrc",
    ".envrc",
    ".gitconfig",
    ".vimrc",
    ".gvimrc",
    ".exrc",
    ".nvimrc",
    ".nvim.lua",
    ".emacs",
    ".emacs.d",
    ".dir-locals.el",
    ".dir-locals-2.el",
    ".vscode",
    ".idea",
    ".zed",
    ".devcontainer",
];

/// Where git keeps what it runs or is led by, in a git folder. `modules` and `worktrees` hold git folders of
/// their own: they are closed as a whole.
const GIT: &[&str] = &[
    "config",
    "config.worktree",
    "hooks",
    "commondir",
    "gitdir",
    "modules",
    "worktrees",
    "info/attributes",
    "objects/info/alternates",
    // What an unfinished rebase or sequence does next: its lines can be commands.
    "rebase-merge",
    "rebase-apply",
    "sequencer",
];

/// How the path is protected, if it exists.
#[must_use]
pub fn guard(relative: &Path) -> Guard {
    match guard_by_name(relative) {
        // The policy's list may know more; what it protects is protected here too.
        Guard::Open if paths::is_protected(&relative.to_string_lossy()) => Guard::ReadOnly,
        guard => guard,
    }
}

fn guard_by_name(relative: &Path) -> Guard {
    let mut parts = relative.components();
    while let Some(part) = parts.next() {
        let Component::Normal(name) = part else { continue };
        if NAMES.iter().any(|protected| name == *protected) {
            return Guard::ReadOnly;
        }
        if name == ".git" {
            return guard_in_git(parts.as_path());
        }
    }
    Guard::Open
}

/// How a path below a git folder is protected; the empty path is the folder itself.
#[must_use]
pub fn guard_in_git(below: &Path) -> Guard {
    if below.as_os_str().is_empty() {
        return Guard::Anchored;
    }
    if GIT.iter().any(|protected| below.starts_with(protected)) {
        Guard::ReadOnly
    } else {
        Guard::Open
    }
}

/// Patterns of the key material that can be in a workspace.
#[must_use]
pub fn key_material() -> Vec<&'static str> {
    paths::KEY_MATERIAL.iter().copied().filter(|pattern| !pattern.starts_with('/')).collect()
}

/// Whether the path is key material, which nobody may read.
#[must_use]
pub fn is_key_material(relative: &Path) -> bool {
    paths::is_key_material(&relative.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protected_paths_are_known_at_any_depth() {
        let of = |path: &str| guard(Path::new(path));
        for path in [
            ".runner",
            ".runner/policies/x.yml",
            "sub/.runner/x",
            ".bashrc",
            ".vscode/tasks.json",
            "a/.envrc",
            ".git/config",
            ".git/hooks",
            ".git/hooks/pre-commit",
            ".git/info/attributes",
            ".git/modules/a/b/config",
            ".git/worktrees/w/gitdir",
            "vendor/x/.git/hooks/post-checkout",
        ] {
            assert_eq!(of(path), Guard::ReadOnly, "{path}");
        }
        for path in [".git", "sub/.git"] {
            assert_eq!(of(path), Guard::Anchored, "{path}");
        }
        for path in [
            "",
            "src",
            ".git/index",
            ".git/objects/aa/bb",
            ".git/configs",
            ".gitignore",
            "hooks/x",
            "runner/x",
        ] {
            assert_eq!(of(path), Guard::Open, "{path}");
        }
    }

    #[test]
    fn key_material_is_known_at_any_depth() {
        for path in [".ssh", "a/.ssh/config", "id_ed25519", "deploy/id_rsa", ".aws/credentials"] {
            assert!(is_key_material(Path::new(path)), "{path}");
        }
        for path in ["", "id_rsa.pub", "src/ssh.rs", ".aws/config", "credentials"] {
            assert!(!is_key_material(Path::new(path)), "{path}");
        }
    }

    #[test]
    fn what_the_policy_protects_is_protected_here() {
        for pattern in paths::PROTECTED {
            let sample = pattern.replace("**/", "").replace("/**", "/x").replace('*', "x");
            let sample = sample
                .replace("{gitdir,commondir}", "gitdir")
                .replace("{rebase-merge,rebase-apply,sequencer}", "sequencer");
            assert_ne!(guard(Path::new(&sample)), Guard::Open, "{pattern}");
        }
    }
}
