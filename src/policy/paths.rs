//! Paths: joining them as text, and judging them by patterns.
//!
//! Duty: which path may be read or written, by the policy's lists and by what holds for everyone.
//! Everything here is about names. What a name leads to is checked where it is opened: by the
//! broker through handles, and by the sandbox, which mounts nothing that was not granted.

use std::sync::OnceLock;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use crate::finding::At;

/// Never writable, whatever a policy says: our own files, git's configuration and hooks (of worktrees
/// and submodules too), and files that shells and editors run when they start.
pub const PROTECTED: &[&str] = &[
    "**/.runner",
    "**/.runner/**",
    "**/.git",
    "**/.git/config",
    "**/.git/config.lock",
    "**/.git/config.worktree",
    "**/.git/hooks",
    "**/.git/hooks/**",
    "**/.git/commondir",
    "**/.git/gitdir",
    "**/.git/info/attributes",
    "**/.git/objects/info/alternates",
    "**/.git/worktrees/*/config.worktree",
    "**/.git/worktrees/*/{gitdir,commondir}",
    "**/.git/modules/**/config",
    "**/.git/modules/**/hooks/**",
    "**/.bashrc",
    "**/.bash_profile",
    "**/.bash_login",
    "**/.bash_logout",
    "**/.profile",
    "**/.zshrc",
    "**/.zshenv",
    "**/.zprofile",
    "**/.zlogin",
    "**/.kshrc",
    "**/.cshrc",
    "**/.tcshrc",
    "**/.inputrc",
    "**/.envrc",
    "**/.gitconfig",
    "**/.vimrc",
    "**/.exrc",
    "**/.nvimrc",
    "**/.emacs",
    "**/.dir-locals.el",
    "**/.vscode",
    "**/.vscode/**",
    "**/.idea",
    "**/.idea/**",
];

