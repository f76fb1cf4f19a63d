//! The words that walk, judge and apply share: a change, what the host has in its place, a verdict.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::ids::Identity;

/// A moment, in seconds and nanoseconds since 1970, as the file system has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment {
    /// Seconds.
    pub seconds: i64,
    /// Nanoseconds within the second.
    pub nanoseconds: u32,
}

/// What the root of a stage is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RootKind {
    /// The workspace.
    Workspace,
    /// A git folder outside the workspace, of a linked worktree or a submodule.
    GitFolder,
}

/// One name whose content, kind, permissions or existence a call changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Below the root that the stage belongs to: ordinary parts only, bytes rather than text.
    pub path: PathBuf,
    /// What the call left there.
    pub what: What,
    /// What the host had there when the stage was walked.
    pub host: Host,
    /// The call changed something of the host, which has it no more.
    pub lost: bool,
}

/// What a call left at a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// A file; its content lies in the stage under the same path.
    File(Staged),
    /// A symlink.
    Link {
        /// Its target, as written.
        target: OsString,
    },
    /// A folder that is new, or stands where something else was, or has other permissions now. Its
    /// entries are changes of their own.
    Folder {
        /// Permission bits.
        mode: u32,
    },
    /// Nothing. The walker expands a whiteout of a folder, and what an opaque folder hides, into one
    /// removal for each name of the host, contents before their folder.
    Removed,
    /// A pipe, a socket, a device, a file with capabilities, or a file or folder whose access list gives
    /// more than the host's: never applied.
    Special,
}

/// A regular file in a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Staged {
    /// Device and inode in the stage.
    pub identity: Identity,
    /// Permission bits, with setuid, setgid and sticky.
    pub mode: u32,
    /// Its length.
    pub size: u64,
    /// How many names it has.
    pub links: u64,
    /// When it was made in the stage (`statx` birth time), if the file system tells.
    pub born: Option<Moment>,
    /// Whether the overlay copied it up from the file that the host still has under this name.
    pub origin: Origin,
}

/// Where a staged file came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// It was made in the call.
    New,
    /// `user.overlay.origin` names the file that the host has under this name now.
    Host,
    /// `user.overlay.origin` names another file, or cannot be read.
    Unknown,
}

/// What the host has under a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Host {
    /// Nothing, also where a parent is missing or is no folder.
    Absent,
    /// A regular file.
    File(Facts),
    /// A folder.
    Folder(Facts),
    /// A symlink.
    Link {
        /// Its target.
        target: OsString,
        /// The symlink itself.
        facts: Facts,
    },
    /// A pipe, a socket or a device.
    Other(Facts),
}

/// A file, folder or symlink of the host as it was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// Device and inode.
    pub identity: Identity,
    /// Permission bits.
    pub mode: u32,
    /// Length.
    pub size: u64,
    /// How many names it has.
    pub links: u64,
    /// When its content last changed.
    pub mtime: Moment,
    /// When anything of it last changed.
    pub ctime: Moment,
}

/// A change with what was decided about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judged {
    /// The change.
    pub change: Change,
    /// Whether it may be applied.
    pub verdict: Verdict,
}

/// What is decided about a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It may be applied.
    Apply,
    /// It stays in the stage.
    Hold(Held),
}

/// Why a change is held back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// The reason by kind.
    pub why: Why,
    /// For people: one sentence fragment, naming what the host would run or which list decided.
    pub reason: String,
    /// The rule: `policy/files.write`, `built-in/never`, `built-in/named`.
    pub rule: String,
    /// What the caller can do.
    pub next: String,
}

/// Why a change is held back, by kind.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// The policy does not let it be written.
    NotWritable,
    /// The policy denies it, or it is key material.
    Denied,
    /// The host would run it, or be led by it, without being asked.
    RunsOnHost,
    /// The host would run it at the next build or install; only a policy that names the file allows it.
    Named,
    /// It stands at a covered path, or takes one away.
    Covered,
    /// A symlink that leads out of the workspace.
    LeadsOut,
    /// Setuid or setgid bits, an access list, a device, a pipe or a socket.
    Special,
    /// The host changed it meanwhile.
    Conflict,
    /// It belongs to a commit or checkout of which another part is held back.
    Group,
    /// The call asked for review before anything is applied.
    Review,
    /// Applying it failed, by a full disk perhaps.
    NotApplied,
}

impl Why {
    /// Whether a person may have it applied all the same. What no policy can allow, no person applies
    /// by this program either.
    #[must_use]
    pub fn may_be_applied(self) -> bool {
        match self {
            Self::NotWritable
            | Self::Named
            | Self::Review
            | Self::NotApplied
            | Self::Group
            | Self::LeadsOut => true,
            // A conflict is judged anew by the host's files of now.
            Self::Conflict => true,
            Self::Denied | Self::RunsOnHost | Self::Covered | Self::Special => false,
        }
    }
}
