//! Why a workspace cannot be mounted as granted.

use std::io;
use std::path::PathBuf;

use rustix::io::Errno;

use super::bounds::{MAX_TARGET_BYTES, MAX_TARGETS};
use super::mounts::MAX_MOUNTS;
use crate::workspace::hardlinks::LinkError;
use crate::workspace::walk::WalkError;

/// Why a workspace cannot be mounted as granted.
#[derive(Debug, thiserror::Error)]
pub enum MountError {
    /// No mount can express the pattern, and the rule grants `code`.
    #[error(
        "no mount can express the write pattern `{0}`, and the rule grants code; \
         name whole folders (`folder/**`) or single files in files.write"
    )]
    Scattered(String),
    /// A link stands where a writable mount is planned.
    #[error(
        "{0} is a link, and a writable mount there would lead elsewhere; \
         replace it by a real folder, or take it out of files.write"
    )]
    Link(PathBuf),
    /// A file that would be writable has another name elsewhere.
    #[error(
        "{0} is a hard link: the same file has another name where this call may not write, and writing it here \
         would change it there; make it a file of its own (cp it aside and mv the copy back), or remove it"
    )]
    Shared(PathBuf),
    /// More than [`MAX_MOUNTS`].
    #[error(
        "the workspace needs more than {MAX_MOUNTS} mounts; name fewer or narrower folders in \
         files.write"
    )]
    TooMany,
    /// More mounts, or longer paths of them, than a guest can be asked about.
    #[error(
        "the sandbox needs {mounts} mounts with {bytes} bytes of paths, {covers} of them to hide what the policy \
         denies; the most are {MAX_TARGETS} and {MAX_TARGET_BYTES}: move denied files into a folder of their own \
         and deny the folder"
    )]
    TooMuch {
        /// How many mounts.
        mounts: usize,
        /// The bytes of their paths.
        bytes: usize,
        /// How many of them cover a file or folder that is denied.
        covers: usize,
    },
    /// A missing write folder cannot be made.
    #[error("cannot make the write folder {0}: {1}")]
    Make(PathBuf, #[source] io::Error),
    /// The ledger of claims cannot be kept.
    #[error("cannot keep note of write folders in {0}: {1}; check its permissions and free space")]
    Claim(PathBuf, #[source] io::Error),
    /// A source cannot be opened.
    #[error("cannot open {0}: {1}")]
    Open(PathBuf, #[source] io::Error),
    /// A pipe or a device that this runtime cannot cover.
    #[error(
        "{0} is a pipe or a device, which must be hidden, and a runtime with a kernel of its own would wait at it \
         for ever"
    )]
    Special(PathBuf),
    /// The place to start from is hidden by the policy.
    #[error(
        "the policy hides {0}, where the command should start; start it elsewhere in the \
         workspace"
    )]
    StartHidden(PathBuf),
    /// The walk did not end.
    #[error(transparent)]
    Walk(#[from] WalkError),
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
