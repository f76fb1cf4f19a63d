//! Why a workspace cannot be mounted as granted.

use std::fmt;
use std::io;
use std::path::PathBuf;

use rustix::io::Errno;

use super::bounds::{MAX_TARGET_BYTES, MAX_TARGETS};
use super::mounts::MAX_MOUNTS;
use crate::workspace::hardlinks::LinkError;
use crate::workspace::walk::WalkError;

/// Why a workspace cannot be mounted as granted.
#[derive(Debug)]
pub enum MountError {
    /// No mount can express the pattern, and the rule grants `code`.
    Scattered(String),
    /// A link stands where a writable mount is planned.
    Link(PathBuf),
    /// A file that would be writable has another name elsewhere.
    Shared(PathBuf),
    /// More than [`MAX_MOUNTS`].
    TooMany,
    /// More mounts, or longer paths of them, than a guest can be asked about.
    TooMuch {
        /// How many mounts.
        mounts: usize,
        /// The bytes of their paths.
        bytes: usize,
        /// How many of them cover a file or folder that is denied.
        covers: usize,
    },
    /// A missing write folder cannot be made.
    Make(PathBuf, io::Error),
    /// The ledger of claims cannot be kept.
    Claim(PathBuf, io::Error),
    /// A source cannot be opened.
    Open(PathBuf, io::Error),
    /// A pipe or a device that this runtime cannot cover.
    Special(PathBuf),
    /// The place to start from is hidden by the policy.
    StartHidden(PathBuf),
    /// The walk did not end.
    Walk(WalkError),
}

impl fmt::Display for MountError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scattered(pattern) => write!(
                f,
                "no mount can express the write pattern `{pattern}`, and the rule grants code; \
                 name whole folders (`folder/**`) or single files in files.write"
            ),
            Self::Link(path) => write!(
                f,
                "{} is a link, and a writable mount there would lead elsewhere; \
                 replace it by a real folder, or take it out of files.write",
                path.display()
            ),
            Self::Shared(path) => write!(
                f,
                "{} is a hard link: the same file has another name where this call may not write, and writing it here \
                 would change it there; make it a file of its own (cp it aside and mv the copy back), or remove it",
                path.display()
            ),
            Self::TooMany => write!(
                f,
                "the workspace needs more than {MAX_MOUNTS} mounts; name fewer or narrower folders in files.write"
            ),
            Self::TooMuch { mounts, bytes, covers } => write!(
                f,
                "the sandbox needs {mounts} mounts with {bytes} bytes of paths, {covers} of them to hide what the policy \
                 denies; the most are {MAX_TARGETS} and {MAX_TARGET_BYTES}: move denied files into a folder of their own \
                 and deny the folder"
            ),
            Self::Make(path, error) => {
                write!(f, "cannot make the write folder {}: {error}", path.display())
            }
            Self::Claim(path, error) => write!(
                f,
                "cannot keep note of write folders in {}: {error}; check its permissions and free space",
                path.display()
            ),
            Self::Open(path, error) => write!(f, "cannot open {}: {error}", path.display()),
            Self::Special(path) => write!(
                f,
                "{} is a pipe or a device, which must be hidden, and a runtime with a kernel of its own would wait at it \
                 for ever",
                path.display()
            ),
            Self::StartHidden(path) => write!(
                f,
                "the policy hides {}, where the command should start; start it elsewhere in the workspace",
                path.display()
            ),
            Self::Walk(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for MountError {}

impl From<WalkError> for MountError {
    fn from(error: WalkError) -> Self {
        Self::Walk(error)
    }
}

impl From<LinkError> for MountError {
    fn from(error: LinkError) -> Self {
        match error {
            LinkError::Shared(path) => Self::Shared(path),
            LinkError::Open(path, error) => link_or(path, error, Self::Open),
            LinkError::Walk(error) => Self::Walk(error),
        }
    }
}

/// `ELOOP` means a link in the way, whatever was tried.
pub(super) fn link_or(
    path: PathBuf,
    error: io::Error,
    other: impl FnOnce(PathBuf, io::Error) -> MountError,
) -> MountError {
    if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) {
        MountError::Link(path)
    } else {
        other(path, error)
    }
}
