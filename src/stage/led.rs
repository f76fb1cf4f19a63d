//! Places that the host runs or reads because of a configuration or a symlink that it has.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::workspace::protected::table::is_same_name;

/// Such a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Led {
    /// Below the root.
    pub path: PathBuf,
    /// What leads there, for people: after "the host runs or reads it by".
    pub by: String,
    /// What is meant.
    pub reach: Reach,
}

/// How far a place reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// A file of this name.
    File,
    /// Whatever is there, and everything below it.
    Below,
}

/// What an interpreter runs that is given a folder.
const RUN_IN_FOLDER: [&str; 3] = ["__main__.py", "index.js", "package.json"];

impl Led {
    /// The places that a word of a command stands for. A word without `/` is rarely a path: a folder of
    /// that name is not meant. Of a folder, only what an interpreter starts with is run.
    #[must_use]
    pub fn by_word(word: &OsStr, path: PathBuf, is_folder: bool, by: &str) -> Vec<Self> {
        let led = |path, reach| Self { path, by: by.to_owned(), reach };
        match (is_folder, word.as_bytes().contains(&b'/')) {
            (true, _) => {
                RUN_IN_FOLDER.iter().map(|name| led(path.join(name), Reach::File)).collect()
            }
            (false, true) => vec![led(path, Reach::Below)],
            (false, false) => vec![led(path, Reach::File)],
        }
    }

    /// Whether a path is at the place, or below it if that counts.
    #[must_use]
    pub fn holds(&self, path: &Path) -> bool {
        starts_with(path, &self.path)
            && (self.reach == Reach::Below || path.iter().count() == self.path.iter().count())
    }

    /// Whether the place is below a path.
    #[must_use]
    pub fn is_below(&self, path: &Path) -> bool {
        starts_with(&self.path, path)
    }
}

/// Whether a path is another or lies below it, in any case of ASCII letters.
#[must_use]
pub fn starts_with(path: &Path, above: &Path) -> bool {
    let mut names = path.iter();
    above
        .iter()
        .all(|part| names.next().is_some_and(|name| is_same_name(name.as_bytes(), part.as_bytes())))
}
