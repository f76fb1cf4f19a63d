//! The operating system's errors, as a tool sees them.

use rustix::io::Errno;

use crate::broker::Refusal;
use crate::codes::Code;

/// What failed, about which path.
pub(super) fn refusal(verb: &str, path: &str, error: Errno) -> Refusal {
    let (code, why) = match error {
        Errno::NOENT => (Code::NotFound, "nothing is there"),
        Errno::EXIST => (Code::AlreadyExists, "something is there already"),
        Errno::NOTDIR => (Code::NotADirectory, "something on the way is not a folder"),
        Errno::ISDIR => (Code::IsADirectory, "it is a folder"),
        Errno::NOTEMPTY => (Code::NotEmpty, "the folder is not empty"),
        Errno::NOSPC | Errno::DQUOT => (Code::NoSpace, "there is no room left"),
        Errno::FBIG => (Code::TooLarge, "the file would be too large"),
        Errno::XDEV => (Code::PathEscape, "it leads out of the workspace, or to another disk"),
        Errno::ACCESS | Errno::PERM => {
            (Code::AccessDenied, "the operating system does not let this user")
        }
        Errno::ROFS => (Code::AccessDenied, "the file system is read-only"),
        Errno::NAMETOOLONG | Errno::INVAL | Errno::ILSEQ => {
            (Code::InvalidArgument, "the operating system does not take it")
        }
        Errno::LOOP => (Code::InvalidArgument, "links lead in a circle"),
        Errno::NXIO | Errno::NODEV => (Code::SpecialFile, "it is no file"),
        Errno::AGAIN | Errno::BUSY | Errno::TXTBSY => {
            (Code::Busy, "it is in use or keeps changing")
        }
        Errno::MFILE | Errno::NFILE | Errno::NOMEM => (Code::Busy, "too much is open at once"),
        _ => {
            return Refusal::new(Code::IoError, format!("cannot {verb} {path}: {error}")).at(path);
        }
    };
    Refusal::new(code, format!("cannot {verb} {path}: {why}")).at(path)
}
