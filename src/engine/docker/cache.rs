//! What is remembered about a daemon, so that asking again costs nothing.
//!
//! A daemon makes its socket anew when it starts, so the socket's inode and time name one run of one
//! daemon; what was learned from it is kept under that name. A daemon without a socket file is asked
//! every time. A cache that cannot be read or written is no error: it is asked again.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// What is remembered of the daemon behind a socket.
#[derive(Debug, Clone, Copy)]
pub struct Memory<'a> {
    /// The socket.
    pub socket: &'a Path,
    /// The folder of what can be lost.
    pub folder: &'a Path,
}

impl Memory<'_> {
    /// The file for one kind of knowledge.
    fn file(&self, what: &str) -> Option<PathBuf> {
        let meta = fs::metadata(self.socket).ok()?;
        let mut hasher = blake3::Hasher::new();
        for number in [meta.dev(), meta.ino(), meta.uid().into()] {
            hasher.update(&number.to_le_bytes());
        }
        for number in [meta.ctime(), meta.ctime_nsec()] {
            hasher.update(&number.to_le_bytes());
        }
        hasher.update(env!("CARGO_PKG_VERSION").as_bytes());
        let name = &hasher.finalize().to_hex()[..32];
        Some(self.folder.join(format!("{what}-{name}.json")))
    }

    /// What was kept, if it is still about this run of the daemon.
    pub fn get<T: DeserializeOwned>(&self, what: &str, age: Age) -> Option<T> {
        let path = self.file(what)?;
        let meta = fs::symlink_metadata(&path).ok()?;
        // Only a plain file of this user counts: anybody may have made the folder's parents.
        if !meta.is_file() || meta.uid() != rustix::process::getuid().as_raw() {
            return None;
        }
        if let Age::Within(most) = age
            && meta.modified().ok()?.elapsed().ok()? > most
        {
            return None;
        }
        serde_json::from_slice(&fs::read(path).ok()?).ok()
    }

    /// Keeps something about this run of the daemon.
    pub fn put<T: Serialize>(&self, what: &str, value: &T) {
        let write = || -> Option<()> {
            let path = self.file(what)?;
            fs::create_dir_all(self.folder).ok()?;
            let text = serde_json::to_vec(value).ok()?;
            // Another process may do the same: whole files only, by rename.
            let temporary = path.with_extension(format!("{}.new", std::process::id()));
            let mut file = fs::OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(true)
                .mode(0o600)
                .open(&temporary)
                .ok()?;
            file.write_all(&text).ok()?;
            fs::rename(&temporary, path).ok()
        };
        let _ = write();
    }
}

/// How old a knowledge may be.
#[derive(Debug, Clone, Copy)]
pub enum Age {
    /// As old as the daemon.
    Any,
    /// At most this old: a service manager can keep a socket while it starts another daemon behind it.
    Within(Duration),
}
