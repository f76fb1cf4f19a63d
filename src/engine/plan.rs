//! The plan of one sandbox: everything a container is made from, as data.
//!
//! Duty: the types, and the few invariants that hold between them. Non-goals: working a plan out (the
//! planner's files do that) and carrying it out (an engine does). A plan is a plain value: it can be
//! printed by `--dry-run`, compared in tests, and serves as the key of a waiting sandbox: what is
//! serialized of it is what cannot change once a container is made. What is skipped travels with the call.
//!
//! Paths are bytes: nothing here assumes UTF-8. Where an engine's protocol cannot carry a path, the
//! engine's own translation refuses it with a typed error.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use runner_policy::limits::{Isolation, Limits};
use runner_wire::Network;
use serde::{Deserialize, Serialize};

use super::holders::Holders;
use crate::ids::Identity;

/// What a container is made from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxPlan {
    /// The root file system.
    pub image: Image,
    /// The OCI runtime by the name the daemon knows it by; `None` is the daemon's default.
    pub runtime: Option<Runtime>,
    /// How strongly the sandbox is closed.
    pub isolation: Isolation,
    /// Who the command runs as, inside.
    pub user: UserChoice,
    /// The workspace, absolute; it has the same path inside.
    #[serde(skip)]
    pub workspace: PathBuf,
    /// Where the command starts; the workspace or below it.
    #[serde(skip)]
    pub cwd: PathBuf,
    /// Overlays: the workspace, and the git folder outside of it that its `.git` file leads to.
    pub overlays: Vec<Overlay>,
    /// Read-only bind mounts, a parent always before what lies below it.
    pub mounts: Vec<Mount>,
    /// Covers over credentials in toolchain folders; mounted after all of `mounts`.
    pub masks: Vec<Mask>,
    /// Files that we write and mount read-only.
    pub synthetic: Vec<SyntheticFile>,
    /// Scratch space.
    pub tmpfs: Vec<Tmpfs>,
    /// The whole environment of the command.
    #[serde(skip)]
    pub env: Environment,
    /// Every limit in force.
    #[serde(with = "super::container_limits")]
    pub limits: Limits,
    /// What holds those limits that are about all processes together.
    pub holders: Holders,
    /// Names and ports of which the guest accepts connections; none for a sandbox without a network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// What protects this call, what enforces it, and whether it holds.
    #[serde(skip)]
    pub protections: Vec<Protection>,
    /// What is covered, by path below the workspace.
    #[serde(skip)]
    pub covered: BTreeSet<PathBuf>,
    /// The `.git` of each repository, by path below the workspace.
    #[serde(skip)]
    pub repositories: BTreeSet<PathBuf>,
    /// Symlinks in the workspace that stand where the host runs something, or could, by path below it.
    #[serde(skip)]
    pub links: BTreeSet<PathBuf>,
    /// Working trees of git in the workspace.
    #[serde(skip)]
    pub trees: Vec<WorkTree>,
    /// What a user should know, and no protection says.
    #[serde(skip)]
    pub notes: Vec<Note>,
}

impl SandboxPlan {
    /// Every path at which something of the host or of ours is shown.
    pub fn targets(&self) -> impl Iterator<Item = &Path> {
        let overlays = self.overlays.iter().map(|overlay| overlay.target.as_path());
        let binds = self.mounts.iter().map(|mount| mount.target.as_path());
        let files = self.synthetic.iter().map(|file| file.target.as_path());
        let masks = self.masks.iter().map(|mask| mask.target.as_path());
        overlays.chain(binds).chain(files).chain(masks)
    }

    /// Whether the call works on a stage.
    #[must_use]
    pub fn is_staged(&self) -> bool {
        self.overlays.iter().any(|overlay| overlay.writes == OverlayWrites::Staged)
    }

    /// Whether a sandbox of this plan may wait for a call. A mount below the workspace is a look-up in
    /// the overlay, and what an overlay has looked up once it may show for ever, whatever the host does.
    #[must_use]
    pub fn may_wait(&self) -> bool {
        let below = |target: &Path| {
            let mut overlays = self.overlays.iter();
            overlays.any(|overlay| target != overlay.target && target.starts_with(&overlay.target))
        };
        let binds = self.mounts.iter().map(|mount| mount.target.as_path());
        let masks = self.masks.iter().map(|mask| mask.target.as_path());
        let overlays = self.overlays.iter().map(|overlay| overlay.target.as_path());
        // No other call trusts the certificates of this one.
        let own = self.synthetic.iter().any(|file| file.role == SyntheticRole::Certificates);
        !own && !binds.chain(masks).chain(overlays).any(below)
    }
}

