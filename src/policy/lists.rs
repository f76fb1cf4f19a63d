//! The lists of files of a composed policy, as the mount planner asks for them.
//!
//! Grants (`read`, `write`) hold where the policy and all that it stays within agree; refusals
//! (`readonly`, `deny`) hold where any of them says so.

use crate::effective::Effective;
use crate::model::{Companion, Package, Policy};
use crate::paths::List;

/// Which list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileList {
    /// `files.read`
    Read,
    /// `files.write`
    Write,
    /// `files.readonly`
    Readonly,
    /// `files.deny`
    Deny,
}

impl FileList {
    fn of(self, policy: &Policy) -> &List {
        match self {
            Self::Read => &policy.files.read,
            Self::Write => &policy.files.write,
            Self::Readonly => &policy.files.readonly,
            Self::Deny => &policy.files.deny,
        }
    }

    fn grants(self) -> bool {
        matches!(self, Self::Read | Self::Write)
    }
}

impl Effective {
    /// Whether a list holds a path below the workspace.
    #[must_use]
    pub fn holds(&self, list: FileList, relative: &str) -> bool {
        let own = self.layers.iter().any(|layer| list.of(layer).find("", Some(relative)).is_some());
        if list.grants() {
            own && self.within.iter().all(|other| other.holds(list, relative))
        } else {
            own || self.within.iter().any(|other| other.holds(list, relative))
        }
    }

    /// Whether a path below the workspace may be written, where it is known which files there are: by `write`, or
    /// because it belongs to a package. `has` tells whether the workspace has a regular file. All that the policy
    /// stays within must agree.
    #[must_use]
    pub fn may_write(&self, relative: &str, has: &dyn Fn(&str) -> bool) -> bool {
        let own = self.layers.iter().any(|layer| {
            layer.files.write.find("", Some(relative)).is_some()
                || layer.files.packages.iter().any(|package| package.holds(relative, has))
        });
        own && self.within.iter().all(|other| other.may_write(relative, has))
    }

    /// Whether anything below the workspace may be written at all, as far as patterns tell.
    #[must_use]
    pub fn writes_anything(&self) -> bool {
        let own = self.layers.iter().any(|layer| {
            let files = &layer.files;
            files.write.patterns.iter().any(|(pattern, _)| !pattern.starts_with(['!', '/']))
                || !files.packages.is_empty()
                || !files.create.is_empty()
        });
        own && self.within.iter().all(Self::writes_anything)
    }

    /// Files that may be made where nothing is: own ones that everything the policy stays within lets
    /// be made or written too.
    #[must_use]
    pub fn created(&self) -> Vec<&Companion> {
        let own = self.layers.iter().flat_map(|layer| &layer.files.create);
        own.filter(|companion| self.within.iter().all(|other| other.may_create(companion)))
            .collect()
    }

    fn may_create(&self, wanted: &Companion) -> bool {
        let same = |own: &&Companion| own.file == wanted.file && own.beside == wanted.beside;
        self.holds(FileList::Write, &wanted.file) || self.created().iter().any(same)
    }

    /// The relative patterns of a list as written, `!` included. For a grant they are what is left
    /// of them within all that the policy stays within.
    #[must_use]
    pub fn patterns(&self, list: FileList) -> Vec<String> {
        let relative = |pattern: &str| !pattern.trim_start_matches('!').starts_with('/');
        let mut patterns: Vec<String> = self
            .layers
            .iter()
            .flat_map(|layer| &list.of(layer).patterns)
            .map(|(text, _)| text.clone())
            .filter(|text| relative(text))
            .collect();
        for other in &self.within {
            let theirs = other.patterns(list);
            if list.grants() {
                let (subtracted, granted): (Vec<String>, Vec<String>) = patterns
                    .into_iter()
                    .chain(theirs.iter().filter(|text| text.starts_with('!')).cloned())
                    .partition(|text| text.starts_with('!'));
                patterns = granted
                    .iter()
                    .flat_map(|own| theirs.iter().filter_map(|their| intersection(own, their)))
                    .chain(subtracted)
                    .collect();
            } else {
                patterns.extend(theirs);
            }
        }
        patterns.sort();
        patterns.dedup();
        patterns
    }
}

/// Folders of what others wrote. A manifest below one makes no package of the workspace.
const FOREIGN: [&str; 4] = ["node_modules", "site-packages", "vendor", "third_party"];

impl Package {
    /// Whether a path fits a pattern from some folder on that has the manifest.
    fn holds(&self, relative: &str, has: &dyn Fn(&str) -> bool) -> bool {
        let names: Vec<&str> = relative.split('/').collect();
        let own = names.iter().take_while(|name| !FOREIGN.contains(name)).count();
        (0..names.len()).take(own + 1).any(|depth| {
            let (folder, rest) = names.split_at(depth);
            self.write.find("", Some(&rest.join("/"))).is_some()
                && has(&[folder, &[self.manifest.as_str()]].concat().join("/"))
        })
    }
}

