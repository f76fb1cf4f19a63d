//! Reads git's index, versions 2 to 4, as far as two of them are compared.
//!
//! What this does not understand it refuses: split and sparse indexes, SHA-256, unknown extensions. The
//! cached facts of files (times, inode, owner, length) are left out. Trust boundary: the bytes are the
//! adversary's; every length is checked, and the size is bounded.

use std::collections::BTreeMap;

/// The largest index that is read.
pub(super) const INDEX_MAX: u64 = 256 << 20;
/// Length of an object's name.
const HASH: usize = 20;
/// Extensions that only cache what can be computed again.
const CACHES: [&[u8; 4]; 5] = [b"TREE", b"EOIE", b"IEOT", b"UNTR", b"FSMN"];

/// Mode, object, flags and further flags of a path.
type Entry = (u32, [u8; HASH], u16, u16);

/// What an index says, without the facts of files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Index {
    /// By path and merge stage: mode, object, flags.
    entries: BTreeMap<(Vec<u8>, u16), Entry>,
    /// How conflicts were resolved (`REUC`), as written.
    resolved: Vec<u8>,
}

impl Index {
    /// Whether a path is tracked.
    pub(super) fn tracks(&self, path: &[u8]) -> bool {
        (0..4).any(|stage| self.entries.contains_key(&(path.to_vec(), stage)))
    }

    /// Reads an index; `None` for anything that is not understood.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let body = bytes.len().checked_sub(HASH)?;
        let (mut rest, version, count) = match bytes.get(..12)? {
            head if &head[..4] == b"DIRC" => {
                (bytes.get(12..body)?, number(&head[4..8])?, number(&head[8..12])?)
            }
            _ => return None,
        };
        if !(2..=4).contains(&version) {
            return None;
        }
        let mut entries = BTreeMap::new();
        let mut name: Vec<u8> = Vec::new();
        for _ in 0..count {
            let start = rest;
            let mode = number(rest.get(24..28)?)?;
            let object: [u8; HASH] = rest.get(40..60)?.try_into().ok()?;
            let flags = u16::from_be_bytes(rest.get(60..62)?.try_into().ok()?);
            let mut at = 62;
            let mut extended = 0;
            if flags & 0x4000 != 0 {
                if version < 3 {
                    return None;
                }
                extended = u16::from_be_bytes(rest.get(62..64)?.try_into().ok()?);
                at = 64;
            }
            rest = &rest[at..];
            if version == 4 {
                let (cut, length) = varint(rest)?;
                rest = &rest[length..];
                name.truncate(name.len().checked_sub(cut)?);
                let end = rest.iter().position(|byte| *byte == 0)?;
                name.extend_from_slice(&rest[..end]);
                rest = &rest[end + 1..];
            } else {
                let end = rest.iter().position(|byte| *byte == 0)?;
                name = rest[..end].to_vec();
                // One to eight NULs, so that the next entry begins at a multiple of eight.
                let length = (at + end + 8) & !7;
                rest = start.get(length..)?;
            }
            let stage = (flags >> 12) & 3;
            // The low bits are the length of the name.
            let told = (mode, object, flags & 0xf000, extended);
            if entries.insert((name.clone(), stage), told).is_some() {
                return None;
            }
        }
        let mut resolved = Vec::new();
        while !rest.is_empty() {
            let signature: &[u8; 4] = rest.get(..4)?.try_into().ok()?;
            let length = number(rest.get(4..8)?)? as usize;
            let data = rest.get(8..)?.get(..length)?;
            match signature {
                b"REUC" => resolved = data.to_vec(),
                known if CACHES.contains(&known) => {}
                _ => return None,
            }
            rest = &rest[8 + length..];
        }
        Some(Self { entries, resolved })
    }
}

fn number(bytes: &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.try_into().ok()?))
}

/// Git's number of variable length; the value and how many bytes it took.
fn varint(bytes: &[u8]) -> Option<(usize, usize)> {
    let mut value = 0_usize;
    for (at, byte) in bytes.iter().enumerate().take(8) {
        if at > 0 {
            value = value.checked_add(1)?;
        }
        value = value.checked_shl(7)? | usize::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Some((value, at + 1));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use std::process::Command;

    fn git(folder: &Path, args: &[&str]) {
        let done = Command::new("git").args(args).current_dir(folder).output().unwrap();
        assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
    }

    fn read(folder: &Path) -> Option<Index> {
        Index::read(&std::fs::read(folder.join(".git/index")).unwrap())
    }

    #[test]
    fn every_version_says_the_same_and_new_times_say_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        git(at, &["init", "-q"]);
        for name in ["a", "a-long-name", "dir/one", "dir/two"] {
            std::fs::create_dir_all(at.join("dir")).unwrap();
            std::fs::write(at.join(name), name).unwrap();
        }
        git(at, &["add", "."]);
        git(at, &["update-index", "--index-version", "2"]);
        let two = read(at).unwrap();
        assert!(two.tracks(b"dir/two") && !two.tracks(b"dir"));
        git(at, &["update-index", "--index-version", "4"]);
        assert_eq!(read(at).unwrap(), two);
        // Rewritten with the same content: only the facts of the file differ.
        let before = std::fs::read(at.join(".git/index")).unwrap();
        std::fs::rename(at.join("a"), at.join("b")).unwrap();
        std::fs::write(at.join("a"), "a").unwrap();
        git(at, &["update-index", "--refresh"]);
        assert_ne!(std::fs::read(at.join(".git/index")).unwrap(), before);
        assert_eq!(read(at).unwrap(), two);
        git(at, &["update-index", "--skip-worktree", "a"]);
        assert_ne!(read(at).unwrap(), two);
        git(at, &["update-index", "--no-skip-worktree", "a"]);
        std::fs::write(at.join("a"), "other").unwrap();
        git(at, &["add", "a"]);
        assert_ne!(read(at).unwrap(), two);
        git(at, &["update-index", "--split-index"]);
        assert_eq!(read(at), None);
    }

    #[test]
    fn no_cut_or_changed_index_is_read_beyond_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        git(at, &["init", "-q"]);
        std::fs::write(at.join("a"), "a").unwrap();
        git(at, &["add", "."]);
        let whole = std::fs::read(at.join(".git/index")).unwrap();
        for end in 0..whole.len() {
            assert_eq!(Index::read(&whole[..end]).filter(|_| end < 12 + 72 + HASH), None);
        }
        for at in 0..whole.len() {
            let mut other = whole.clone();
            other[at] ^= 0xff;
            let _ = Index::read(&other);
        }
    }
}
