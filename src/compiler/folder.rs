//! A tool's folder as a handle, and what is found below it.
//!
//! Names are resolved by the kernel beneath the handle (`openat2`): a link out of the folder, `..` and magic links
//! end the resolution. A file with several names (as package managers make them) is an ordinary file.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{
    CWD, Dir, FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2, readlinkat,
};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

/// Which folder it is, whatever it is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// Device.
    pub dev: u64,
    /// Inode.
    pub ino: u64,
}

/// Whether a link at the end of a path is followed, or is what is asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Follow {
    /// What it leads to.
    Yes,
    /// The link itself.
    No,
}

/// What is found at a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Seen {
    /// Nothing.
    Absent,
    /// A folder.
    Folder,
    /// A file; its content did not matter.
    File,
    /// A file with this content (BLAKE3, in hex).
    Content(String),
    /// A link with this target.
    Link(String),
    /// It leads out of the folder.
    Outside,
    /// Neither file nor folder nor link, or not to be looked at.
    Other,
}

/// An open folder.
#[derive(Debug)]
pub struct Folder {
    handle: OwnedFd,
    path: PathBuf,
    identity: Identity,
}

impl Folder {
    /// Opens a folder; its last name must not be a link.
    ///
    /// # Errors
    /// It is not there, is no folder, or is a link.
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // A slash at the end would follow a link all the same.
        let path: PathBuf = path.components().collect();
        let handle = openat(CWD, &path, flags, Mode::empty())?;
        let found = fstat(&handle)?;
        let identity = Identity { dev: found.st_dev, ino: found.st_ino };
        Ok(Self { handle, path, identity })
    }

    /// Which one it is.
    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// How it was called.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The handle.
    pub fn handle(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }

    /// What is at a path below the folder.
    pub fn look(&self, path: &str, follow: Follow) -> Seen {
        let flags = match follow {
            Follow::Yes => OFlags::PATH,
            Follow::No => OFlags::PATH | OFlags::NOFOLLOW,
        };
        let found = match self.open_below(path, flags) {
            Ok(found) => found,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::NAMETOOLONG | Errno::INVAL) => {
                return Seen::Absent;
            }
            Err(Errno::XDEV) => return Seen::Outside,
            Err(_) => return Seen::Other,
        };
        let Ok(stat) = fstat(&found) else { return Seen::Other };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Seen::File,
            FileType::Directory => Seen::Folder,
            FileType::Symlink => match readlinkat(&found, "", Vec::new()) {
                Ok(target) => target.into_string().map_or(Seen::Other, Seen::Link),
                Err(_) => Seen::Other,
            },
            _ => Seen::Other,
        }
    }

    /// The content of a file below the folder, if it is a regular one of at most `limit` bytes. Links that stay
    /// below the folder are followed.
    ///
    /// # Errors
    /// It cannot be opened, is no regular file, or is too large.
    pub fn read(&self, path: &str, limit: u64) -> io::Result<Vec<u8>> {
        self.read_with(path, limit, OFlags::empty())
    }

    /// The same for a file that must not itself be a link.
    ///
    /// # Errors
    /// As [`Folder::read`]; it is a link.
    pub fn read_plain(&self, path: &str, limit: u64) -> io::Result<Vec<u8>> {
        self.read_with(path, limit, OFlags::NOFOLLOW)
    }

    fn read_with(&self, path: &str, limit: u64, flags: OFlags) -> io::Result<Vec<u8>> {
        // Opening a pipe would wait for a writer, opening a terminal could make it ours.
        let flags = flags | OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = File::from(self.open_below(path, flags)?);
        let stat = fstat(&file)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
        }
        let too_large = || {
            let message = format!("it is larger than {} MiB", limit >> 20);
            io::Error::new(io::ErrorKind::FileTooLarge, message)
        };
        let size = u64::try_from(stat.st_size).unwrap_or(0);
        if size > limit {
            return Err(too_large());
        }
        let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0) + 1);
        file.take(limit + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > limit { Err(too_large()) } else { Ok(bytes) }
    }

    /// The names in a folder below this one, for hints: at most `limit`, none where it cannot be read.
    pub fn names(&self, path: &str, limit: usize) -> Vec<String> {
        let opened = self.open_below(path, OFlags::RDONLY | OFlags::DIRECTORY);
        let Ok(entries) = opened.and_then(Dir::new) else { return Vec::new() };
        entries
            .flatten()
            .filter_map(|entry| entry.file_name().to_str().ok().map(str::to_owned))
            .filter(|name| name != "." && name != "..")
            .take(limit)
            .collect()
    }

    fn open_below(&self, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        let path = if path.is_empty() { "." } else { path };
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        loop {
            match openat2(&self.handle, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve) {
                // Something was renamed meanwhile, somewhere.
                Err(Errno::AGAIN) => {}
                other => return other,
            }
        }
    }
}

/// The name of some content.
pub fn digest(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn what_is_below_is_seen_and_what_is_not_is_not() {
        let place = tempfile::tempdir().unwrap();
        let inside = place.path().join("tool");
        fs::create_dir_all(inside.join("sub")).unwrap();
        fs::write(place.path().join("secret"), "s").unwrap();
        fs::write(inside.join("a.ts"), "a").unwrap();
        symlink("../secret", inside.join("out")).unwrap();
        symlink("sub/../a.ts", inside.join("in")).unwrap();
        symlink(inside.join("a.ts"), inside.join("absolute")).unwrap();
        let folder = Folder::open(&inside).unwrap();
        let look = |path: &str| (folder.look(path, Follow::No), folder.look(path, Follow::Yes));
        assert_eq!(look("a.ts"), (Seen::File, Seen::File));
        assert_eq!(look("sub"), (Seen::Folder, Seen::Folder));
        assert_eq!(look(""), (Seen::Folder, Seen::Folder));
        assert_eq!(look("none"), (Seen::Absent, Seen::Absent));
        assert_eq!(look("in"), (Seen::Link("sub/../a.ts".to_owned()), Seen::File));
        assert_eq!(look("out"), (Seen::Link("../secret".to_owned()), Seen::Outside));
        assert_eq!(look("absolute").1, Seen::Outside);
        assert_eq!(look("../secret"), (Seen::Outside, Seen::Outside));
        assert_eq!(folder.read("in", 10).unwrap(), b"a");
        assert!(folder.read("out", 10).is_err());
        assert!(folder.read_plain("in", 10).is_err());
        assert_eq!(folder.read_plain("a.ts", 1).unwrap(), b"a");
        assert!(folder.read("a.ts", 0).is_err());
        assert!(folder.read("sub", 10).is_err());
    }

    #[test]
    fn a_folder_that_is_a_link_is_refused() {
        let place = tempfile::tempdir().unwrap();
        symlink("/etc", place.path().join("tools")).unwrap();
        assert!(Folder::open(&place.path().join("tools")).is_err());
        assert!(Folder::open(&place.path().join("tools/")).is_err());
        assert!(Folder::open(&place.path().join("tools/.")).is_err());
        assert!(Folder::open(place.path()).is_ok());
    }
}