/// What two patterns have in common, where one lies below the other; nothing where that cannot be told.
fn intersection(a: &str, b: &str) -> Option<String> {
    if a == b || tree(b).is_some_and(|folder| lies_below(a, folder)) {
        return Some(a.to_owned());
    }
    tree(a).is_some_and(|folder| lies_below(b, folder)).then(|| b.to_owned())
}

/// The folder of `folder/**`; empty for `**`.
fn tree(pattern: &str) -> Option<&str> {
    if pattern == "**" {
        return Some("");
    }
    pattern.strip_suffix("/**").filter(|folder| !folder.contains(['*', '?', '[', '{', '\\']))
}

fn lies_below(pattern: &str, folder: &str) -> bool {
    folder.is_empty() || pattern.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::intersection;
    use crate::{Origin, PolicySet, Source, parse};

    /// What `p` may make, within `q`.
    fn created(p: &str, q: &str) -> Vec<String> {
        let mut set = PolicySet::default();
        for (name, files) in [("p", p), ("q", q)] {
            let within = if name == "p" { "within: [q]\n" } else { "" };
            let text = format!("policy: 1\nname: {name}\n{within}files: {files}\n");
            set.add(parse(Source { file: name, text: &text, origin: Origin::User }).unwrap())
                .unwrap();
        }
        let effective = set.effective("p").unwrap();
        effective.created().iter().map(|own| own.file.clone()).collect()
    }

    #[test]
    fn a_file_is_made_only_if_every_bound_lets_it_be_made_or_written() {
        let own = "{ create: { Cargo.lock: Cargo.toml } }";
        assert_eq!(created(own, own), ["Cargo.lock"]);
        assert_eq!(created(own, "{ write: [\"**\"] }"), ["Cargo.lock"]);
        assert_eq!(created(own, "{ create: { Cargo.lock: other } }"), [""; 0]);
        assert_eq!(created(own, "{ write: [\"**\", \"!Cargo.lock\"] }"), [""; 0]);
        assert_eq!(created(own, "{ read: [\"**\"] }"), [""; 0]);
    }

    #[test]
    fn a_package_is_a_folder_with_a_manifest_that_is_not_somebody_elses() {
        let policy = |files: &str, within: &str| {
            let mut set = PolicySet::default();
            for (name, files, within) in [("p", files, "within: [q]\n"), ("q", within, "")] {
                let text = format!("policy: 1\nname: {name}\n{within}files: {files}\n");
                set.add(parse(Source { file: name, text: &text, origin: Origin::User }).unwrap())
                    .unwrap();
            }
            set.effective("p").unwrap()
        };
        let there = [
            "package.json",
            "a/package.json",
            "a/b/package.json",
            "node_modules/x/package.json",
            "a/node_modules/x/package.json",
            "vendor/x/package.json",
            "lib/site-packages/x/package.json",
            "rust/Cargo.toml",
        ];
        let has = |path: &str| there.contains(&path);
        let all = "{ write: [\"**\"] }";
        let own = "{ packages: { package.json: [\"dist/**\", \"node_modules/.cache/**\"], Cargo.toml: target/** } }";
        for (files, within) in [(own, all), (all, own), (own, own)] {
            let policy = policy(files, within);
            for path in [
                "dist",
                "dist/x",
                "a/dist",
                "a/dist/x/y",
                "a/b/dist/x",
                "rust/target/x",
                "a/node_modules/.cache/x",
                // A package's build folder is its own, whatever lies in it.
                "a/dist/node_modules/x/dist/y",
            ] {
                assert!(policy.may_write(path, &has), "{path}");
            }
            for path in [
                "a",
                "a/x",
                "a/package.json",
                "a/distx/y",
                "a/src/dist/x",
                "c/dist/x",
                "a/target/x",
                "rust/dist/x",
                "rust/src/target/x",
                "node_modules/x/dist/y",
                "a/node_modules/x/dist/y",
                "a/node_modules/x/node_modules/.cache/y",
                "vendor/x/dist/y",
                "lib/site-packages/x/dist/y",
            ] {
                assert!(!policy.may_write(path, &has), "{path}");
            }
        }
        assert!(!policy(own, "{ read: [\"**\"] }").may_write("a/dist/x", &has), "within nothing");
        assert!(!policy(own, own).may_write("a/dist/x", &|_| false), "no manifest at all");
    }

    #[test]
    fn patterns_meet_where_one_lies_below_the_other() {
        assert_eq!(intersection("**", "build/**").as_deref(), Some("build/**"));
        assert_eq!(intersection("build/x/**", "build/**").as_deref(), Some("build/x/**"));
        assert_eq!(intersection("a", "a").as_deref(), Some("a"));
        assert_eq!(intersection("build/**", "builder/**"), None);
        assert_eq!(intersection("*.rs", "src/**"), None);
    }
}
