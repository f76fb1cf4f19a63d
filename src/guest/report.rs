//! What the guest sees before anything runs: the identity of mounts, and its own standing.
//!
//! The standing is read when the guest starts, while nobody waits for it: what was given up is never got back. The table
//! of mounts is read when the host asks. Nothing inside has the right to mount, but a mount goes, in every namespace, when
//! what it lies on is removed or replaced outside.

use crate::sys;
use runner_wire::{Bytes, MARK, MARK_MAX, MountSeen, Ready, Seen, VERSION};
use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Looks at every path that the host asked for, and adds what was seen at the start.
pub fn ready(seen: Seen, targets: &[Bytes]) -> Ready {
    // Empty, and so nothing read-only, if it cannot be read.
    let table = std::fs::read("/proc/self/mountinfo").unwrap_or_default();
    let read_only = read_only_mounts(&table);
    let mounts = targets.iter().map(|target| look(target, &read_only)).collect();
    Ready { version: VERSION, mounts, seen }
}

/// A path that is not there, or is a link, has identity 0 or its own, and so never the expected one.
fn look(target: &Bytes, read_only: &HashMap<Vec<u8>, bool>) -> MountSeen {
    let path = Path::new(target.as_os());
    let (dev, ino) =
        std::fs::symlink_metadata(path).map(|meta| (meta.dev(), meta.ino())).unwrap_or((0, 0));
    let read_only = read_only.get(&target.0).copied().unwrap_or(false);
    MountSeen { target: target.clone(), dev, ino, read_only, mark: mark(path) }
}

/// The mark of a layer of ours. It is read from the root of a mount: nothing below is looked up.
fn mark(path: &Path) -> Option<Bytes> {
    sys::attribute(path, MARK, MARK_MAX).map(Bytes)
}

/// Every mount point and whether it is read-only, by the kernel's table: as a mount, or because its
/// file system is (an overlay without an upper layer, or one whose work folder could not be made).
/// Where several lie on each other, the last is the one that is seen. (`statvfs` would do on Linux;
/// gVisor does not fill it.)
fn read_only_mounts(table: &[u8]) -> HashMap<Vec<u8>, bool> {
    table
        .split(|byte| *byte == b'\n')
        .filter_map(|line| {
            let mut fields = line.split(|byte| *byte == b' ').skip(4);
            let (target, options) = (fields.next()?, fields.next()?);
            let of_file_system = fields.skip_while(|field| *field != b"-").nth(3);
            let is_ro = |options: &[u8]| options.split(|byte| *byte == b',').any(|it| it == b"ro");
            Some((unescape(target), is_ro(options) || of_file_system.is_some_and(is_ro)))
        })
        .collect()
}

/// The kernel writes space, tab, newline and backslash as three octal digits.
pub fn unescape(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, tail)) = rest.split_first() {
        let digits = tail.get(..3).filter(|_| *first == b'\\');
        let code =
            digits.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        match code {
            Some(code) => {
                plain.push(code);
                rest = &tail[3..];
            }
            None => {
                plain.push(*first);
                rest = tail;
            }
        }
    }
    plain
}

/// The guest's own standing, from `/proc/self/status`. The process is undumpable, but its own files stay readable.
pub fn seen() -> Seen {
    let (uid, gid) = sys::user();
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = |name: &str| {
        status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':').map(str::trim))
    };
    // The ambient set is not asked for: it is part of the permitted one, and gVisor does not show it.
    let capabilities = ["CapEff", "CapPrm", "CapBnd", "CapInh"]
        .iter()
        // A set that cannot be read counts as full: the host must not take silence for safety.
        .map(|name| {
            field(name).and_then(|set| u64::from_str_radix(set, 16).ok()).unwrap_or(u64::MAX)
        })
        .fold(0, |all, set| all | set);
    Seen {
        uid,
        gid,
        capabilities,
        no_new_privs: field("NoNewPrivs").map(|value| value == "1"),
        seccomp: field("Seccomp").and_then(|value| value.parse().ok()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_mount_at_a_place_counts() {
        let table =
            b"1 0 0:1 / / rw - ext4 x rw\n2 1 0:2 / /a\\040b ro,nosuid shared:1 - ext4 x rw\n\
            3 1 0:3 / /c rw - ext4 x rw\n4 1 0:4 / /c rw,relatime - overlay x ro,lowerdir=/a\n\
            5 1 0:5 / /d ro - ext4 x rw\n6 1 0:6 / /d rw - ext4 x rw\n";
        let mounts = read_only_mounts(table);
        let get = |path: &str| mounts.get(path.as_bytes()).copied();
        assert_eq!(get("/d"), Some(false));
        assert_eq!((get("/"), get("/a b"), get("/c")), (Some(false), Some(true), Some(true)));
        assert_eq!(unescape(b"a\\134\\9"), b"a\\\\9");
    }
}
