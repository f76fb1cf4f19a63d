//! The index of a git repository: covered entries hidden before a call, and revealed after it.
//!
//! Duty: read versions 2, 3 and 4 strictly, set and clear `skip-worktree`, write. Non-goals: the
//! contents of objects, locks, files. Trust boundary: a staged index is the adversary's. Of it,
//! only entries reach the host: extensions are caches, and a false cache of trees would make the
//! user's next commit differ from what `git status` shows.

pub mod covered;
mod input;
mod read;
#[cfg(test)]
pub(crate) mod tests;
mod write;

use std::collections::{HashMap, HashSet};

pub use read::{Entry, Hash, Index, MAX_INDEX};

use read::{EXTENDED_SKIP_WORKTREE, Extension};
use write::{Written, write};

/// A git setting that every command in a sandbox gets, in the configuration of its home. In a
/// repository with a sparse checkout, git takes `skip-worktree` off from every entry whose file
/// exists, and a covered file exists.
pub const SPARSE_CONFIG: (&str, &str) = ("sparse.expectFilesOutsideOfPatterns", "true");

/// Why an index is not read, or not applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IndexError {
    /// It is longer than [`MAX_INDEX`], or its names are.
    #[error("the index is too large")]
    TooLarge,
    /// It ends too early.
    #[error("the index ends within {what}")]
    Truncated {
        /// What was being read.
        what: &'static str,
    },
    /// It breaks a rule of the format.
    #[error("the index is malformed: {what}")]
    Malformed {
        /// Which rule.
        what: &'static str,
    },
    /// Another version than 2, 3 or 4.
    #[error("the index has the unknown version {0}")]
    Version(u32),
    /// Its checksum is neither the SHA-1 nor the SHA-256 of its content.
    #[error("the checksum of the index is wrong")]
    Checksum,
    /// An entry has a path that no checkout may write: absolute, with `..`, or with `.git`.
    #[error("the index has an entry with an unsafe path")]
    UnsafePath(Vec<u8>),
    /// A part of the entries is in another file.
    #[error("the index is a split index")]
    SplitIndex,
    /// A mandatory extension that this program does not know.
    #[error("the index has an unknown mandatory extension")]
    UnknownExtension([u8; 4]),
    /// A covered path is unmerged: `skip-worktree` has no effect on it.
    #[error("a covered path is unmerged")]
    Unmerged(Vec<u8>),
    /// The staged index has another content or mode for a covered path.
    #[error("the staged index changes a covered path")]
    CoveredChanged(Vec<u8>),
    /// The staged index no longer has a covered path.
    #[error("the staged index removes a covered path")]
    CoveredRemoved(Vec<u8>),
    /// The staged index has a covered path that was not tracked.
    #[error("the staged index adds a covered path")]
    CoveredAdded(Vec<u8>),
    /// A folder outside the sparse checkout changed. It may hold covered paths.
    #[error("the staged index changes a folder outside the sparse checkout")]
    SparseFolder(Vec<u8>),
    /// The staged index uses another hash than the host's.
    #[error("the staged index has another object format")]
    OtherHash,
}

/// The index with `skip-worktree` on all entries that `covered` names, or `None` if no entry is.
///
/// `covered` gets the path of an entry below the top of the working tree. It must be true for
/// everything below a covered folder.
///
/// # Errors
///
/// The index cannot be read in full, or a covered path is unmerged.
pub fn hide(index: &[u8], covered: &dyn Fn(&[u8]) -> bool) -> Result<Option<Vec<u8>>, IndexError> {
    let index = Index::read(index)?;
    let mut any = false;
    let mut entries = Vec::with_capacity(index.entries().len());
    for entry in index.entries() {
        let mut written = Written::from(&index, entry);
        if !entry.is_folder() && covered(written.path) {
            if entry.stage() != 0 {
                return Err(IndexError::Unmerged(written.path.to_vec()));
            }
            written.extended |= EXTENDED_SKIP_WORKTREE;
            any = true;
        }
        entries.push(written);
    }
    // Other caches hold offsets, or what was seen in the host's tree.
    let kept = |extension: &&Extension<'_>| matches!(&extension.name, b"TREE" | b"REUC" | b"sdir");
    let extensions: Vec<_> = index.extensions().iter().filter(kept).copied().collect();
    Ok(any.then(|| write(index.hash(), index.version(), &entries, &extensions)))
}

/// The paths that an index tracks.
#[derive(Debug)]
pub struct Tracked {
    paths: HashSet<Vec<u8>>,
    /// Folders outside the sparse checkout, which stand for all below them. They end in `/`.
    folders: Vec<Vec<u8>>,
}

impl Tracked {
    /// Reads the paths of an index.
    ///
    /// # Errors
    ///
    /// The index cannot be read in full.
    pub fn read(index: &[u8]) -> Result<Self, IndexError> {
        let index = Index::read(index)?;
        let (folders, files): (Vec<_>, Vec<_>) =
            index.entries().iter().partition(|entry| entry.is_folder());
        let path = |entry: &Entry<'_>| index.path(entry).to_vec();
        Ok(Self {
            paths: files.into_iter().map(path).collect(),
            folders: folders.into_iter().map(path).collect(),
        })
    }

    /// Whether a path is tracked, or lies in a folder outside the sparse checkout.
    #[must_use]
    pub fn has(&self, path: &[u8]) -> bool {
        self.paths.contains(path) || self.folders.iter().any(|folder| path.starts_with(folder))
    }
}

