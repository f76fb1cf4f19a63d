//! The file system that rolldown sees: the tool's folder below a root of its own, and nothing else.
//!
//! Paths above the root do not exist, so no search for `node_modules`, `package.json` or anything else can leave the
//! folder, and absolute paths and links out lead nowhere. Every look is written down: what was there, and also what
//! was not, because a file that appears later could be what an import means then.

use std::collections::BTreeMap;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use oxc_resolver::{FileMetadata, FileSystem as ResolverFiles, ResolveError};
use rolldown_fs::FileSystem;

use runner_compiler::folder::{Folder, Follow, Seen, digest};
use runner_compiler::job::Observation;
use runner_compiler::limits::{FILE_BYTES, PATHS, TOTAL_BYTES};

/// The root. A relative link that leaves the real folder by its name and comes back must not find it by chance.
pub const ROOT: &str = "/.runner-tool";

/// The folder of one tool.
#[derive(Debug, Clone)]
pub struct Files(Option<Arc<Inner>>);

#[derive(Debug)]
struct Inner {
    folder: Folder,
    /// The tool's own file: its text is given, not read.
    entry: (String, String),
    notes: Mutex<Notes>,
}

#[derive(Debug, Default)]
struct Notes {
    seen: BTreeMap<(String, Follow), Seen>,
    bytes: u64,
    /// A file was too large or a path too many: looking again later cannot tell what mattered.
    overrun: bool,
}

impl Files {
    /// The folder, with the text of one file of it.
    pub fn new(folder: Folder, file: &str, text: &str) -> Self {
        let entry = (file.to_owned(), text.to_owned());
        Self(Some(Arc::new(Inner { folder, entry, notes: Mutex::default() })))
    }

    /// The path below the folder that one below the root stands for.
    pub fn relative(path: &Path) -> Option<String> {
        let rest = path.strip_prefix(ROOT).ok()?;
        let plain = rest.components().all(|part| matches!(part, Component::Normal(_)));
        plain.then(|| rest.to_str().map(str::to_owned)).flatten()
    }

    /// The content of a file, as text.
    pub fn text(&self, path: &Path) -> io::Result<String> {
        let bytes = self.bytes(path)?;
        String::from_utf8(bytes)
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"))
    }

    /// Whether there is a folder at a path.
    pub fn is_folder(&self, path: &Path) -> bool {
        self.look(path, Follow::Yes).is_ok_and(|seen| seen == Seen::Folder)
    }

    /// The names in a folder, for hints; not written down.
    pub fn names(&self, path: &Path, limit: usize) -> Vec<String> {
        let Some((inner, path)) = self.0.as_ref().zip(Self::relative(path)) else {
            return Vec::new();
        };
        inner.folder.names(&path, limit)
    }

    /// Whether a path leads out of the folder, for hints; not written down.
    pub fn leads_out(&self, path: &Path) -> bool {
        match (&self.0, Self::relative(path)) {
            (Some(inner), Some(path)) => inner.folder.look(&path, Follow::Yes) == Seen::Outside,
            _ => true,
        }
    }

    /// Everything that was looked at, and whether that is all that mattered.
    pub fn observed(&self) -> (Vec<Observation>, bool) {
        let Some(inner) = &self.0 else { return (Vec::new(), false) };
        let notes = inner.notes.lock().unwrap_or_else(PoisonError::into_inner);
        let observed = notes
            .seen
            .iter()
            .map(|((path, follow), seen)| Observation {
                path: path.clone(),
                follow: *follow,
                seen: seen.clone(),
            })
            .collect();
        (observed, !notes.overrun)
    }

    fn bytes(&self, path: &Path) -> io::Result<Vec<u8>> {
        let inner = self.0.as_ref().ok_or_else(absent)?;
        let path = Self::relative(path).ok_or_else(absent)?;
        if path == inner.entry.0 {
            return Ok(inner.entry.1.clone().into_bytes());
        }
        let read = inner.folder.read(&path, FILE_BYTES);
        let mut notes = inner.notes.lock().unwrap_or_else(PoisonError::into_inner);
        match read {
            Ok(bytes) => {
                notes.bytes += bytes.len() as u64;
                if notes.bytes > TOTAL_BYTES {
                    notes.overrun = true;
                    let message =
                        format!("all files together are larger than {} MiB", TOTAL_BYTES >> 20);
                    return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
                }
                notes.add(&path, Follow::Yes, Seen::Content(digest(&bytes)))?;
                Ok(bytes)
            }
            Err(error) => {
                let seen = inner.folder.look(&path, Follow::Yes);
                // A file that is there and was not read may be readable next time.
                notes.overrun |= seen == Seen::File;
                notes.add(&path, Follow::Yes, seen)?;
                Err(error)
            }
        }
    }