/// The root file system of a sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Image {
    /// An empty image that holds the guest, with the host's own programs bound into it.
    Host,
    /// An OCI image by reference; the guest arrives in a read-only volume.
    Reference(String),
}

/// What is known about a foreign image.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImageFacts {
    /// Its own `PATH`.
    pub path: Option<OsString>,
    /// Folders that it declares as volumes. The daemon would make writable folders without any limit for
    /// them; they get a scratch folder instead.
    pub volumes: Vec<PathBuf>,
}

/// The name of an OCI runtime, as the daemon knows it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Runtime(String);

impl Runtime {
    /// Takes a name of safe characters only; `None` for anything else.
    #[must_use]
    pub fn new(name: &str) -> Option<Self> {
        let safe = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        (!name.is_empty() && name.len() <= 64 && name.chars().all(safe))
            .then(|| Self(name.to_owned()))
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<Runtime> for String {
    fn from(runtime: Runtime) -> Self {
        runtime.0
    }
}

impl TryFrom<String> for Runtime {
    type Error = &'static str;

    fn try_from(name: String) -> Result<Self, Self::Error> {
        Self::new(&name).ok_or("no name of a runtime")
    }
}

impl fmt::Display for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Who the command runs as inside, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct UserChoice {
    /// User id inside the container.
    pub uid: u32,
    /// Group id inside the container.
    pub gid: u32,
    /// Why these.
    pub why: WhyUser,
}

/// Why a user id was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum WhyUser {
    /// The caller's own ids: the daemon is rootful and maps nothing.
    Caller,
    /// 0 inside is the caller outside: the daemon is rootless.
    RootlessCaller,
    /// The caller is root; the workspace belongs to this user.
    WorkspaceOwner,
    /// The caller and the workspace are root's, and nothing has to be written.
    Nobody,
    /// The caller and the workspace are root's, and something has to be written: root without
    /// capabilities. A result says so.
    RootWithoutCapabilities,
    /// The caller is root; root's files are shown as those of this user, and what it writes becomes root's.
    IdMapped,
    /// The image is foreign and no host file is mounted writable.
    Unprivileged,
}

impl WhyUser {
    /// For people.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Caller => "the caller",
            Self::RootlessCaller => {
                "the caller: the engine is rootless, and maps root inside to them"
            }
            Self::WorkspaceOwner => "the owner of the workspace: the caller is root",
            Self::Nobody => "an unprivileged user: the caller is root, and nothing is written",
            Self::RootWithoutCapabilities => {
                "root without capabilities: the caller and the workspace are root's"
            }
            Self::IdMapped => {
                "an unprivileged user: the caller is root, whose files are shown as this user's"
            }
            Self::Unprivileged => "an unprivileged user: the image is not the host's",
        }
    }
}

/// One overlay mount: a layer of covers over a folder of the host, and a stage on top if the call
/// writes. It has the same path inside as on the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Overlay {
    /// The folder of the host, absolute; no part of it is a symlink.
    pub target: PathBuf,
    /// What stood there when it was opened; the engine mounts this folder and no other.
    pub identity: Identity,
    /// The layer of covers, a folder of ours.
    pub covers: Layer,
    /// Whether a stage lies on top.
    pub writes: OverlayWrites,
    /// What is shown.
    pub role: OverlayRole,
}

/// A working tree of git, and the git folder that has its index.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct WorkTree {
    /// The git folder, absolute. For a linked worktree: its own, below `worktrees`.
    pub git: PathBuf,
    /// The top of the working tree, below the workspace.
    pub top: PathBuf,
}

/// A layer of an overlay that we made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layer {
    /// Where it is on the host, absolute.
    pub path: PathBuf,
    /// What stood there when it was made.
    pub identity: Identity,
    /// The value of the attribute [`runner_wire::MARK`] of its root folder, by which the guest knows
    /// the layer.
    pub mark: String,
}

