//! Covered paths as git names them: below the top of a working tree.

use std::collections::{BTreeSet, HashSet};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// The covered paths of one or more working trees.
#[derive(Debug, Default)]
pub struct Covered {
    paths: HashSet<Vec<u8>>,
}

impl Covered {
    /// Those below the top of a working tree. `covered` has paths below the workspace, as `top` is.
    #[must_use]
    pub fn below(covered: &BTreeSet<PathBuf>, top: &Path) -> Self {
        Self { paths: below(covered, top).map(bytes).collect() }
    }

    /// Those that any working tree could have, where its top is not known.
    #[must_use]
    pub fn anywhere(covered: &BTreeSet<PathBuf>) -> Self {
        let mut paths = HashSet::new();
        for path in covered {
            let mut rest = path.components();
            while !rest.as_path().as_os_str().is_empty() {
                paths.insert(bytes(rest.as_path()));
                rest.next();
            }
        }
        Self { paths }
    }

    /// Adds those of another working tree.
    pub fn extend(&mut self, other: Self) {
        self.paths.extend(other.paths);
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    /// Whether a path, or a folder above it, is covered.
    #[must_use]
    pub fn has(&self, path: &[u8]) -> bool {
        let above = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
        above.chain([path.len()]).any(|end| self.paths.contains(&path[..end]))
    }
}

/// The covered paths below the top of a working tree, relative to it, in order.
pub fn below<'a>(
    covered: &'a BTreeSet<PathBuf>,
    top: &'a Path,
) -> impl Iterator<Item = &'a Path> + 'a {
    let from =
        covered.range::<Path, _>((std::ops::Bound::Excluded(top), std::ops::Bound::Unbounded));
    from.map_while(move |path| path.strip_prefix(top).ok())
}

fn bytes(path: &Path) -> Vec<u8> {
    path.as_os_str().as_bytes().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set() -> BTreeSet<PathBuf> {
        [".env", "a/.env", "a/secret", "a-b/.env", "b"].map(PathBuf::from).into()
    }

    #[test]
    fn paths_are_those_of_the_working_tree() {
        let top = Covered::below(&set(), Path::new(""));
        for path in [&b".env"[..], b"a/.env", b"a/secret", b"a/secret/x/y", b"b/c"] {
            assert!(top.has(path), "{path:?}");
        }
        for path in [&b".environment"[..], b"a", b"a/secrets", b"c/.env", b""] {
            assert!(!top.has(path), "{path:?}");
        }
        let a = Covered::below(&set(), Path::new("a"));
        assert!(a.has(b".env") && a.has(b"secret/x") && !a.has(b"a/.env") && !a.has(b"b"));
        assert!(Covered::below(&set(), Path::new("c")).is_empty());
    }

    #[test]
    fn any_end_of_a_path_counts_where_the_top_is_not_known() {
        let any = Covered::anywhere(&set());
        assert!(any.has(b"secret/x") && any.has(b"a/.env") && any.has(b".env") && any.has(b"b"));
        assert!(!any.has(b"a") && !any.has(b"x/.env"));
    }
}
