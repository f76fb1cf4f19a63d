//! Public certificates among denied files: a command sees a copy of what was checked.
//!
//! Duty: of the files that a policy denies as `**/*.pem` (or `.crt`, `.cer`), find those that hold nothing but
//! public material ([`super::pem`]), and make each a file with a content of ours in the layer of covers.
//! Non-goals: whether a path may be named in a command, which is decided without looking at any file.
//!
//! ```text
//! state/certificates/<dev>-<ino>.seen   of one workspace: files that were read, and what they are
//! state/certificates/<digest>           bytes that were found public
//! ```
//!
//! Trust boundary: the tree is the adversary's. The bytes that a command sees are the bytes that were
//! checked, never the file itself: to replace the file, or what leads to it, between the check and the use
//! changes nothing. So a file that is as it was seen (inode, size, times) is not read again. A file that
//! another rule denies too, by its name or its folder, stays hidden.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags, Stat, fstat, openat2, statat};

use super::covers::Content;
use super::hidden_index::{forget_old, remember};
use super::materials::Missing;
use super::pem::{MAX_BYTES, is_public};
use crate::engine::plan::MaskKind;
use crate::workspace::grants::{FileGrants, Writes};
use crate::workspace::names::Names;
use crate::workspace::survey::{Hidden, WhyHidden};
use crate::workspace::{Owner, Workspace, protected};

/// The folder of what was read, in the caller's state folder.
pub const FOLDER: &str = "certificates";

/// The first line of a memory. It changes whenever another answer would be given about the same bytes.
const FORMAT: &str = "certificates 1";

/// Patterns that deny files because private keys have such names.
const DENIED: [&str; 6] = ["**/*.pem", "**/*.crt", "**/*.cer", "*.pem", "*.crt", "*.cer"];

/// The ends of such names.
const ENDS: [&[u8]; 3] = [b".pem", b".crt", b".cer"];

/// Most files of a workspace that are shown. Those beyond stay hidden.
const MAX_SHOWN: usize = 2_000;

/// Most files that are read anew for one call; the next calls read the others.
const MAX_READ: usize = 2_000;

/// Bytes of one memory that are read.
const MAX_MEMORY: u64 = 16 << 20;

/// What tells a state of a file from every other.
type Facts = [u64; 7];

/// Files that were read: the digest of their bytes if they are public.
type Memory = BTreeMap<Facts, Option<String>>;

/// The denied files that hold public material, with what is shown of them.
#[must_use]
pub fn public(
    workspace: &Workspace,
    grants: &FileGrants<'_>,
    hidden: &BTreeMap<PathBuf, Hidden>,
    state: &Path,
    missing: Missing,
) -> BTreeMap<PathBuf, Content> {
    let others = others(grants);
    let mut candidates =
        hidden.iter().filter(|(path, it)| may_be(path, **it, grants, &others)).peekable();
    if candidates.peek().is_none() {
        return BTreeMap::new();
    }
    let folder = state.join(FOLDER);
    let mut look = Look { workspace, folder: &folder, missing, seen: Memory::new(), read: 0 };
    let identity = workspace.identity();
    let file = folder.join(format!("{}-{}.seen", identity.dev, identity.ino));
    let before = load(&file);
    let mut stored = BTreeSet::new();
    let mut shown = BTreeMap::new();
    for (path, _) in candidates {
        if shown.len() == MAX_SHOWN {
            break;
        }
        let found = look.content(path, &before, &mut stored);
        shown.extend(found.map(|content| (path.clone(), content)));
    }
    if missing == Missing::Make && look.seen != before {
        // Without a memory, files are read again.
        let _ = remember(&file, written(&look.seen).as_bytes());
    }
    shown
}

/// The names that the policy denies for another reason.
fn others(grants: &FileGrants<'_>) -> Names {
    let deny = grants.deny.patterns();
    let rest = deny.iter().map(String::as_str).filter(|pattern| !DENIED.contains(pattern));
    Names::new(rest.chain(protected::key_material().iter().copied()))
}

fn may_be(path: &Path, hidden: Hidden, grants: &FileGrants<'_>, others: &Names) -> bool {
    let Some(name) = path.file_name().map(OsStr::as_bytes) else { return false };
    if hidden.kind != MaskKind::File
        || hidden.why != WhyHidden::Denied
        || !ENDS.iter().any(|end| name.ends_with(end))
    {
        return false;
    }
    let above = path.parent().into_iter().flat_map(Path::iter).map(OsStr::as_bytes);
    let readable =
        || grants.read.matches(path) || grants.writes == Writes::Some && grants.write.matches(path);
    !others.could_hold(name) && !others.is_deep(above) && readable()
}

