//! `--status-fd`: one JSON line that tells a status apart from the command's own exit code.

use std::fs::File;
use std::io::Write;
use std::os::fd::RawFd;

use crate::exit::Ending;
use crate::sys::claim_status_fd;

use super::usage::UsageError;

/// Where the status line goes, if anywhere.
#[derive(Debug)]
pub struct StatusSink(Option<File>);

impl StatusSink {
    /// `--status-fd` was not given.
    #[must_use]
    pub const fn none() -> Self {
        Self(None)
    }

    /// Takes the descriptor of `--status-fd`.
    ///
    /// # Errors
    /// It cannot carry the line.
    pub fn open(fd: Option<RawFd>) -> Result<Self, UsageError> {
        let file = fd.map(claim_status_fd).transpose().map_err(UsageError::StatusFd)?;
        Ok(Self(file.map(File::from)))
    }

    /// Writes the line. A reader who left is no error: the exit code still says how it ended.
    pub fn send(self, ending: &Ending) {
        if let Self(Some(mut file)) = self
            && let Ok(mut line) = serde_json::to_string(ending)
        {
            line = crate::text::harmless_json(line);
            line.push('\n');
            let _ = file.write_all(line.as_bytes());
        }
    }
}
