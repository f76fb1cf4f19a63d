//! `file.read`: a file as a stream of chunks, never as a whole.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;

use rustix::fs::{CWD, Mode, OFlags, openat};

use super::place::{self, Found};
use super::{Files, errno};
use crate::broker::Refusal;
use crate::broker::frame::{CHUNK_MAX, HEADER};
use crate::broker::outgoing::Outgoing;
use crate::codes::Code;
use crate::workspace::temp::proc_path;

/// Chunks that are read at once: few hops between threads, little memory.
const CHUNKS_AT_ONCE: usize = 4;

/// A file that is being read.
#[derive(Debug)]
pub(in crate::broker) struct Reading {
    file: File,
    offset: u64,
    left: u64,
    /// Where it is below the workspace.
    pub(in crate::broker) relative: String,
}

impl Files {
    /// Opens a file for reading.
    pub(in crate::broker) fn read(
        &self,
        path: &str,
        offset: u64,
        length: Option<u64>,
    ) -> Result<Reading, Refusal> {
        let named = self.named(path)?;
        self.may_read(named.lexical())?;
        let found = self.find(&named)?;
        self.may_read(&found.relative)?;
        place::demand_file(&found)?;
        let file = File::from(reopen(&found, OFlags::RDONLY)?);
        Ok(Reading { file, offset, left: length.unwrap_or(u64::MAX), relative: found.relative })
    }
}

/// Opens what a handle names: the very object that was judged.
pub(super) fn reopen(found: &Found, flags: OFlags) -> Result<OwnedFd, Refusal> {
    let flags = flags | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    openat(CWD, proc_path(&found.handle), flags, Mode::empty())
        .map_err(|error| errno::refusal("open", &found.relative, error))
}

impl Reading {
    /// The next frames of chunks; none at the end.
    pub(in crate::broker) fn frames(&mut self) -> Result<Vec<Vec<u8>>, Refusal> {
        let mut frames = Vec::with_capacity(CHUNKS_AT_ONCE);
        while frames.len() < CHUNKS_AT_ONCE && self.left > 0 {
            let wanted = usize::try_from(self.left).unwrap_or(usize::MAX).min(CHUNK_MAX);
            let mut frame = Outgoing::blank();
            frame.resize(HEADER + wanted, 0);
            let got = self.fill(&mut frame[HEADER..])?;
            frame.truncate(HEADER + got);
            if got > 0 {
                frames.push(frame);
            }
            if got < wanted {
                self.left = 0;
            }
        }
        Ok(frames)
    }

    fn fill(&mut self, space: &mut [u8]) -> Result<usize, Refusal> {
        let mut got = 0;
        while got < space.len() {
            match self.file.read_at(&mut space[got..], self.offset) {
                Ok(0) => break,
                Ok(read) => {
                    got += read;
                    self.offset = self.offset.saturating_add(read as u64);
                    self.left = self.left.saturating_sub(read as u64);
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => {
                    let message = format!("cannot read {}: {error}", self.relative);
                    return Err(Refusal::new(Code::IoError, message).at(&self.relative));
                }
            }
        }
        Ok(got)
    }
}
