//! Paths that no policy can open: what is never writable, and what is never readable.
//!
//! Duty: say of a path below a workspace whether it is protected, and how, by the one table of what the
//! host runs ([`table`]). Non-goals: which folders are git folders ([`crate::stage::repository`]). The
//! policy has a list of its own for commands, which refuses the plainest cases before anything runs.

pub mod table;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path};
use std::sync::LazyLock;

use runner_policy::paths;

use super::names::Names;
use table::Class;

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
        if table::is_same_name(name.as_bytes(), b".git") {
            return guard_in_git(parts.as_path());
        }
    }
    match table::find(relative) {
        Some(row) if row.class == Class::Never => Guard::ReadOnly,
        Some(_) | None => Guard::Open,
    }
}

/// How a path below a git folder is protected; the empty path is the folder itself.
#[must_use]
pub fn guard_in_git(below: &Path) -> Guard {
    if below.as_os_str().is_empty() {
        Guard::Anchored
    } else if table::find_in_git(below).is_some() {
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

/// Whether the path is key material, which is never readable.
#[must_use]
pub fn is_key_material(relative: &Path) -> bool {
    could_be_key_material(relative) && paths::is_key_material(&relative.to_string_lossy())
}

/// A look at names alone, which rules out nearly every path. It is asked of each denied file.
fn could_be_key_material(path: &Path) -> bool {
    static NAMES: LazyLock<Names> = LazyLock::new(|| Names::new(key_material()));
    path.is_absolute()
        || NAMES.is_deep(path.iter().map(OsStr::as_bytes))
        || path.file_name().is_none_or(|name| NAMES.could_hold(name.as_bytes()))
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
            ".git/configs",
        ] {
            assert_eq!(of(path), Guard::ReadOnly, "{path}");
        }
        for path in [".git", "sub/.git"] {
            assert_eq!(of(path), Guard::Anchored, "{path}");
        }
        for path in
            ["", "src", ".git/index", ".git/objects/aa/bb", ".gitignore", "hooks/x", "runner/x"]
        {
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