struct Look<'a> {
    workspace: &'a Workspace,
    folder: &'a Path,
    missing: Missing,
    seen: Memory,
    read: usize,
}

impl Look<'_> {
    /// What is shown of a file, if it is public.
    fn content(
        &mut self,
        path: &Path,
        before: &Memory,
        stored: &mut BTreeSet<String>,
    ) -> Option<Content> {
        let found = statat(self.workspace.handle(), path, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        let known = before.get(&facts(&found)).cloned();
        // What was kept may have been removed since.
        let kept = |digest: &String| {
            stored.contains(digest) || self.folder.join(digest).symlink_metadata().is_ok()
        };
        let (found, digest) = match known.filter(|digest| digest.as_ref().is_none_or(kept)) {
            Some(digest) => (found, digest),
            None => self.check(path)?,
        };
        self.seen.insert(facts(&found), digest.clone());
        let digest = digest?;
        stored.insert(digest.clone());
        let mut hasher = blake3::Hasher::new();
        hasher.update(digest.as_bytes());
        for number in [u64::from(found.st_mode), found.st_uid.into(), found.st_gid.into()] {
            hasher.update(&number.to_le_bytes());
        }
        hasher.update(&found.st_mtime.to_le_bytes());
        hasher.update(&found.st_mtime_nsec.to_le_bytes());
        Some(Content {
            digest: hasher.finalize().to_hex()[..32].to_owned(),
            source: self.folder.join(&digest),
            mode: found.st_mode & 0o777,
            owner: Owner { uid: found.st_uid, gid: found.st_gid },
            modified: (found.st_mtime, i64::try_from(found.st_mtime_nsec).unwrap_or(0)),
        })
    }

    /// Reads a file, and keeps its bytes if they are public. Nothing is said of what changes meanwhile.
    fn check(&mut self, path: &Path) -> Option<(Stat, Option<String>)> {
        if self.read == MAX_READ {
            return None;
        }
        self.read += 1;
        let flags =
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        // What is mounted below is another overlay, whose covers it keeps.
        let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
        let handle = openat2(self.workspace.handle(), path, flags, Mode::empty(), beneath).ok()?;
        let mut file = File::from(handle);
        let found = fstat(&file).ok()?;
        if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
            return None;
        }
        if usize::try_from(found.st_size).map_or(true, |size| size > MAX_BYTES) {
            return Some((found, None));
        }
        let mut bytes = Vec::new();
        (&mut file).take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes).ok()?;
        let still = fstat(&file).ok().filter(|still| facts(still) == facts(&found))?;
        if !is_public(&bytes) {
            return Some((still, None));
        }
        let digest = blake3::hash(&bytes).to_hex()[..32].to_owned();
        let kept = self.folder.join(&digest);
        if self.missing == Missing::Make && kept.symlink_metadata().is_err() {
            remember(&kept, &bytes).ok()?;
        }
        Some((still, Some(digest)))
    }
}

fn facts(found: &Stat) -> Facts {
    [
        found.st_dev,
        found.st_ino,
        found.st_size.cast_unsigned(),
        found.st_mtime.cast_unsigned(),
        found.st_mtime_nsec,
        found.st_ctime.cast_unsigned(),
        found.st_ctime_nsec,
    ]
}

/// Reads a memory; what is not whole is none.
fn load(file: &Path) -> Memory {
    let mut text = String::new();
    let read = File::open(file).and_then(|file| file.take(MAX_MEMORY).read_to_string(&mut text));
    let Some(text) = read.ok().and_then(|_| text.strip_prefix(FORMAT)?.strip_prefix('\n')) else {
        return Memory::new();
    };
    text.lines().map(line).collect::<Option<Memory>>().unwrap_or_default()
}

fn line(line: &str) -> Option<(Facts, Option<String>)> {
    let (facts, digest) = line.rsplit_once(' ')?;
    let facts: Vec<u64> = facts.split(' ').map(str::parse).collect::<Result<_, _>>().ok()?;
    let is_digest = digest.len() == 32 && digest.bytes().all(|byte| byte.is_ascii_hexdigit());
    let digest = match digest {
        "-" => None,
        digest => Some(is_digest.then(|| digest.to_owned())?),
    };
    Some((facts.try_into().ok()?, digest))
}

fn written(memory: &Memory) -> String {
    let mut text = format!("{FORMAT}\n");
    for (facts, digest) in memory {
        for fact in facts {
            text.push_str(&fact.to_string());
            text.push(' ');
        }
        text.push_str(digest.as_deref().unwrap_or("-"));
        text.push('\n');
    }
    text
}

/// Removes what is older than any sandbox. What is still right is made again.
pub fn forget(state: &Path) {
    forget_old(&state.join(FOLDER));
}

#[cfg(test)]
#[path = "certificates_tests.rs"]
mod tests;