/// Whether an overlay can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum OverlayWrites {
    /// It is read-only.
    Refused,
    /// Into a stage, which the host judges when the call is over.
    Staged,
}

/// What an overlay shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum OverlayRole {
    /// The workspace.
    Workspace,
    /// A file system that the host has mounted below the workspace, and that holds something hidden.
    Below,
    /// A git folder outside the workspace: of a linked worktree or a submodule.
    Git,
}

/// One read-only bind mount.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    /// Absolute path on the host; no part of it below the workspace is a link.
    pub source: PathBuf,
    /// Absolute path inside.
    pub target: PathBuf,
    /// What stood at `source` when it was opened. The guest reports what it finds at `target`; the
    /// command is sent only if both are equal.
    pub identity: Identity,
    /// Why it is there.
    pub role: MountRole,
}

/// Why something is mounted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum MountRole {
    /// A file system that the host has mounted below the workspace.
    Below,
    /// System folders of the host.
    System,
    /// A toolchain folder of the caller.
    Toolchain,
}

/// A cover that hides a denied path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mask {
    /// The unreadable thing on the host that is mounted, read-only, over the target.
    pub source: PathBuf,
    /// What is hidden; it exists.
    pub target: PathBuf,
    /// What it is covered with.
    pub kind: MaskKind,
    /// What stands at `source`, and must be found at `target`.
    pub identity: Identity,
    /// What was hidden when the plan was made.
    pub hides: Identity,
}

/// What a mask is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum MaskKind {
    /// An empty file of mode 000.
    File,
    /// An empty folder of mode 000.
    Folder,
}

/// A file that we write and mount.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SyntheticFile {
    /// Where it is kept on the host; its name is a digest of its content.
    pub source: PathBuf,
    /// Absolute path inside.
    pub target: PathBuf,
    /// What stands at `source`, and must be found at `target`.
    pub identity: Identity,
    /// Its content.
    #[serde(skip)]
    pub content: Vec<u8>,
    /// Its permission bits on the host.
    pub mode: FileMode,
    /// What it is.
    pub role: SyntheticRole,
}

/// Permission bits of a synthetic file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum FileMode {
    /// 0444.
    Readable,
}

/// Which synthetic file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum SyntheticRole {
    /// `/etc/passwd`.
    Passwd,
    /// `/etc/group`.
    Group,
    /// `/etc/hosts`.
    Hosts,
    /// `/etc/nsswitch.conf`.
    NameSwitch,
    /// `/etc/resolv.conf`.
    Resolver,
    /// `/etc/gitconfig`.
    GitConfig,
    /// Certificates that programs of this one call trust.
    Certificates,
    /// Where clients of registries install from.
    Registries,
}

/// A memory-backed folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tmpfs {
    /// Absolute path inside.
    pub target: PathBuf,
    /// Bytes it can hold.
    pub size: u64,
    /// Files it can hold.
    pub inodes: u64,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Permission bits of its root.
    pub mode: u32,
    /// Whether programs in it can be started.
    pub exec: TmpfsExec,
}

/// Whether programs in a tmpfs can be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum TmpfsExec {
    /// They can; build scripts and test runners need it.
    Exec,
    /// They cannot.
    NoExec,
}

/// The exact environment of a command: nothing is inherited.
pub type Environment = BTreeMap<OsString, OsString>;

/// One protection, in words for a result and for `--dry-run`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Protection {
    /// Its stable name.
    pub name: &'static str,
    /// What enforces it here.
    pub enforced_by: &'static str,
    /// Whether it holds.
    pub status: ProtectionStatus,
}

/// Whether a protection holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProtectionStatus {
    /// It holds.
    Enforced,
    /// It holds in part; the text says where it ends.
    BestEffort(&'static str),
    /// It does not hold here; the text says why.
    Absent(&'static str),
}

/// Something a user should know about a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Note {
    /// A stable code.
    pub code: &'static str,
    /// One sentence.
    pub text: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runtime_name_has_safe_characters_only() {
        assert_eq!(
            Runtime::new("io.containerd.runc.v2").unwrap().as_str(),
            "io.containerd.runc.v2"
        );
        for bad in ["", "a b", "a/b", "a\n", "ü", &"x".repeat(65)] {
            assert_eq!(Runtime::new(bad), None, "{bad:?}");
        }
    }
}
