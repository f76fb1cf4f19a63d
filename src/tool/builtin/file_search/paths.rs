//! Which paths there are: one question for a small tree, and folder by folder where a tree is too large for that.

use runner_glob::{Glob, GlobError};

use super::ignored::{Ignored, join};
use crate::broker::client::{Client, Thrown};
use crate::tool::builtin::problem::Problem;

/// Questions that are asked about one tree. Each folder of a large one costs two.
const QUESTIONS: usize = 200;

/// Which paths are wanted.
pub(super) struct Wanted {
    /// Whether names that start with a dot are.
    pub hidden: bool,
    /// What `.gitignore` files say, if they count.
    pub ignored: Option<Ignored>,
    /// Only these, if there are any.
    pub include: Option<Globs>,
    /// Not these.
    pub exclude: Option<Globs>,
}

/// The paths that were found.
#[derive(Default)]
pub(super) struct Found {
    /// Below the workspace, in order. Folders may be among them.
    pub paths: Vec<String>,
    /// How many are ignored or hidden.
    pub ignored: usize,
    /// Whether there may be more.
    pub truncated: bool,
}

impl Wanted {
    /// Whether a path below `start` is wanted: `Err` if only `.gitignore` or its dot is against it.
    fn wants(&self, start: &str, path: &str, folder: bool) -> Result<bool, ()> {
        let dotted = |part: &str| part.starts_with('.') && (!self.hidden || part == ".git");
        let whole = join(start, path);
        if path.split('/').any(dotted) {
            return Err(());
        }
        if self.ignored.as_ref().is_some_and(|rules| rules.ignores(&whole, folder)) {
            return Err(());
        }
        if folder {
            return Ok(true);
        }
        let included = self.include.as_ref().is_none_or(|set| set.is_match(path));
        Ok(included && !self.exclude.as_ref().is_some_and(|set| set.is_match(path)))
    }

    /// Looks for paths that a pattern covers.
    pub(super) async fn find(
        &self,
        client: &Client,
        pattern: &str,
        start: &str,
    ) -> Result<Found, Thrown> {
        let mut found = Found::default();
        let answer = client.glob(pattern, start).await?;
        if answer.truncated && pattern == "**" {
            self.folder_by_folder(client, start, &mut found).await?;
        } else {
            found.truncated = answer.truncated;
            self.keep(&mut found, start, "", answer.paths).await;
        }
        found.paths.sort();
        Ok(found)
    }

    async fn keep(&self, found: &mut Found, start: &str, below: &str, paths: Vec<String>) {
        for path in paths {
            // A repository's own patterns can be slow: the call's clock is heard between two paths.
            tokio::task::yield_now().await;
            let path = join(below, &path);
            match self.wants(start, &path, false) {
                Ok(true) => found.paths.push(join(start, &path)),
                Ok(false) => {}
                Err(()) => found.ignored += 1,
            }
        }
    }

    /// Enters only folders that are wanted, so that ignored ones cost nothing however large they are.
    async fn folder_by_folder(
        &self,
        client: &Client,
        start: &str,
        found: &mut Found,
    ) -> Result<(), Thrown> {
        let mut folders = vec![String::new()];
        let mut asked = 0;
        while let Some(below) = folders.pop() {
            if asked >= QUESTIONS {
                found.truncated = true;
                break;
            }
            let whole = join(start, &below);
            let whole = if whole.is_empty() { "." } else { whole.as_str() };
            let answer = client.glob("**", whole).await?;
            asked += 1;
            if !answer.truncated {
                self.keep(found, start, &below, answer.paths).await;
                continue;
            }
            let seen = client.glob("*", whole).await?;
            let listing = client.list(whole).await?;
            asked += 2;
            found.truncated |= seen.truncated || listing.truncated;
            let (mut files, mut deeper) = (Vec::new(), Vec::new());
            for entry in listing.entries {
                if seen.paths.binary_search(&entry.name).is_err() {
                    continue;
                }
                let path = join(&below, &entry.name);
                match (entry.kind.as_str(), self.wants(start, &path, true)) {
                    ("dir", Ok(_)) => deeper.push(path),
                    ("dir", Err(())) => found.ignored += 1,
                    _ => files.push(entry.name),
                }
            }
            folders.extend(deeper.into_iter().rev());
            self.keep(found, start, &below, files).await;
        }
        Ok(())
    }
}

/// Patterns of names. Without a slash, a pattern is about the last part of a path.
#[derive(Debug)]
pub(super) struct Globs(Vec<Glob>);

impl Globs {
    /// Whether one of them covers a path.
    pub(super) fn is_match(&self, path: &str) -> bool {
        let names: Vec<&str> = path.split('/').collect();
        self.0.iter().any(|glob| glob.matches(&names))
    }
}

/// Reads patterns of names; none at all is `None`.
pub(super) fn globs(patterns: &[String]) -> Result<Option<Globs>, Thrown> {
    if patterns.is_empty() {
        return Ok(None);
    }
    let read = |pattern: &String| {
        let anywhere = format!("**/{pattern}");
        let whole = if pattern.contains('/') { pattern } else { &anywhere };
        Glob::new(whole).map_err(|error: GlobError| {
            Problem::Pattern.says(format!("`{pattern}` is not a name pattern: {error}"))
        })
    };
    patterns.iter().map(read).collect::<Result<_, _>>().map(|all| Some(Globs(all)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_without_a_slash_is_about_the_name() {
        let set = globs(&["*.ts".to_owned(), "src/*.rs".to_owned()]).unwrap().unwrap();
        for path in ["a.ts", "x/y/a.ts", "src/a.rs"] {
            assert!(set.is_match(path), "{path}");
        }
        for path in ["a.tsx", "src/x/a.rs", "a.rs"] {
            assert!(!set.is_match(path), "{path}");
        }
        assert!(globs(&[]).unwrap().is_none());
        assert_eq!(globs(&["[".to_owned()]).unwrap_err().code, "bad_pattern");
    }

    #[test]
    fn hidden_and_excluded_paths_are_not_wanted() {
        let mut wanted = Wanted {
            hidden: false,
            ignored: None,
            include: None,
            exclude: globs(&["*.snap".to_owned()]).unwrap(),
        };
        assert_eq!(wanted.wants(".", "a/b", false), Ok(true));
        assert_eq!(wanted.wants(".", "a/b.snap", false), Ok(false));
        assert_eq!(wanted.wants(".", ".github/x", false), Err(()));
        wanted.hidden = true;
        assert_eq!(wanted.wants(".", ".github/x", false), Ok(true));
        assert_eq!(wanted.wants(".", ".git/config", false), Err(()));
    }
}
