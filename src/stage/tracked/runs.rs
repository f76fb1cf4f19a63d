//! Entries of commits and indexes at names that the host runs.
//!
//! A commit can bring what a working tree may not: the next checkout, stash or merge on the host would
//! write it. So an entry at such a name must be what the host's own working tree has there: the
//! user's change may be committed, and no other.

use std::ffi::OsStr;
use std::io::Read as _;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, readlinkat, statat};

use super::refs::Entry;
use crate::git_index::blob_id;
use crate::stage::conflict::open_file;
use crate::stage::handles::{open_folder, split};
use crate::stage::led::Led;
use crate::workspace::protected::table::{self, Class};

/// Longest file that is compared.
const MAX_FILE: u64 = 16 << 20;

const LINK: u32 = 0o120_000;
const PROGRAM: u32 = 0o100_755;

/// What entries are compared with.
pub(super) struct Runs<'a> {
    /// The workspace.
    pub workspace: BorrowedFd<'a>,
    /// The tops of the working trees that an entry can be checked out in, below the workspace.
    pub tops: Vec<PathBuf>,
    /// Where configurations lead git to, below the workspace.
    pub led: &'a [Led],
}

impl Runs<'_> {
    /// Whether the host would run an entry that is not its own.
    pub(super) fn is_foreign(&self, entry: &Entry<'_>) -> bool {
        let path = Path::new(OsStr::from_bytes(entry.path));
        let never = table::find(path).is_some_and(|row| row.class == Class::Never);
        let places: Vec<PathBuf> = self.tops.iter().map(|top| top.join(path)).collect();
        let led = || places.iter().any(|place| self.led.iter().any(|led| led.holds(place)));
        if !never && !led() {
            return false;
        }
        match places.is_empty() {
            true => entry.mode != 0,
            false => !places.iter().any(|place| self.is_own(place, entry)),
        }
    }

    /// Whether the host has the same there.
    fn is_own(&self, place: &Path, entry: &Entry<'_>) -> bool {
        let found = split(place)
            .and_then(|(folder, name)| Some((open_folder(self.workspace, folder).ok()?, name)));
        let found = found.and_then(|(folder, name)| {
            let stat = statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
            Some((folder, name, stat))
        });
        let Some((folder, name, stat)) = found else { return entry.mode == 0 };
        let content = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile if entry.mode != LINK => {
                let runs = stat.st_mode & 0o111 != 0;
                if runs != (entry.mode == PROGRAM) || stat.st_size.cast_unsigned() > MAX_FILE {
                    return false;
                }
                let mut content = Vec::new();
                let read = open_file(folder.as_fd(), name)
                    .and_then(|file| file.take(MAX_FILE).read_to_end(&mut content));
                read.ok().map(|_| content)
            }
            FileType::Symlink if entry.mode == LINK => {
                readlinkat(&folder, name, Vec::new()).ok().map(|target| target.into_bytes())
            }
            _ => None,
        };
        content.and_then(|content| blob_id(&content, entry.id.len())).as_deref() == Some(entry.id)
    }
}
