//! Writes the few tar archives that are sent to a daemon: folders, one program and what it reads.
//!
//! The same entries always make the same bytes: no times, no names of users.

/// One entry of an archive.
#[derive(Debug, Clone, Copy)]
pub enum Entry<'a> {
    /// A folder with its permission bits.
    Folder(&'a str, u32),
    /// A program that everybody may execute.
    Program(&'a str, &'a [u8]),
    /// A file that everybody may read.
    File(&'a str, &'a [u8]),
}

/// Tar works in blocks of this size.
const BLOCK: usize = 512;

/// The archive of these entries. Names are relative and shorter than 100 bytes.
pub fn tar(entries: &[Entry<'_>]) -> Vec<u8> {
    let mut archive = Vec::new();
    for entry in entries {
        match entry {
            Entry::Folder(name, mode) => header(&mut archive, name, *mode, 0, b'5'),
            Entry::Program(name, content) | Entry::File(name, content) => {
                let mode = if matches!(entry, Entry::Program(..)) { 0o555 } else { 0o444 };
                header(&mut archive, name, mode, content.len(), b'0');
                archive.extend_from_slice(content);
                let rest = content.len().next_multiple_of(BLOCK) - content.len();
                archive.resize(archive.len() + rest, 0);
            }
        }
    }
    // Two empty blocks are the end.
    archive.resize(archive.len() + 2 * BLOCK, 0);
    archive
}

fn header(archive: &mut Vec<u8>, name: &str, mode: u32, size: usize, kind: u8) {
    let mut block = [0_u8; BLOCK];
    let mut put = |at: usize, bytes: &[u8]| {
        block[at..at + bytes.len()].copy_from_slice(bytes);
    };
    put(0, &name.as_bytes()[..name.len().min(99)]);
    put(100, format!("{mode:07o}").as_bytes());
    put(108, b"0000000");
    put(116, b"0000000");
    put(124, format!("{size:011o}").as_bytes());
    put(136, b"00000000000");
    put(148, b"        ");
    put(156, &[kind]);
    put(257, b"ustar\x0000");
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    archive.extend_from_slice(&block);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::process::{Command, Stdio};

    #[test]
    fn tar_reads_what_is_written() {
        let archive = tar(&[Entry::Folder("a/", 0o755), Entry::Program("a/b", b"hello")]);
        assert_eq!(archive.len() % BLOCK, 0);
        let mut child = Command::new("tar")
            .args(["--to-stdout", "-x", "a/b"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(&archive).unwrap();
        assert_eq!(child.wait_with_output().unwrap().stdout, b"hello");
    }
}
