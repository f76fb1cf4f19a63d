//! `file.list` and `file.stat`: what is there.

use std::mem::MaybeUninit;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, openat, statat};
use serde::Serialize;

use super::{Files, errno, place};
use crate::broker::Refusal;

/// Most entries of one listing.
const MAX_ENTRIES: usize = 50_000;
/// Most bytes of names in one listing: it travels as one piece.
const MAX_NAMES: usize = 4 * 1024 * 1024;

/// The word for what an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(in crate::broker) enum Type {
    File,
    Dir,
    Link,
    Other,
}

impl From<FileType> for Type {
    fn from(kind: FileType) -> Self {
        match kind {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Dir,
            FileType::Symlink => Self::Link,
            FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Unknown => Self::Other,
        }
    }
}

#[derive(Debug, PartialEq, Eq, Serialize)]
pub(in crate::broker) struct Entry {
    name: String,
    #[serde(rename = "type")]
    kind: Type,
}

/// The answer to `file.list`.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(in crate::broker) struct Listing {
    entries: Vec<Entry>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
    /// Entries whose names are not UTF-8: no request could name them.
    #[serde(skip_serializing_if = "is_zero")]
    undecodable: usize,
    /// Where it is below the workspace.
    #[serde(skip)]
    pub(in crate::broker) relative: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// The answer to `file.stat`.
#[derive(Debug, PartialEq, Serialize)]
pub(in crate::broker) struct StatReply {
    #[serde(rename = "type")]
    kind: Type,
    size: i64,
    #[serde(rename = "mtimeMs")]
    mtime_ms: i64,
    mode: u32,
    /// Where it is below the workspace.
    #[serde(skip)]
    pub(in crate::broker) relative: String,
}

impl Files {
    /// Looks at what a path leads to.
    pub(in crate::broker) fn stat(&self, path: &str) -> Result<StatReply, Refusal> {
        let named = self.named(path)?;
        self.may_see(named.lexical())?;
        let found = self.find(&named)?;
        self.may_see(&found.relative)?;
        let nanos = i64::try_from(found.stat.st_mtime_nsec).unwrap_or(0);
        Ok(StatReply {
            kind: found.kind().into(),
            size: found.stat.st_size,
            mtime_ms: found.stat.st_mtime.saturating_mul(1000).saturating_add(nanos / 1_000_000),
            mode: found.stat.st_mode & 0o7777,
            relative: found.relative,
        })
    }

    /// Lists a folder.
    pub(in crate::broker) fn list(&self, path: &str) -> Result<Listing, Refusal> {
        let named = self.named(path)?;
        self.may_read(named.lexical())?;
        let found = self.find(&named)?;
        self.may_read(&found.relative)?;
        place::demand_folder(&found)?;
        let failed = |error| errno::refusal("list", &found.relative, error);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = openat(&found.handle, ".", flags, Mode::empty()).map_err(failed)?;
        let mut buffer = [MaybeUninit::uninit(); 32 * 1024];
        let mut entries = RawDir::new(&folder, &mut buffer);
        let mut listing = Listing {
            entries: Vec::new(),
            truncated: false,
            undecodable: 0,
            relative: found.relative.clone(),
        };
        let mut bytes = 0;
        while let Some(entry) = entries.next() {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            if listing.entries.len() >= MAX_ENTRIES || bytes + name.len() > MAX_NAMES {
                listing.truncated = true;
                break;
            }
            let Ok(text) = std::str::from_utf8(name) else {
                listing.undecodable += 1;
                continue;
            };
            bytes += name.len();
            let kind = match entry.file_type() {
                FileType::Unknown => {
                    match statat(&folder, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW) {
                        Ok(stat) => FileType::from_raw_mode(stat.st_mode),
                        Err(_) => continue,
                    }
                }
                kind => kind,
            };
            listing.entries.push(Entry { name: text.to_owned(), kind: kind.into() });
        }
        listing.entries.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(listing)
    }
}