    fn look(&self, path: &Path, follow: Follow) -> io::Result<Seen> {
        if path == Path::new("/") {
            return Ok(Seen::Folder);
        }
        let inner = self.0.as_ref().ok_or_else(absent)?;
        let path = Self::relative(path).ok_or_else(absent)?;
        if path == inner.entry.0 {
            return Ok(Seen::File);
        }
        let seen = inner.folder.look(&path, follow);
        let mut notes = inner.notes.lock().unwrap_or_else(PoisonError::into_inner);
        notes.add(&path, follow, seen.clone())?;
        Ok(seen)
    }

    fn metadata_of(&self, path: &Path, follow: Follow) -> io::Result<FileMetadata> {
        match self.look(path, follow)? {
            Seen::File | Seen::Content(_) => Ok(FileMetadata::new(true, false, false)),
            Seen::Folder => Ok(FileMetadata::new(false, true, false)),
            Seen::Link(_) => Ok(FileMetadata::new(false, false, true)),
            Seen::Absent | Seen::Outside | Seen::Other => Err(absent()),
        }
    }
}

impl Notes {
    /// Writes one look down. Content says more than that there is a file.
    fn add(&mut self, path: &str, follow: Follow, seen: Seen) -> io::Result<()> {
        if self.seen.len() >= PATHS {
            self.overrun = true;
            return Err(io::Error::new(io::ErrorKind::QuotaExceeded, "too many files"));
        }
        let place = self.seen.entry((path.to_owned(), follow)).or_insert(Seen::Absent);
        if !(seen == Seen::File && matches!(place, Seen::Content(_))) {
            *place = seen;
        }
        Ok(())
    }
}

fn absent() -> io::Error {
    io::ErrorKind::NotFound.into()
}

fn read_only<T>() -> io::Result<T> {
    Err(io::ErrorKind::ReadOnlyFilesystem.into())
}

impl ResolverFiles for Files {
    /// One without anything in it.
    fn new(_yarn_pnp: bool) -> Self {
        Self(None)
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.bytes(path)
    }

    fn read_to_string(&self, path: &Path) -> io::Result<String> {
        self.text(path)
    }

    fn metadata(&self, path: &Path) -> io::Result<FileMetadata> {
        self.metadata_of(path, Follow::Yes)
    }

    fn symlink_metadata(&self, path: &Path) -> io::Result<FileMetadata> {
        self.metadata_of(path, Follow::No)
    }

    fn read_link(&self, path: &Path) -> Result<PathBuf, ResolveError> {
        // The resolver follows by name: one that the kernel would not follow must not begin.
        match (self.look(path, Follow::No)?, self.look(path, Follow::Yes)?) {
            (Seen::Link(_), Seen::Outside | Seen::Absent | Seen::Other) => {
                Err(ResolveError::from(absent()))
            }
            (Seen::Link(target), _) => Ok(PathBuf::from(target)),
            _ => Err(ResolveError::from(absent())),
        }
    }

    /// The resolver follows links itself, one by one; it asks for this only after that failed.
    fn canonicalize(&self, _path: &Path) -> io::Result<PathBuf> {
        Err(absent())
    }
}

impl FileSystem for Files {
    fn remove_dir_all(&self, _path: &Path) -> io::Result<()> {
        read_only()
    }

    fn create_dir_all(&self, _path: &Path) -> io::Result<()> {
        read_only()
    }

    fn write(&self, _path: &Path, _content: &[u8]) -> io::Result<()> {
        read_only()
    }

    fn exists(&self, path: &Path) -> bool {
        self.metadata_of(path, Follow::Yes).is_ok()
    }

    fn read_dir(&self, _path: &Path) -> io::Result<Vec<PathBuf>> {
        // A listing would have to be remembered too; no feature in use needs one.
        Err(io::ErrorKind::Unsupported.into())
    }

    fn remove_file(&self, _path: &Path) -> io::Result<()> {
        read_only()
    }
}
