//! Why a workspace cannot be mounted as granted.

use std::fmt;
use std::io;
use std::path::PathBuf;

use rustix::io::Errno;

use super::mounts::MAX_MOUNTS;
use super::walk::WalkError;

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
