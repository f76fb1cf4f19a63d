//! Paths: joining them as text, and judging them by patterns.
//!
//! Duty: which path may be read or written, by the policy's lists and by what holds for everyone.
//! Everything here is about names. What a name leads to is checked where it is opened: by the
//! broker through handles, and by the sandbox, which mounts nothing that was not granted.

use std::sync::OnceLock;

use globset::GlobBuilder;
use runner_glob::{Braces, Glob, Grammar};

use crate::finding::At;

/// Never writable, whatever a policy says: our own files, git's configuration, hooks and unfinished rebases (of worktrees
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
    "**/.git/{rebase-merge,rebase-apply,sequencer}",
    "**/.git/{rebase-merge,rebase-apply,sequencer}/**",
    "**/.git/worktrees/*/{rebase-merge,rebase-apply,sequencer}",
    "**/.git/worktrees/*/{rebase-merge,rebase-apply,sequencer}/**",
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

/// Never readable, whatever a policy says: key material. A folder of such a name hides all that is in it.
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
///
/// `..` after an entry of `/proc` can lead anywhere: `/proc/net` and `/proc/self/cwd` are links. Such a path is
/// given as one below `/proc/self/root`, which is never taken for a fact about the sandbox.
#[must_use]
pub fn join(cwd: &str, path: &str) -> String {
    let start = if path.starts_with('/') { "" } else { cwd };
    let mut parts: Vec<&str> = Vec::new();
    let mut up_in_proc = false;
    for part in start.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => {
                up_in_proc |= parts.len() > 1 && parts[0] == "proc";
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    let joined = parts.join("/");
    match parts.first() {
        Some(&"proc") if up_in_proc => format!("/proc/self/root/{joined}"),
        _ => format!("/{joined}"),
    }
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
    static SET: OnceLock<Vec<Glob>> = OnceLock::new();
    let components: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    SET.get_or_init(|| fixed(PROTECTED)).iter().any(|glob| glob.matches(&components))
}

/// Whether the path is never readable.
#[must_use]
pub fn is_key_material(path: &str) -> bool {
    static SET: OnceLock<Vec<Glob>> = OnceLock::new();
    let components: Vec<&str> = path.split('/').collect();
    SET.get_or_init(|| fixed(KEY_MATERIAL)).iter().any(|glob| glob.matches_or_above(&components))
}

fn fixed(patterns: &[&str]) -> Vec<Glob> {
    patterns.iter().filter_map(|pattern| Glob::new(pattern).ok()).collect()
}

/// One pattern, as `globset` reads it: `*` and `?` stay inside a component, `**` crosses.
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
    glob(pattern).map_err(|error| error.kind().to_string())?;
    let alternatives = Braces::parse(pattern, Grammar::Path)
        .and_then(|braces| braces.expand(Glob::MAX_ALTERNATIVES))
        .unwrap_or_default();
    if pattern.contains("[:") || alternatives.is_empty() || Glob::new(pattern).is_err() {
        return Err("too many alternatives, or brackets that are not simple".to_owned());
    }
    let blank = |name: &str| name.starts_with(' ') || name.ends_with(' ');
    if alternatives.iter().flat_map(|text| text.split('/')).any(blank) {
        return Err("a name in it begins or ends with a blank; write `{a,b}` without blanks, and `?` for a \
                    blank that is meant"
            .to_owned());
    }
    Ok(())
}

/// One list of one policy, such as its `files.deny`.
///
/// `folder/**` is the folder and all that is in it. `!` subtracts within the list. A folder counts for what is
/// in it wherever that is stricter:
///
/// | list | a path is in it if |
/// | --- | --- |
/// | `deny`, `readonly` | a pattern matches the path, or a folder above it, and no `!` matches that same path or folder |
/// | `read`, `write` | a pattern matches the path, and no `!` matches it or a folder above it |
///
/// So nothing in a denied folder can be subtracted: `secrets/**` with `!secrets/README` is an error when it is
/// loaded ([`List::without_effect`]), and `secrets/*` with `!secrets/README` denies all but that file.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub struct List {
    /// The patterns as written, with their places.
    pub patterns: Vec<(String, At)>,
    /// What a match means.
    meaning: Meaning,
    /// `None` if a pattern is none: then the list means whatever is stricter.
    #[serde(skip)]
    globs: OnceLock<Option<Vec<Glob>>>,
}

