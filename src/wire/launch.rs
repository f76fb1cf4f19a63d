//! The recipe of a sandbox that this machine's kernel makes without a daemon.
//!
//! The embedded engine starts the guest's executable as a launcher and writes one recipe to its standard
//! input: its length as four little-endian bytes, then JSON. The launcher makes the sandbox and becomes its
//! parent. What follows on standard input belongs to the guest. A launcher that fails writes one
//! [`LaunchFailure`] as a line of JSON to standard error.

use crate::bytes::Bytes;
use serde::{Deserialize, Serialize};

/// The first argument of the guest's executable as a launcher.
pub const LAUNCH: &str = "launch";

/// No recipe is longer.
pub const RECIPE_MAX: usize = 8 << 20;

/// The file of a control group that its launcher holds a lock on while it lives.
pub const GROUP_LOCK: &str = "cgroup.procs";

/// The folder inside that has the guest and the runtime of tools.
pub const GUEST_FOLDER: &str = "/.runner-guest";

/// Everything that a launcher needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// By which right namespaces are made.
    pub right: Right,
    /// The user inside.
    pub uid: u32,
    /// The group inside.
    pub gid: u32,
    /// Whether files of the host's user 0 are shown in overlays as files of the user inside.
    pub id_map: bool,
    /// The group that the launcher was put into by systemd, if it was. It divides it first.
    pub scope: Option<Scope>,
    /// Control groups that the sandbox lives in. The launcher makes them, and removes them at the end.
    pub groups: Vec<Group>,
    /// How many processors the sandbox may use, if no control group says it.
    pub processors: Option<u32>,
    /// The folder with the guest, shown at [`GUEST_FOLDER`].
    pub guest: Source,
    /// Everything else that is mounted, a parent before what lies below it.
    pub mounts: Vec<LaunchMount>,
    /// Limits of every process: the number of the resource, the soft and the hard figure.
    pub rlimits: Vec<(u32, u64, u64)>,
    /// Whether Landlock closes the root once more.
    pub landlock: bool,
    /// Whether the guest listens at ports below 1024, for a call with a network.
    #[serde(default)]
    pub low_ports: bool,
    /// The system call filter: instructions as the kernel takes them.
    pub filter: Bytes,
    /// How readily the kernel ends the sandbox when memory runs out.
    pub oom_score: i32,
    /// The guest's arguments.
    pub arguments: Vec<String>,
    /// Whether standard error is closed once the guest runs: its end without a word tells so. What the guest itself writes
    /// there is lost.
    pub tells_start: bool,
}

/// A group of version 2 that has the launcher and nothing else, and is its to divide.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scope {
    /// Its folder, absolute.
    pub folder: Bytes,
    /// The controllers that groups in it need.
    pub controllers: Vec<String>,
}

/// One control group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// Its folder, absolute. The folder above it is there.
    pub folder: Bytes,
    /// How a process gets into it.
    pub join: Join,
    /// What is written into which of its files, in order.
    pub files: Vec<GroupFile>,
    /// Where the folder is shown inside, read-only.
    pub target: Bytes,
}

/// How a process gets into a control group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Join {
    /// It is moved: version 1.
    Move,
    /// It is made there: version 2, where moving costs more.
    Birth,
}

/// A file of a control group, and what is written into it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupFile {
    /// Its name.
    pub name: String,
    /// What is written.
    pub value: String,
    /// Whether a kernel may lack the file.
    pub optional: bool,
}

/// By which right namespaces are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Right {
    /// The caller may: user and group inside are the same outside.
    Capable,
    /// In a user namespace, in which one user and one group are mapped to those of the caller.
    User,
}

/// A file or folder of the host, and what must be found there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// Absolute; the last part is not a symlink.
    pub path: Bytes,
    /// Device and inode; none if any will do, because it was made for this sandbox.
    pub identity: Option<(u64, u64)>,
}

/// One mount.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum LaunchMount {
    /// A file or folder of the host, read-only.
    Bind {
        /// On the host.
        source: Source,
        /// Inside.
        target: Bytes,
    },
    /// Layers over each other, the topmost first.
    Overlay {
        /// Layers that are only read.
        layers: Vec<Source>,
        /// The folder that has `upper` and `work`, if it can be written.
        stage: Option<Source>,
        /// Inside.
        target: Bytes,
    },
    /// A folder in memory.
    Tmpfs {
        /// Inside.
        target: Bytes,
        /// Bytes.
        size: u64,
        /// Files.
        inodes: u64,
        /// Owner.
        uid: u32,
        /// Group.
        gid: u32,
        /// Permission bits.
        mode: u32,
        /// Whether programs in it can be started.
        exec: bool,
    },
}

/// Why there is no sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LaunchFailure {
    /// What was tried.
    pub step: LaunchStep,
    /// At which path or with which name, if at one.
    pub object: Option<Bytes>,
    /// The kernel's error number; none if it was not the kernel that refused.
    pub errno: Option<i32>,
}

/// A step of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LaunchStep {
    /// The recipe could not be read.
    Recipe,
    /// Making a user namespace.
    UserNamespace,
    /// Mapping the user and group of a user namespace.
    UserMap,
    /// Making a namespace of another kind.
    Namespace,
    /// Making the first process.
    Process,
    /// Making a control group, setting its limits, or joining it.
    Group,
    /// Choosing processors.
    Processors,
    /// Bringing the loopback device up.
    Loopback,
    /// Making the root file system.
    Root,
    /// Opening a source.
    Open,
    /// Another file or folder is at a source than was planned.
    Replaced,
    /// Mounting a file or folder of the host.
    Bind,
    /// Mapping the owners of a layer.
    IdMap,
    /// Mounting an overlay.
    Overlay,
    /// Mounting a folder in memory.
    Tmpfs,
    /// Mounting procfs.
    Proc,
    /// Making `/dev`.
    Devices,
    /// Changing to the new root.
    Pivot,
    /// Setting a limit.
    Limit,
    /// Becoming the user inside.
    User,
    /// Dropping capabilities.
    Capabilities,
    /// Closing the root with Landlock.
    Landlock,
    /// Forbidding new privileges, or installing the system call filter.
    Filter,
    /// Starting the guest.
    Exec,
}
