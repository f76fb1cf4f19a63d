//! Judging everything below a folder, before anything of it is moved or removed.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::io::Errno;

use super::{Files, errno};
use crate::broker::Refusal;
use crate::codes::Code;
use crate::workspace::walk::{Descend, Entry, Visitor, Waiting, WalkError, walk};

/// Most entries of a tree that one request moves or removes.
pub(super) const MAX_TREE: usize = 200_000;

struct Judge<F> {
    judge: F,
    /// Entries that were seen; beyond [`MAX_TREE`] nothing is looked at any more.
    seen: AtomicUsize,
}

impl<F: Fn(&str) -> Result<(), Refusal> + Sync> Visitor<Refusal> for Judge<F> {
    type Place = ();

    fn place(&self, _: &Waiting, _: BorrowedFd<'_>) {}

    fn entry(&self, (): &(), entry: &Entry<'_>, keep: &mut Vec<Refusal>) -> Descend {
        let seen = self.seen.fetch_add(1, Ordering::Relaxed);
        if seen > MAX_TREE {
            return Descend::Skip;
        }
        let judged = if seen == MAX_TREE {
            let message = format!("more than {MAX_TREE} entries are too many for one request");
            Err(Refusal::new(Code::LimitReached, message))
        } else {
            match entry.path().to_str() {
                Some(below) => (self.judge)(below),
                None => Err(Refusal::new(
                    Code::InvalidArgument,
                    "a name below it is not UTF-8, and rules speak of text",
                )),
            }
        };
        match judged {
            Ok(()) => Descend::Enter,
            Err(refusal) => {
                // One refusal is enough.
                self.seen.fetch_max(MAX_TREE + 1, Ordering::Relaxed);
                keep.push(refusal);
                Descend::Skip
            }
        }
    }

    fn closed(&self, folder: &Path) -> Option<Refusal> {
        let shown = folder.to_string_lossy();
        Some(errno::refusal("look through", &shown, Errno::ACCESS))
    }
}

impl Files {
    /// Judges every entry below a folder by its path from there.
    pub(super) fn judge_below(
        &self,
        folder: impl AsFd,
        shown: &str,
        judge: impl Fn(&str) -> Result<(), Refusal> + Sync,
    ) -> Result<(), Refusal> {
        let judge = Judge { judge, seen: AtomicUsize::new(0) };
        match walk(folder.as_fd(), Path::new(shown), &judge) {
            Ok(refusals) => refusals.into_iter().next().map_or(Ok(()), Err),
            Err(error) => Err(walked(shown, &error)),
        }
    }
}

/// A walk that did not come to an end.
pub(super) fn walked(shown: &str, error: &WalkError) -> Refusal {
    match error {
        WalkError::TooMany(_) | WalkError::TooDeep(_) | WalkError::Restless(_) => {
            let message = format!("{shown} is too large or too deep for one request");
            Refusal::new(Code::LimitReached, message).at(shown)
        }
        WalkError::Read(path, error) | WalkError::Open(path, error) => {
            let code = error.raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error);
            errno::refusal("look through", &path.to_string_lossy(), code)
        }
    }
}
