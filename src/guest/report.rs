//! What the guest sees before anything runs: the identity of mounts, and its own standing.

use crate::sys;
use runner_wire::{Bytes, MountSeen, Ready, Seen, VERSION};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Looks at every path that the host asked for.
pub fn ready(targets: &[Bytes]) -> Ready {
    let table = std::fs::read("/proc/self/mountinfo").unwrap_or_default();
    let mounts = targets.iter().map(|target| look(target, &table)).collect();
    Ready { version: VERSION, mounts, seen: seen() }
}

/// A path that is not there, or is a link, has identity 0 or its own, and so never the expected one.
fn look(target: &Bytes, table: &[u8]) -> MountSeen {
    let path = Path::new(target.as_os());
    let (dev, ino) =
        std::fs::symlink_metadata(path).map(|meta| (meta.dev(), meta.ino())).unwrap_or((0, 0));
    MountSeen {
        target: target.clone(),
        dev,
        ino,
        // gVisor enforces it, but tells it in the table of mounts alone.
        read_only: sys::is_read_only(path).unwrap_or(false) || listed_read_only(table, path),
    }
}

/// Whether the table of mounts says that what was mounted last at a path is read-only. A path with
/// characters that the table escapes is not found, and so not believed.
fn listed_read_only(table: &[u8], path: &Path) -> bool {
    let fields = |line: &[u8]| -> Option<(Vec<u8>, bool)> {
        let mut fields = line.split(|byte| *byte == b' ').skip(4);
        let target = fields.next()?.to_vec();
        let read_only = fields.next()?.split(|byte| *byte == b',').any(|option| option == b"ro");
        Some((target, read_only))
    };
    table
        .split(|byte| *byte == b'\n')
        .filter_map(fields)
        .filter(|(target, _)| target == path.as_os_str().as_encoded_bytes())
        .last()
        .is_some_and(|(_, read_only)| read_only)
}

/// Reads `/proc/self/status`. The process is undumpable, but its own files stay readable.
fn seen() -> Seen {
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
