//! What a question is about besides its words: what would be done, and the files that its code comes from.
//!
//! Duty: the digests of those files, as far as arguments and catalog tell them, so that an answer holds for the code that
//! was there when it was asked. Non-goals: what that code loads in turn; that is unknown before it runs, and the
//! question says what it is bound to. Trust boundary: the workspace is the adversary's; a file is opened below it,
//! and special files and large ones are not read.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use runner_policy::acts::{Acts, acts};
use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, fstat, openat2};

use super::deeds;
use crate::approvals::{ApprovalError, Deed, first_difference};
use crate::call::CallError;
use crate::call::request::Decided;
use crate::workspace::Workspace;

/// Largest file that is read for its digest. A larger one is told by its size, time and inode.
const MAX_BYTES: u64 = 64 << 20;
/// Most files that a question names; the rest is counted.
const SHOWN: usize = 12;
/// The digest of what is not there, or is no file that could be read.
const NOTHING: &str = "";

/// What would be done.
#[derive(Debug, Default)]
pub(in crate::call) struct Action {
    /// Each thing, for a never.
    pub deeds: Vec<Deed>,
    /// Where its code comes from.
    code: Code,
}

#[derive(Debug, Default)]
struct Code {
    /// Files, each in its workspace.
    files: Vec<(Arc<Workspace>, String)>,
    /// Whether any runs.
    runs: bool,
}

impl Action {
    /// What a command that was decided would do.
    pub(in crate::call) fn of_command(decided: &Decided) -> Result<Self, CallError> {
        let acts = decided.read(acts)?;
        let deeds = deeds::of_command(decided, &acts);
        let Acts { files, code, .. } = acts;
        let root = decided.workspace.root().to_string_lossy().into_owned();
        let below = |path: &String| runner_policy::paths::below(&root, path).map(str::to_owned);
        let files = files.iter().filter_map(below);
        let files = files.map(|path| (Arc::clone(&decided.workspace), path)).collect();
        Ok(Self { deeds, code: Code { files, runs: code } })
    }

    /// Something that runs no code.
    pub(in crate::call) fn plain(deeds: Vec<Deed>) -> Self {
        Self { deeds, code: Code::default() }
    }

    /// Both.
    pub(in crate::call) fn extend(&mut self, other: Self) {
        self.deeds.extend(other.deeds);
        self.code.files.extend(other.code.files);
        self.code.runs |= other.code.runs;
    }

    /// Every file with its digest, as it is now.
    pub(in crate::call) fn files(&self) -> Vec<(String, String)> {
        let digest = |(workspace, path): &(Arc<Workspace>, String)| {
            (path.clone(), digest(workspace, path).unwrap_or_else(|| NOTHING.to_owned()))
        };
        self.code.files.iter().map(digest).collect()
    }

    /// That the files are still what they were when it was asked.
    ///
    /// # Errors
    /// One is not.
    pub(super) fn must_be(&self, asked: &[(String, String)]) -> Result<(), ApprovalError> {
        match first_difference(asked, &self.files()) {
            Some(file) => Err(ApprovalError::Stale { file }),
            None => Ok(()),
        }
    }

    /// What an answer holds for, in words; nothing where no code runs and the words say it all.
    pub(in crate::call) fn holds(&self, files: &[(String, String)]) -> Option<String> {
        if !self.code.runs {
            return None;
        }
        let there: Vec<&str> = files
            .iter()
            .filter(|(_, digest)| digest != NOTHING)
            .map(|(path, _)| path.as_str())
            .collect();
        if there.is_empty() {
            return Some("these words, whatever code they run: no file of it is known".to_owned());
        }
        let shown = there.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ");
        let more = there.len().saturating_sub(SHOWN);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        Some(format!("the present content of {shown}{more}; not of what that loads in turn"))
    }
}

/// The digest of a file; `None` if no regular file can be read there. Links are followed inside the workspace.
fn digest(workspace: &Workspace, path: &str) -> Option<String> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let handle: OwnedFd =
        openat2(workspace.handle(), Path::new(path), flags, Mode::empty(), resolve).ok()?;
    let stat = fstat(&handle).ok()?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return None;
    }
    let mut bytes = Vec::new();
    let mut reader = File::from(handle).take(MAX_BYTES + 1);
    reader.read_to_end(&mut bytes).ok()?;
    if bytes.len() as u64 > MAX_BYTES {
        let (size, inode) = (stat.st_size, stat.st_ino);
        return Some(format!("{size} {inode} {} {}", stat.st_mtime, stat.st_mtime_nsec));
    }
    Some(blake3::hash(&bytes).to_hex().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn files_are_told_by_their_content_and_nothing_else_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap().join("w");
        fs::create_dir_all(root.join("folder")).unwrap();
        fs::write(root.join("Makefile"), "all:\n").unwrap();
        fs::write(root.join("../outside"), "secret").unwrap();
        symlink("Makefile", root.join("link")).unwrap();
        symlink("../outside", root.join("out")).unwrap();
        let workspace =
            Workspace::open_at(&root, &root, &crate::environment::Environment::default()).unwrap();
        let of = |path: &str| digest(&workspace, path);
        assert_eq!(of("Makefile"), Some(blake3::hash(b"all:\n").to_hex().to_string()));
        assert_eq!(of("link"), of("Makefile"));
        for none in ["folder", "missing", "out", "folder/../../outside"] {
            assert_eq!(of(none), None, "{none}");
        }
        fs::write(root.join("Makefile"), "all:\n\trm x\n").unwrap();
        assert_ne!(of("Makefile"), Some(blake3::hash(b"all:\n").to_hex().to_string()));
    }
}
