//! `file.glob`: the paths below a folder that a pattern covers and the policy lets be read.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags, openat};
use serde::Serialize;
use std::os::fd::{AsFd, BorrowedFd};

use super::below::walked;
use super::pattern::{BadPattern, Pattern};
use super::place::joined;
use super::{Files, errno};
use crate::broker::Refusal;
use crate::codes::Code;
use crate::workspace::walk::{Descend, Entry, Visitor, Waiting, walk};

/// Most paths of one answer, and how many if nothing is said.
const MAX_PATHS: usize = 10_000;
/// Most bytes of paths in one answer: it travels as one piece.
const MAX_BYTES: usize = 4 * 1024 * 1024;
/// Entries that are looked at before a search gives up.
const MAX_SEEN: usize = 1_000_000;
/// Time after which a search gives up.
const MAX_TIME: Duration = Duration::from_secs(20);

/// The answer to `file.glob`.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(in crate::broker) struct Paths {
    paths: Vec<String>,
    truncated: bool,
}

struct Search<'a> {
    files: &'a Files,
    pattern: &'a Pattern,
    /// Where the search starts, below the workspace.
    start: &'a str,
    until: Instant,
    seen: AtomicUsize,
    bytes: AtomicUsize,
}

impl Search<'_> {
    /// Whether the search has come to one of its ends.
    fn is_over(&self) -> bool {
        self.seen.load(Ordering::Relaxed) > MAX_SEEN
            || self.bytes.load(Ordering::Relaxed) > MAX_BYTES
    }
}

impl Visitor<String> for Search<'_> {
    type Place = ();

    fn place(&self, _: &Waiting, _: BorrowedFd<'_>) {}

    fn entry(&self, (): &(), entry: &Entry<'_>, keep: &mut Vec<String>) -> Descend {
        let seen = self.seen.fetch_add(1, Ordering::Relaxed);
        if seen.is_multiple_of(1024) && Instant::now() > self.until {
            self.seen.fetch_max(MAX_SEEN + 1, Ordering::Relaxed);
        }
        let path = entry.path();
        // A name that is not text can be neither matched nor judged.
        let Some(path) = path.to_str().filter(|_| !self.is_over()) else {
            return Descend::Skip;
        };
        let names: Vec<&str> = path.split('/').collect();
        let fit = self.pattern.fit(&names);
        if fit.matches && self.files.may_read(&joined(self.start, path)).is_ok() {
            self.bytes.fetch_add(path.len() + 8, Ordering::Relaxed);
            keep.push(path.to_owned());
        }
        if fit.below { Descend::Enter } else { Descend::Skip }
    }

    /// What cannot be looked into holds nothing that could be read.
    fn closed(&self, _: &Path) -> Option<String> {
        None
    }
}

impl Files {
    /// Looks for paths; the answer is also where it looked.
    pub(in crate::broker) fn glob(
        &self,
        pattern: &str,
        cwd: Option<&str>,
        dot: bool,
        limit: Option<u64>,
    ) -> Result<(Paths, String), Refusal> {
        let pattern = Pattern::new(pattern, dot).map_err(|bad| {
            let code = match bad {
                BadPattern::Upwards | BadPattern::Absolute => Code::PathEscape,
                _ => Code::InvalidArgument,
            };
            Refusal::new(code, bad.why())
        })?;
        let named = self.named(cwd.unwrap_or("."))?;
        let found = self.enter(&named)?;
        let start = found.relative.as_str();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = openat(&found.handle, ".", flags, Mode::empty())
            .map_err(|error| errno::refusal("look through", start, error))?;
        let search = Search {
            files: self,
            pattern: &pattern,
            start,
            until: Instant::now() + MAX_TIME,
            seen: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
        };
        let mut paths = walk(folder.as_fd(), Path::new(start), &search)
            .map_err(|error| walked(start, &error))?;
        paths.sort_unstable();
        let limit = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(MAX_PATHS);
        let most = limit.min(MAX_PATHS);
        let truncated = paths.len() > most || search.is_over();
        paths.truncate(most);
        Ok((Paths { paths, truncated }, found.relative))
    }
}