/// Never readable, whatever a policy says: key material.
pub const KEY_MATERIAL: &[&str] = &[
    "**/.ssh",
    "**/.ssh/**",
    "**/id_rsa",
    "**/id_dsa",
    "**/id_ecdsa",
    "**/id_ed25519",
    "**/*.ppk",
    "**/.gnupg",
    "**/.gnupg/**",
    "**/.aws/credentials",
    "**/.azure/**",
    "**/.config/gcloud/**",
    "**/.kube/config",
    "**/.docker/config.json",
    "**/.netrc",
    "**/_netrc",
    "**/.git-credentials",
    "**/.pypirc",
    "**/.cargo/credentials",
    "**/.cargo/credentials.toml",
    "**/.gem/credentials",
    "**/.pgpass",
    "**/.my.cnf",
    "**/.vault-token",
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/ssl/private/**",
    "/etc/ssh/ssh_host_*",
];

/// Devices that hold nothing.
const VOID: &[&str] = &[
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/stdin",
    "/dev/stdout",
    "/dev/stderr",
];

/// An absolute path without `.`, `..`, doubled or trailing slashes.
#[must_use]
pub fn join(cwd: &str, path: &str) -> String {
    let start = if path.starts_with('/') { "" } else { cwd };
    let mut parts: Vec<&str> = Vec::new();
    for part in start.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

/// The part below the workspace; `.` for the workspace itself, `None` outside.
#[must_use]
pub fn below<'p>(workspace: &str, path: &'p str) -> Option<&'p str> {
    if workspace == "/" {
        return Some(path.strip_prefix('/').filter(|rest| !rest.is_empty()).unwrap_or("."));
    }
    match path.strip_prefix(workspace)? {
        "" => Some("."),
        rest => rest.strip_prefix('/'),
    }
}

/// Whether the path is scratch that ends with the sandbox, or a device that holds nothing.
#[must_use]
pub fn is_free(workspace: &str, path: &str) -> bool {
    below(workspace, path).is_none() && (path.starts_with("/tmp/") || is_void(path))
}

/// Whether the path is a device that holds nothing.
#[must_use]
pub fn is_void(path: &str) -> bool {
    VOID.contains(&path)
}

/// Whether the path is never writable.
#[must_use]
pub fn is_protected(path: &str) -> bool {
    static SET: OnceLock<GlobSet> = OnceLock::new();
    SET.get_or_init(|| fixed(PROTECTED)).is_match(path.trim_start_matches('/'))
}

/// Whether the path is never readable.
#[must_use]
pub fn is_key_material(path: &str) -> bool {
    static SET: OnceLock<GlobSet> = OnceLock::new();
    SET.get_or_init(|| fixed(KEY_MATERIAL)).is_match(path)
}

fn fixed(patterns: &[&str]) -> GlobSet {
    compile(patterns.iter().copied()).unwrap_or_default()
}

fn compile<'p>(patterns: impl Iterator<Item = &'p str>) -> Result<GlobSet, globset::Error> {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        set.add(glob(pattern)?);
    }
    set.build()
}

/// One pattern: `*` and `?` stay inside a component, `**` crosses.
fn glob(pattern: &str) -> Result<globset::Glob, globset::Error> {
    GlobBuilder::new(pattern).literal_separator(true).backslash_escape(true).build()
}

/// Why a text is no pattern.
///
/// # Errors
/// The text, in words: what is wrong with it.
pub fn check_pattern(text: &str) -> Result<(), String> {
    let pattern = text.strip_prefix('!').unwrap_or(text);
    if pattern.is_empty() {
        return Err("an empty pattern matches nothing".to_owned());
    }
    if pattern.split('/').any(|part| part == ".." || part == ".") {
        return Err("`.` and `..` are not part of a pattern; paths are anchored at the workspace"
            .to_owned());
    }
    if pattern.contains("//") || pattern.ends_with('/') {
        return Err("an empty component matches nothing; write `folder/**` for all below a folder"
            .to_owned());
    }
    if pattern.split('/').any(|part| part.contains("**") && part != "**") {
        return Err("`**` stands alone between slashes".to_owned());
    }
    if pattern.starts_with('~') || pattern.contains('$') {
        return Err("nothing is expanded here; write the path out".to_owned());
    }
    if pattern.contains('\0') {
        return Err("no path holds a NUL byte".to_owned());
    }
    glob(pattern).map(drop).map_err(|error| error.kind().to_string())
}

/// One list of one policy, such as its `files.deny`. `!` subtracts within the list.
#[derive(Debug)]
pub struct List {
    /// The patterns as written, with their places.
    pub patterns: Vec<(String, At)>,
    /// What a match means.
    meaning: Meaning,
    /// `None` if the patterns are too much to compile: then the list means whatever is stricter.
    sets: OnceLock<Option<[Sets; 2]>>,
}

/// What it means that a path is in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// Something is granted.
    Grants,
    /// Something is refused.
    Refuses,
}

impl List {
    /// A list of patterns that [`check_pattern`] accepted.
    #[must_use]
    pub fn new(meaning: Meaning, patterns: Vec<(String, At)>) -> Self {
        Self { patterns, meaning, sets: OnceLock::new() }
    }

    /// The pattern that matches a path. Below the workspace (`relative`) only relative patterns count,
    /// elsewhere only absolute ones.
    #[must_use]
    pub fn find(&self, absolute: &str, relative: Option<&str>) -> Option<&(String, At)> {
        let sets =
            self.sets.get_or_init(|| Some([self.compile(false).ok()?, self.compile(true).ok()?]));
        let Some([below, image]) = sets else {
            return self.patterns.first().filter(|_| self.meaning == Meaning::Refuses);
        };
        let (sets, path) = match relative {
            Some(relative) => (below, relative),
            None => (image, absolute),
        };
        let hit = *sets.includes.matches(path).first()?;
        if sets.excludes.is_match(path) {
            return None;
        }
        self.patterns.get(*sets.index.get(hit)?)
    }

    fn compile(&self, absolute: bool) -> Result<Sets, globset::Error> {
        let mut includes = Vec::new();
        let mut excludes = Vec::new();
        let mut index = Vec::new();
        for (at, (text, _)) in self.patterns.iter().enumerate() {
            let (pattern, subtracts) =
                text.strip_prefix('!').map_or((text.as_str(), false), |pattern| (pattern, true));
            if pattern.starts_with('/') != absolute {
                continue;
            }
            if subtracts {
                excludes.push(pattern);
                continue;
            }
            includes.push(pattern);
            index.push(at);
            // `folder/**` is the folder too.
            if let Some(folder) =
                pattern.strip_suffix("/**").filter(|folder| !folder.ends_with("**"))
            {
                includes.push(folder);
                index.push(at);
            }
        }
        Ok(Sets {
            includes: compile(includes.into_iter())?,
            excludes: compile(excludes.into_iter())?,
            index,
        })
    }
}

/// The patterns of a list, compiled.
#[derive(Debug)]
struct Sets {
    includes: GlobSet,
    excludes: GlobSet,
    /// For each include, its place in the list.
    index: Vec<usize>,
}

/// The names that patterns write out, component by component: what a shell pattern could spell.
pub fn written_names<'p>(
    patterns: impl Iterator<Item = &'p str> + Clone,
) -> impl Iterator<Item = &'p str> + Clone {
    patterns
        .flat_map(|pattern| pattern.split('/'))
        .filter(|name| !name.is_empty() && !name.contains(['*', '?', '[', '{', '!', '\\']))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(patterns: &[&str]) -> List {
        List::new(
            Meaning::Refuses,
            patterns.iter().map(|text| ((*text).to_owned(), At::default())).collect(),
        )
    }

    #[test]
    fn joined_paths_are_absolute_and_plain() {
        assert_eq!(join("/w", "a/b"), "/w/a/b");
        assert_eq!(join("/w/x", "../a//./b/"), "/w/a/b");
        assert_eq!(join("/w", "/etc/../x"), "/x");
        assert_eq!(join("/w", "../../../.."), "/");
        assert_eq!(join("/w", "..test/te..st/%2e%2e"), "/w/..test/te..st/%2e%2e");
    }

    #[test]
    fn a_sibling_with_the_same_beginning_is_outside() {
        assert_eq!(below("/w/dir", "/w/dir2/x"), None);
        assert_eq!(below("/w/dir", "/w/dir/x"), Some("x"));
        assert_eq!(below("/w/dir", "/w/dir"), Some("."));
    }

    #[test]
    fn stars_stay_inside_a_component_and_exclamation_subtracts() {
        let deny = list(&["**/.env", "**/.env.*", "!**/.env.example", "build/*"]);
        let hit = |path: &str| deny.find(&format!("/w/{path}"), Some(path)).is_some();
        assert!(hit(".env") && hit("a/b/.env") && hit(".env.local") && hit("build/x"));
        assert!(!hit(".env.example") && !hit("a.env") && !hit("build/x/y") && !hit(".environment"));
    }

    #[test]
    fn a_folder_pattern_covers_the_folder() {
        let write = list(&["target/**"]);
        assert!(write.find("/w/target", Some("target")).is_some());
        assert!(write.find("/w/targets", Some("targets")).is_none());
    }

    #[test]
    fn protected_and_key_files_are_known_at_any_depth() {
        for path in [
            "/w/.runner/x",
            "/w/.git/hooks/pre-commit",
            "/w/sub/.git/config",
            "/w/.git/modules/a/b/config",
            "/w/.bashrc",
            "/w/.vscode/tasks.json",
        ] {
            assert!(is_protected(path), "{path}");
        }
        for path in [
            "/w/.git/index",
            "/w/.git/objects/aa/bb",
            "/w/src/hooks/x",
            "/w/.gitignore",
            "/w/runner/x",
        ] {
            assert!(!is_protected(path), "{path}");
        }
        assert!(
            is_key_material("/home/u/.ssh/id_ed25519")
                && is_key_material("/w/id_rsa")
                && is_key_material("/etc/shadow")
        );
        assert!(!is_key_material("/w/id_rsa.pub") && !is_key_material("/w/src/ssh.rs"));
    }

    #[test]
    fn bad_patterns_are_explained() {
        for text in ["", "!", "../x", "a//b", "a/", "a**b", "~/x", "$HOME/x", "[", "a/./b"] {
            assert!(check_pattern(text).is_err(), "{text}");
        }
        for text in ["**", "a/**", "!**/.env.example", "/usr/**", "{a,b}/*.rs", "..test"] {
            assert!(check_pattern(text).is_ok(), "{text}");
        }
    }
}
