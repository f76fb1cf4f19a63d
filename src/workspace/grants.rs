//! What a decision lets a call do with files, as the planner needs it.
//!
//! Duty: the planner's view of a policy's path lists, and what their patterns could reach.
//! Non-goals: matching patterns (the owner of the policy does, behind [`PathSet`]).

use std::path::{Path, PathBuf};

use runner_glob::{Braces, Grammar};

/// A set of paths, relative to the workspace.
pub trait PathSet: Sync {
    /// Whether the set holds this path.
    fn matches(&self, relative: &Path) -> bool;

    /// The patterns as written, a leading `!` included.
    fn patterns(&self) -> Vec<String>;

    /// Whether the set holds this path where it is known which regular files the workspace has: some policies let
    /// builds write beside a manifest.
    fn matches_where(&self, relative: &Path, _has: &dyn Fn(&Path) -> bool) -> bool {
        self.matches(relative)
    }

    /// Whether the set holds everything below a folder, whatever it will be called.
    ///
    /// Asked by two names that no pattern spells out. A list that subtracts is never sure.
    fn covers(&self, folder: &Path) -> bool {
        let child = folder.join(PROBE);
        self.matches(&child)
            && self.matches(&child.join(PROBE))
            && !self.patterns().iter().any(|pattern| pattern.starts_with('!'))
    }

    /// Whether the set holds nothing below a folder but what a pattern spells out.
    fn leaves_out(&self, folder: &Path) -> bool {
        let child = folder.join(PROBE);
        !self.matches(&child) && !self.matches(&child.join(PROBE))
    }
}

/// Whether some pattern of a set could hold something below a folder. Errs towards yes.
#[must_use]
pub fn could_reach(patterns: &[String], folder: &Path) -> bool {
    patterns.iter().filter(|pattern| !pattern.starts_with('!')).any(|pattern| {
        if !is_brace_free(pattern) {
            return true;
        }
        let mut parts = pattern.split('/');
        for name in folder {
            match parts.next() {
                None => return false,
                Some("**") => return true,
                Some(part) if is_literal(part) && name != part => return false,
                Some(_) => {}
            }
        }
        parts.next().is_some()
    })
}

fn is_brace_free(pattern: &str) -> bool {
    !pattern.contains(['{', '\\'])
}

/// A name that no pattern spells out.
const PROBE: &str = "\u{1}any\u{1}";

/// Whether a call may write at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writes {
    /// The granted effects hold no write: everything is read-only.
    None,
    /// They do: the command writes into a stage, and what the policy allows of it is applied.
    Some,
}

/// Whether the deciding rule grants `code`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// It does: what is written is not known beforehand.
    Granted,
    /// It does not: every written path was read from the command.
    NotGranted,
}

/// What a decision grants, and the policy's path lists.
#[derive(Clone, Copy)]
pub struct FileGrants<'a> {
    /// The digest of the policy that the lists are of. Two policies can have the same patterns in other layers, and
    /// hold other paths.
    pub policy: [u8; 32],
    /// Readable.
    pub read: &'a dyn PathSet,
    /// Writable.
    pub write: &'a dyn PathSet,
    /// Files that may be made where nothing is, and stay as they are where something is.
    pub create: &'a [Companion],
    /// Readable, never writable: the policy's list, and what holds for everyone.
    pub readonly: &'a dyn PathSet,
    /// Neither: the policy's list, and key material.
    pub deny: &'a dyn PathSet,
    /// Whether the call writes.
    pub writes: Writes,
    /// Whether it runs code.
    pub code: Code,
}

/// A file that may be made beside another, relative to the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Companion {
    /// The file.
    pub file: PathBuf,
    /// What must be there.
    pub beside: PathBuf,
}

/// Most alternatives that one pattern's braces may stand for.
const MAX_ALTERNATIVES: usize = 64;

/// Whether a pattern names exactly one path.
fn is_literal(pattern: &str) -> bool {
    !pattern.contains(['*', '?', '[', ']', '{', '}', '\\'])
}

/// `{a,b}` written out; `None` where braces are nested, unbalanced or too many.
pub(super) fn alternatives(pattern: &str) -> Option<Vec<String>> {
    let braces = Braces::parse(pattern, Grammar::Path).ok().filter(Braces::is_flat)?;
    braces.expand(MAX_ALTERNATIVES).ok()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

    /// Patterns as policies have them.
    pub(crate) struct Globs {
        texts: Vec<String>,
        includes: GlobSet,
        excludes: GlobSet,
    }

    pub(crate) fn globs(patterns: &[&str]) -> Globs {
        let compile = |list: Vec<&str>| {
            let mut set = GlobSetBuilder::new();
            for text in list {
                set.add(GlobBuilder::new(text).literal_separator(true).build().unwrap());
                if let Some(folder) = text.strip_suffix("/**") {
                    set.add(GlobBuilder::new(folder).literal_separator(true).build().unwrap());
                }
            }
            set.build().unwrap()
        };
        let (excludes, includes): (Vec<&str>, Vec<&str>) =
            patterns.iter().copied().partition(|text| text.starts_with('!'));
        Globs {
            texts: patterns.iter().map(|text| (*text).to_owned()).collect(),
            includes: compile(includes),
            excludes: compile(excludes.into_iter().map(|text| &text[1..]).collect()),
        }
    }

    impl PathSet for Globs {
        fn matches(&self, relative: &Path) -> bool {
            self.includes.is_match(relative) && !self.excludes.is_match(relative)
        }

        fn patterns(&self) -> Vec<String> {
            self.texts.clone()
        }
    }

    #[test]
    fn a_pattern_reaches_below_a_folder_or_does_not() {
        let reach =
            |pattern: &str, folder: &str| could_reach(&[pattern.to_owned()], Path::new(folder));
        assert!(reach("src/**", "src") && reach("src/**", "src/deep") && reach("**/*.md", "any"));
        assert!(reach("a/b/c", "a/b") && reach("a/*/c", "a/x") && reach("{a,b}/c", "z"));
        assert!(!reach("src/**", "target") && !reach("a/b/c", "a/x") && !reach("README.md", "src"));
    }

    #[test]
    fn a_set_covers_a_folder_only_if_it_holds_any_name_below() {
        let covers = |patterns: &[&str], folder: &str| globs(patterns).covers(Path::new(folder));
        assert!(covers(&["**"], ""));
        assert!(covers(&["secrets/**"], "secrets"));
        assert!(covers(&["secrets/**"], "secrets/deep"));
        assert!(!covers(&["secrets/*"], "secrets"));
        assert!(!covers(&["**/*.pem"], "secrets"));
        assert!(!covers(&["secrets/**", "!secrets/README"], "secrets"));
    }
}
