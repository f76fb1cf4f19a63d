//! Entries of commits and indexes, judged as the checkout that they would be.
//!
//! A commit can bring what a working tree may not: the next checkout, stash or merge on the host would
//! write it. So its entries are judged as changes of the working tree are, by the same rules. What the
//! host's own working tree has at a name may be committed there whatever the rules say.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read as _;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, readlinkat, statat};

use super::layers::{Layers, View};
use super::refs::{Entry, LINK};
use crate::git_index::blob_id;
use crate::ids::Identity;
use crate::stage::change::{Change, Host, Origin, Staged, Verdict, What, Why};
use crate::stage::conflict::open_file;
use crate::stage::handles::{open_folder, split};
use crate::stage::judge::{Rules, judge};
use crate::stage::merged::Merged;

/// Longest file that is compared.
const MAX_FILE: u64 = 16 << 20;

const PROGRAM: u32 = 0o100_755;
const GITLINK: u32 = 0o160_000;
const FILES: [u32; 3] = [0o100_644, 0o100_664, PROGRAM];

/// Where entries would be checked out, and what is allowed there.
pub(super) struct Checkout<'a> {
    /// How changes of the workspace are judged.
    pub rules: &'a Rules<'a>,
    /// The tops of the working trees that an entry can be checked out in, below the workspace.
    pub tops: Vec<PathBuf>,
}

impl Checkout<'_> {
    /// The path of an entry that may not be checked out.
    pub(super) fn held(&self, entries: &[Entry]) -> Option<Vec<u8>> {
        let unknown = [PathBuf::new()];
        let tops = if self.tops.is_empty() { &unknown[..] } else { &self.tops };
        tops.iter().find_map(|top| self.held_at(top, entries))
    }

    fn held_at(&self, top: &Path, entries: &[Entry]) -> Option<Vec<u8>> {
        let by_path: BTreeMap<PathBuf, &Entry> =
            entries.iter().map(|entry| (top.join(bytes(&entry.path)), entry)).collect();
        let judged = judge(self.changes(top, &by_path), self.rules);
        judged.iter().find_map(|judged| {
            let Verdict::Hold(why) = &judged.verdict else { return None };
            let entry = by_path.get(&judged.change.path)?;
            // Where it is not known which working tree it is, the lists of the policy say nothing.
            let by_list = matches!(why.why, Why::NotWritable | Why::Denied);
            let free = if self.tops.is_empty() { by_list } else { self.is_own(entry) };
            (!free).then(|| entry.path.clone())
        })
    }

    /// What a checkout of the entries would change.
    fn changes(&self, top: &Path, entries: &BTreeMap<PathBuf, &Entry>) -> Vec<Change> {
        let merged = Merged::new(self.rules.host, self.rules.upper, self.rules.root, &[]);
        let mut changes = BTreeMap::new();
        let mut add = |path: &Path, what: What, host: Host| {
            changes
                .insert(path.to_owned(), Change { path: path.to_owned(), what, host, lost: false });
        };
        let mut folders = BTreeSet::new();
        for (path, entry) in entries {
            let host = merged.on_host(path);
            if entry.mode != 0 {
                let above = path.ancestors().skip(1).take_while(|above| *above != top);
                folders.extend(above);
                add(path, what(entry), host);
            } else if host != Host::Absent {
                add(path, What::Removed, host);
            }
        }
        for folder in folders {
            let host = merged.on_host(folder);
            if !folder.as_os_str().is_empty() && !matches!(host, Host::Folder(_)) {
                add(folder, What::Folder { mode: 0o755 }, host);
            }
        }
        changes.into_values().collect()
    }

    /// Whether the host has the same in one of the working trees.
    fn is_own(&self, entry: &Entry) -> bool {
        self.tops.iter().any(|top| self.has(&top.join(bytes(&entry.path)), entry).unwrap_or(false))
    }

    /// Whether the host has an entry at a path; `None` if that cannot be read.
    fn has(&self, path: &Path, entry: &Entry) -> Option<bool> {
        let (folder, name) = split(path)?;
        let Ok(folder) = open_folder(self.rules.host, folder) else { return Some(entry.mode == 0) };
        let Ok(stat) = statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) else {
            return Some(entry.mode == 0);
        };
        let content = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile if FILES.contains(&entry.mode) => {
                let runs = stat.st_mode & 0o111 != 0;
                if runs != (entry.mode == PROGRAM) || stat.st_size.cast_unsigned() > MAX_FILE {
                    return Some(false);
                }
                let mut content = Vec::new();
                let file = open_file(folder.as_fd(), name).ok()?;
                file.take(MAX_FILE).read_to_end(&mut content).ok()?;
                content
            }
            FileType::Symlink if entry.mode == LINK => {
                readlinkat(&folder, name, Vec::new()).ok()?.into_bytes()
            }
            FileType::Directory if entry.mode == GITLINK => {
                return Some(self.commit_of(path)? == entry.id);
            }
            _ => return Some(false),
        };
        Some(blob_id(&content, entry.id.len())? == entry.id)
    }

    /// The commit that a submodule of the host is at, if its git folder lies in the workspace.
    fn commit_of(&self, top: &Path) -> Option<Vec<u8>> {
        let folder = open_folder(self.rules.host, top).ok()?;
        let git: OwnedFd = match open_file(&folder, OsStr::new(".git")) {
            Ok(pointer) => {
                let mut text = Vec::new();
                File::take(pointer, MAX_POINTER).read_to_end(&mut text).ok()?;
                let written = text.strip_prefix(b"gitdir:")?.trim_ascii();
                let merged = Merged::new(self.rules.host, self.rules.upper, self.rules.root, &[]);
                open_folder(self.rules.host, &merged.normal(top, bytes(written))?).ok()?
            }
            Err(_) => open_folder(self.rules.host, &top.join(".git")).ok()?,
        };
        let layers = Layers::open(git.as_fd(), git.as_fd()).ok()?;
        let id = layers.resolve(View::Host, b"HEAD").ok()??;
        let byte = |at: usize| u8::from_str_radix(id.get(at..at + 2)?, 16).ok();
        (0..id.len()).step_by(2).map(byte).collect()
    }
}

/// Longest `.git` file.
const MAX_POINTER: u64 = 8 * 1024;

fn what(entry: &Entry) -> What {
    match (entry.mode, &entry.target) {
        (LINK, Some(target)) => What::Link { target: OsString::from_vec(target.clone()) },
        (mode, _) if FILES.contains(&mode) => What::File(Staged {
            identity: Identity::UNMADE,
            mode: mode & 0o777,
            size: 0,
            links: 1,
            born: None,
            origin: Origin::New,
        }),
        // A submodule, or what git does not write.
        _ => What::Special,
    }
}

fn bytes(path: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(path))
}
