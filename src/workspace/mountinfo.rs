//! Where the host has other file systems mounted below a folder.
//!
//! Duty: read `/proc/self/mountinfo`. A bind mount of ours takes along nothing that is mounted below its
//! source, so the planner names those places by itself.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::sys::read_procfs;

/// Every mount point of this process, as they were at one moment. The kernel takes its time to write the table: one is
/// read for a whole plan.
#[derive(Debug)]
pub struct MountPoints(Vec<PathBuf>);

impl MountPoints {
    /// Reads them. None where the table cannot be read: then what is mounted there is not seen inside either.
    #[must_use]
    pub fn read() -> Self {
        Self::of(&read_procfs("/proc/self/mountinfo").unwrap_or_default())
    }

    fn of(table: &[u8]) -> Self {
        let mut points: Vec<PathBuf> = table
            .split(|byte| *byte == b'\n')
            .filter_map(|line| line.split(|byte| *byte == b' ').nth(4))
            .map(|field| PathBuf::from(OsStr::from_bytes(&unescape(field))))
            .collect();
        points.sort();
        points.dedup();
        Self(points)
    }

    /// Those strictly below a folder, in order.
    pub fn below<'a>(&'a self, folder: &'a Path) -> impl Iterator<Item = &'a Path> {
        let below = move |point: &&Path| *point != folder && point.starts_with(folder);
        self.0.iter().map(PathBuf::as_path).filter(below)
    }
}

/// Space, tab, newline and backslash stand as `\ooo`.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(field.len());
    let mut rest = field;
    while let [first, tail @ ..] = rest {
        if let (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', after @ ..]) =
            (*first, tail)
        {
            out.push((a - b'0') * 64 + (b - b'0') * 8 + (c - b'0'));
            rest = after;
        } else {
            out.push(*first);
            rest = tail;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_places_strictly_below_count_and_escapes_are_read() {
        let table = b"1 0 8:1 / /w rw - ext4 x rw\n2 1 8:2 / /w/a\\040b rw - ext4 x rw\n\
            3 1 8:2 / /w2/c rw - ext4 x rw\n4 1 8:2 / /w/z rw - ext4 x rw\n";
        let points = MountPoints::of(table);
        let below: Vec<&Path> = points.below(Path::new("/w")).collect();
        assert_eq!(below, [Path::new("/w/a b"), Path::new("/w/z")]);
    }
}
