//! What `.gitignore` files say. The nearest one to a path has the last word, and whatever is in an ignored folder is
//! ignored.

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::broker::client::{Client, Thrown};

/// Most `.gitignore` files that are read.
const FILES_MAX: usize = 50;
/// Bytes of one that are read.
const BYTES_MAX: usize = 64 << 10;
/// Lines of one that count. Each can cost as much as a path is long, for every path.
const LINES_MAX: usize = 1_000;

/// The rules of a folder and all below it.
#[derive(Default)]
pub(super) struct Ignored {
    /// By folder, the deepest last.
    files: Vec<(String, Gitignore)>,
}

impl Ignored {
    /// Reads those of `start`, of the folders above it, and below.
    pub(super) async fn read(client: &Client, start: &str) -> Result<Self, Thrown> {
        let mut found: Vec<String> = Vec::new();
        let mut above = String::new();
        for part in std::iter::once("").chain(parts(start)) {
            above = join(&above, part);
            found.push(join(&above, ".gitignore"));
        }
        let below = client.glob("**/.gitignore", start).await?.paths;
        found.extend(below.iter().map(|path| join(start, path)));
        found.sort_by_key(|path| (path.matches('/').count(), path.clone()));
        found.dedup();
        let mut rules = Self::default();
        for path in found.iter().take(FILES_MAX) {
            let folder = path.strip_suffix(".gitignore").unwrap_or_default().trim_end_matches('/');
            if rules.ignores(folder, true) {
                continue;
            }
            // One that is not there or may not be read says nothing.
            if let Ok(contents) = client.read(path, BYTES_MAX).await {
                rules.add(folder, &String::from_utf8_lossy(&contents.bytes));
            }
        }
        Ok(rules)
    }

    fn add(&mut self, folder: &str, text: &str) {
        let mut builder = GitignoreBuilder::new("");
        for line in text.lines().take(LINES_MAX) {
            // A line that is no pattern ignores nothing, as in git.
            let _ = builder.add_line(None, line);
        }
        if let Ok(rules) = builder.build() {
            self.files.push((folder.to_owned(), rules));
        }
    }

    /// Whether a path below the workspace is ignored, or something that it is in.
    pub(super) fn ignores(&self, path: &str, folder: bool) -> bool {
        let mut ends: Vec<usize> = path.match_indices('/').map(|(at, _)| at).collect();
        ends.push(path.len());
        let last = ends.len() - 1;
        let says = |(at, end): (usize, &usize)| self.says(&path[..*end], folder || at < last);
        !path.is_empty() && ends.iter().enumerate().any(says)
    }

    /// What the nearest rule says about exactly this path.
    fn says(&self, path: &str, folder: bool) -> bool {
        for (within, rules) in self.files.iter().rev() {
            let below = match within.as_str() {
                "" => Some(path),
                within => path.strip_prefix(within).and_then(|rest| rest.strip_prefix('/')),
            };
            let Some(below) = below else { continue };
            let said = rules.matched(below, folder);
            if !said.is_none() {
                return said.is_ignore();
            }
        }
        false
    }
}

/// The parts of a path, without those that mean nothing.
fn parts(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|part| !part.is_empty() && *part != ".")
}

/// A path below a folder; `.` is the workspace.
pub(super) fn join(folder: &str, path: &str) -> String {
    let folder = parts(folder).collect::<Vec<_>>().join("/");
    match (folder.as_str(), path) {
        ("", path) => path.to_owned(),
        (_, "") => folder,
        (folder, path) => format!("{folder}/{path}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_rule_has_the_last_word_and_folders_take_all_with_them() {
        let mut rules = Ignored::default();
        rules.add("", "*.log\n/build/\nnode_modules\n!keep.log\n[\n");
        rules.add("sub", "!a.log\n*.tmp\n");
        for (path, ignored) in [
            ("a.log", true),
            ("keep.log", false),
            ("sub/a.log", false),
            ("sub/b.log", true),
            ("sub/x.tmp", true),
            ("x.tmp", false),
            ("build/x", true),
            ("build", false),
            ("sub/build/x", false),
            ("a/node_modules/b/c.js", true),
            ("src/main.rs", false),
            ("", false),
        ] {
            assert_eq!(rules.ignores(path, false), ignored, "{path}");
        }
        assert!(rules.ignores("build", true));
    }

    #[test]
    fn paths_are_joined_below_the_workspace() {
        assert_eq!(join(".", "a"), "a");
        assert_eq!(join("./x//y/", "a/b"), "x/y/a/b");
        assert_eq!(join("x", ""), "x");
        assert_eq!(join("", ""), "");
    }
}
