//! Writes an index.

use super::read::{Entry, Extension, Hash, Index};

const FLAG_EXTENDED: u16 = 0x4000;
const MOST_LENGTH: usize = 0x0fff;

/// An entry as it is written.
pub(super) struct Written<'a> {
    stat: &'a [u8],
    id: &'a [u8],
    flags: u16,
    pub(super) extended: u16,
    pub(super) path: &'a [u8],
}

impl<'a> Written<'a> {
    pub(super) fn from(index: &'a Index<'_>, entry: &'a Entry<'_>) -> Self {
        Self {
            stat: entry.stat,
            id: entry.id,
            flags: entry.flags,
            extended: entry.extended,
            path: index.path(entry),
        }
    }
}

/// An index with a checksum. Version 4 stays; else the version is 3 if an entry needs it, or 2.
pub(super) fn write(
    hash: Hash,
    version: u32,
    entries: &[Written<'_>],
    extensions: &[Extension<'_>],
) -> Vec<u8> {
    let extended = entries.iter().any(|entry| entry.extended != 0);
    let version: u32 = match (version, extended) {
        (4, _) => 4,
        (_, true) => 3,
        (_, false) => 2,
    };
    let size = entries.iter().map(|entry| 72 + hash.length() + entry.path.len()).sum::<usize>();
    let mut out = Vec::with_capacity(size);
    out.extend_from_slice(b"DIRC");
    out.extend_from_slice(&version.to_be_bytes());
    out.extend_from_slice(&length(entries.len()));
    let mut before: &[u8] = &[];
    for entry in entries {
        let start = out.len();
        out.extend_from_slice(entry.stat);
        out.extend_from_slice(entry.id);
        let mut flags = entry.flags | entry.path.len().min(MOST_LENGTH) as u16;
        if entry.extended != 0 {
            flags |= FLAG_EXTENDED;
        }
        out.extend_from_slice(&flags.to_be_bytes());
        if entry.extended != 0 {
            out.extend_from_slice(&entry.extended.to_be_bytes());
        }
        if version == 4 {
            let same = before.iter().zip(entry.path).take_while(|(a, b)| a == b).count();
            push_varint(&mut out, before.len() - same);
            out.extend_from_slice(&entry.path[same..]);
            out.push(0);
            before = entry.path;
        } else {
            out.extend_from_slice(entry.path);
            let padding = 8 - (out.len() - start) % 8;
            out.extend_from_slice(&[0; 8][..padding]);
        }
    }
    for extension in extensions {
        out.extend_from_slice(&extension.name);
        out.extend_from_slice(&length(extension.data.len()));
        out.extend_from_slice(extension.data);
    }
    let sum = hash.of(&out);
    out.extend_from_slice(sum.as_ref());
    out
}

/// A length as the format has it. The reader's limits keep all of them far below 4 GiB.
fn length(length: usize) -> [u8; 4] {
    u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes()
}

fn push_varint(out: &mut Vec<u8>, mut value: usize) {
    let mut bytes = [0_u8; 10];
    let mut at = bytes.len() - 1;
    bytes[at] = (value & 0x7f) as u8;
    while value >> 7 > 0 {
        value = (value >> 7) - 1;
        at -= 1;
        bytes[at] = 0x80 | (value & 0x7f) as u8;
    }
    out.extend_from_slice(&bytes[at..]);
}