/// What it means that a path is in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
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
        Self { patterns, meaning, globs: OnceLock::new() }
    }

    /// The pattern by which a path is in the list. Below the workspace (`relative`) only relative patterns
    /// count, elsewhere only absolute ones.
    #[must_use]
    pub fn find(&self, absolute: &str, relative: Option<&str>) -> Option<&(String, At)> {
        let Some(globs) = self.globs.get_or_init(|| self.read()) else {
            return self.patterns.first().filter(|_| self.meaning == Meaning::Refuses);
        };
        let path: Vec<&str> = relative.unwrap_or(absolute).split('/').collect();
        let counting = |subtracts: bool| {
            self.patterns.iter().zip(globs).filter(move |((text, _), _)| {
                let pattern = text.strip_prefix('!');
                pattern.is_some() == subtracts
                    && pattern.unwrap_or(text).starts_with('/') == relative.is_none()
            })
        };
        let held = |path: &[&str]| {
            counting(false).find(|(_, glob)| glob.matches(path)).map(|(entry, _)| entry)
        };
        match self.meaning {
            Meaning::Grants => held(&path)
                .filter(|_| !counting(true).any(|(_, glob)| glob.matches_or_above(&path))),
            Meaning::Refuses => {
                // Most paths are in no list, and one look tells.
                if !counting(false).any(|(_, glob)| glob.matches_or_above(&path)) {
                    return None;
                }
                (1..=path.len()).map(|end| &path[..end]).find_map(|above| {
                    held(above).filter(|_| !counting(true).any(|(_, glob)| glob.matches(above)))
                })
            }
        }
    }

    /// Patterns that subtract nothing, each with the pattern that refuses the whole folder around it.
    pub fn without_effect(&self) -> impl Iterator<Item = (&(String, At), &str)> {
        self.patterns.iter().filter(|_| self.meaning == Meaning::Refuses).filter_map(|entry| {
            let pattern = entry.0.strip_prefix('!')?;
            let path = pattern.strip_suffix("/**").unwrap_or(pattern);
            let folder = path.rsplit_once('/')?.0;
            // The folders above it that it writes out.
            let written = folder.find(['*', '?', '[', '{', '\\']).unwrap_or(folder.len());
            let folder = match folder.get(..written)? {
                whole if written == folder.len() => whole,
                part => part.rsplit_once('/')?.0,
            };
            let relative = (!folder.starts_with('/')).then_some(folder);
            let around = self.find(folder, relative).filter(|_| !folder.is_empty())?;
            Some((entry, around.0.as_str()))
        })
    }

    fn read(&self) -> Option<Vec<Glob>> {
        self.patterns
            .iter()
            .map(|(text, _)| Glob::with_folder(text.strip_prefix('!').unwrap_or(text)).ok())
            .collect()
    }
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
        assert_eq!(join("/w", "/proc/../etc/shadow"), "/etc/shadow");
        assert_eq!(join("/w", "/proc/self/../../etc/shadow"), "/etc/shadow");
    }

    #[test]
    fn going_up_inside_proc_is_never_plain() {
        for (cwd, path) in [
            ("/w", "/proc/net/../cwd/.env"),
            ("/w", "/proc/self/cwd/../status"),
            ("/proc/net", "../cwd/.env"),
        ] {
            let joined = join(cwd, path);
            assert!(joined.starts_with("/proc/self/root/proc/"), "{joined}");
            assert!(join(&joined, "../x").starts_with("/proc/self/root/"));
        }
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
        assert!(!hit(".env.example") && !hit("a.env") && !hit("build") && !hit(".environment"));
    }

    #[test]
    fn a_folder_pattern_covers_the_folder() {
        let write = list(&["target/**"]);
        assert!(write.find("/w/target", Some("target")).is_some());
        assert!(write.find("/w/targets", Some("targets")).is_none());
    }

    #[test]
    fn a_refused_folder_refuses_all_that_is_in_it() {
        let deny = list(&[
            "config/private",
            "**/.env",
            "**/*.key",
            "!**/.env.example",
            "!**/test.key",
            "pages/*",
            "!pages/open",
            "/etc/ssl",
        ]);
        let hit = |path: &str| deny.find("", Some(path)).is_some();
        for path in [
            "config/private",
            "config/private/a",
            "config/private/a/b",
            ".env/a",
            "x/.env/a/b",
            "a.key/b",
            "a.key/.env.example",
            "a.key/test.key",
            "pages/a/b",
            "pages/open/x.key",
        ] {
            assert!(hit(path), "{path}");
        }
        for path in [
            "config",
            "config/public",
            "config/private2",
            "config/private2/x",
            "x/config/private",
            ".env.example/a",
            "test.key/a",
            "pages",
            "pages/open",
            "pages/open/x",
        ] {
            assert!(!hit(path), "{path}");
        }
        assert!(deny.find("/etc/ssl/a/b", None).is_some() && deny.find("/etc/ssh", None).is_none());
    }

    #[test]
    fn what_a_grant_subtracts_takes_along_what_is_in_it() {
        let patterns = ["**", "!frozen", "!**/cache/**", "frozen/x"];
        let grant = List::new(
            Meaning::Grants,
            patterns.map(|text| (text.to_owned(), At::default())).to_vec(),
        );
        let hit = |path: &str| grant.find("", Some(path)).is_some();
        assert!(hit("a") && hit("a/b") && hit("frozen2") && hit("a/frozen/x") && hit("caches/a"));
        assert!(!hit("frozen") && !hit("frozen/x") && !hit("frozen/a/b"));
        assert!(!hit("cache") && !hit("a/cache") && !hit("a/cache/b/c"));
    }

    #[test]
    fn what_cannot_be_subtracted_is_found() {
        let found = |patterns: &[&str]| -> Vec<String> {
            list(patterns)
                .without_effect()
                .map(|((text, _), around)| format!("{text} {around}"))
                .collect()
        };
        let none: [String; 0] = [];
        assert_eq!(found(&["secrets/**", "!secrets/README"]), ["!secrets/README secrets/**"]);
        assert_eq!(found(&["secrets", "!secrets/a/b"]), ["!secrets/a/b secrets"]);
        assert_eq!(found(&["a/*", "!a/b/*"]), ["!a/b/* a/*"]);
        assert_eq!(found(&["**/secrets/**", "!docs/secrets/x"]), ["!docs/secrets/x **/secrets/**"]);
        assert_eq!(found(&["/etc/ssl/**", "!/etc/ssl/certs/*"]), ["!/etc/ssl/certs/* /etc/ssl/**"]);
        assert_eq!(found(&["secrets/*", "!secrets/README"]), none);
        assert_eq!(found(&["**/secrets/**", "!docs/secrets/**"]), none);
        assert_eq!(found(&["a/*", "!a/b", "!a/b/*"]), none);
        assert_eq!(found(&["**/.env.*", "!**/.env.example", "!a*/b"]), none);
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
        assert!(is_key_material("/w/id_rsa/x") && is_key_material("/w/a.ppk/b/c"));
    }

    #[test]
    fn bad_patterns_are_explained() {
        for text in [
            "",
            "!",
            "../x",
            "a//b",
            "a/",
            "a**b",
            "~/x",
            "$HOME/x",
            "[",
            "a/./b",
            "{.env, .key}",
            "a /b",
        ] {
            assert!(check_pattern(text).is_err(), "{text}");
        }
        for text in ["**", "a/**", "!**/.env.example", "/usr/**", "{a,b}/*.rs", "..test", "a b/c d"]
        {
            assert!(check_pattern(text).is_ok(), "{text}");
        }
    }
}