/// The entries of a staged index that the host's own does not have, or has otherwise.
///
/// # Errors
///
/// One of them cannot be read in full.
pub fn new_entries(
    staged: &[u8],
    original: Option<&[u8]>,
    mut see: impl FnMut(&[u8], u32, &[u8]),
) -> Result<(), IndexError> {
    let original = original.map(Index::read).transpose()?;
    let known: HashSet<(&[u8], u32, &[u8])> = original
        .iter()
        .flat_map(|index| {
            index.entries().iter().map(move |it| (index.path(it), it.mode(), it.id()))
        })
        .collect();
    let staged = Index::read(staged)?;
    for entry in staged.entries() {
        let (path, mode, id) = (staged.path(entry), entry.mode(), entry.id());
        if !known.contains(&(path, mode, id)) {
            see(path, mode, id);
        }
    }
    Ok(())
}

/// The id that git gives to a file of this content, in a repository whose ids have as many bytes.
#[must_use]
pub fn blob_id(content: &[u8], length: usize) -> Option<Vec<u8>> {
    let hash = [Hash::Sha1, Hash::Sha256].into_iter().find(|hash| hash.length() == length)?;
    let blob = [format!("blob {}\0", content.len()).as_bytes(), content].concat();
    Some(hash.of(&blob).as_ref().to_vec())
}

/// The index to apply where the host has none: the staged one without optional extensions.
///
/// # Errors
///
/// It cannot be read in full, or has a covered path or a folder outside the sparse checkout.
pub fn reveal_new(staged: &[u8], covered: &dyn Fn(&[u8]) -> bool) -> Result<Vec<u8>, IndexError> {
    let staged = Index::read(staged)?;
    for entry in staged.entries() {
        let path = staged.path(entry);
        if entry.is_folder() {
            return Err(IndexError::SparseFolder(path.to_vec()));
        }
        if covered(path) {
            return Err(IndexError::CoveredAdded(path.to_vec()));
        }
    }
    let entries: Vec<_> =
        staged.entries().iter().map(|entry| Written::from(&staged, entry)).collect();
    let extensions: Vec<_> =
        staged.extensions().iter().filter(|e| e.is_mandatory()).copied().collect();
    Ok(write(staged.hash(), staged.version(), &entries, &extensions))
}

/// The index to apply: the staged one, with the covered entries as the host has them in `original`.
///
/// It is needed for every staged index, also if [`hide`] found nothing to hide: a command can add
/// a covered path that was not tracked. All optional extensions are dropped.
///
/// # Errors
///
/// One of them cannot be read in full, or the staged one adds, changes or removes a covered path or
/// a folder outside the sparse checkout.
pub fn reveal(
    staged: &[u8],
    original: &[u8],
    covered: &dyn Fn(&[u8]) -> bool,
) -> Result<Vec<u8>, IndexError> {
    let original = Index::read(original)?;
    let staged = Index::read_as(staged, original.hash())?;
    let mut wanted = HashMap::new();
    for entry in original.entries() {
        let path = original.path(entry);
        if entry.is_folder() || covered(path) {
            if entry.stage() != 0 {
                return Err(IndexError::Unmerged(path.to_vec()));
            }
            wanted.insert(path, entry);
        }
    }
    let mut entries = Vec::with_capacity(staged.entries().len());
    for entry in staged.entries() {
        let path = staged.path(entry);
        if !entry.is_folder() && !covered(path) {
            entries.push(Written::from(&staged, entry));
            continue;
        }
        let Some(old) = wanted.remove(path) else {
            return Err(if entry.is_folder() {
                IndexError::SparseFolder(path.to_vec())
            } else {
                IndexError::CoveredAdded(path.to_vec())
            });
        };
        let same = entry.stage() == 0 && entry.mode() == old.mode() && entry.id() == old.id();
        match (same, entry.is_folder()) {
            // The whole entry, so that its stat data is that of the host's file.
            (true, _) => entries.push(Written::from(&original, old)),
            (false, true) => return Err(IndexError::SparseFolder(path.to_vec())),
            (false, false) => return Err(IndexError::CoveredChanged(path.to_vec())),
        }
    }
    // The first by name, so that the answer does not depend on the order of a map.
    if let Some((path, entry)) = wanted.into_iter().min_by_key(|(path, _)| *path) {
        return Err(if entry.is_folder() {
            IndexError::SparseFolder(path.to_vec())
        } else {
            IndexError::CoveredRemoved(path.to_vec())
        });
    }
    let extensions: Vec<_> =
        staged.extensions().iter().filter(|e| e.is_mandatory()).copied().collect();
    Ok(write(staged.hash(), staged.version(), &entries, &extensions))
}

/// Whether two indexes have the same entries, and differ at most in stat data, in the version of
/// the format and in optional extensions. An index that cannot be read is the same as no other.
#[must_use]
pub fn same_but_stat(a: &[u8], b: &[u8]) -> bool {
    let (Ok(a), Ok(b)) = (Index::read(a), Index::read(b)) else {
        return false;
    };
    a.hash() == b.hash()
        && a.entries().len() == b.entries().len()
        && a.entries().iter().zip(b.entries()).all(|(one, other)| {
            one.mode() == other.mode()
                && one.id() == other.id()
                && one.marks() == other.marks()
                && a.path(one) == b.path(other)
        })
}
