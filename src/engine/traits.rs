//! The shape of an engine.
//!
//! ```text
//! probe -> prepare -> launch ------------> (wire) -> end by itself
//!             |          |                    |
//!             |          +-- remove, by id <--+  the caller, its watchdog, a sweep
//!             |                               |
//!             +-> park  (waits)  attach ------+
//! ```
//!
//! An implementation may have a daemon or none, and one step or several from a plan to a guest that runs: what is asked
//! here is the result.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::time::Duration;

use futures_util::Stream;
use serde::{Deserialize, Serialize};
use tokio::io::AsyncWrite;

use super::address::Address;
use super::error::EngineError;
use super::holders::Holders;
use super::label::Labels;
use super::lifeline::Lifeline;
use super::plan::{Image, ImageFacts, SandboxPlan};
use crate::ids::CallId;

/// A future that can be kept in a trait object.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Whether something with these labels should be gone.
pub type LeftOver<'a> = &'a (dyn Fn(&BTreeMap<String, String>) -> bool + Send + Sync);

/// What makes sandboxes.
pub trait Engine: Send + Sync {
    /// Which engine it is, and where another process reaches it.
    fn address(&self) -> &Address;

    /// Its name in policies and results.
    fn name(&self) -> &'static str {
        self.address().engine().as_str()
    }

    /// Stands for all that makes a sandbox from a plan and is part of this program: the guest, the runtime of tools, the
    /// system call filter and the engine's own code. A sandbox that another build has made is another sandbox.
    fn recipe(&self) -> &'static str;

    /// How long its sandboxes live.
    fn life(&self) -> Life;

    /// Which of its sandboxes may wait for a call.
    fn waits(&self) -> Waits;

    /// What it is and what it can enforce.
    fn probe(&self) -> BoxFuture<'_, Result<Facts, EngineError>>;

    /// The same, asked again: before something is refused because it was not there once.
    fn probe_anew(&self) -> BoxFuture<'_, Result<Facts, EngineError>>;

    /// The programs that it is made of, with their versions; none for one that is part of this program.
    fn parts(&self) -> BoxFuture<'_, Result<Vec<Part>, EngineError>>;

    /// Whether it mounts from the file system that this process sees; proved, never guessed.
    fn sees_our_files(&self) -> BoxFuture<'_, Result<FileSystem, EngineError>>;

    /// Makes the image ready and resolves it to what cannot change.
    fn prepare<'a>(&'a self, image: &'a Image) -> BoxFuture<'a, Result<Prepared, EngineError>>;

    /// What the engine would be asked to make, in its own words, without making it.
    fn describe<'a>(
        &'a self,
        plan: &'a SandboxPlan,
    ) -> BoxFuture<'a, Result<serde_json::Value, EngineError>>;

    /// Makes a sandbox for a call, and starts its guest. It returns once the guest's streams are connected: the guest may
    /// still be starting, so that the caller's first message travels meanwhile. That a start failed is told by
    /// [`Attached::output`]. The lifeline hears of what could outlive this process, before it is begun.
    ///
    /// A launch that fails leaves no sandbox, or one that the engine cannot remove either.
    fn launch<'a>(
        &'a self,
        spec: Spec<'a>,
        lifeline: &'a mut dyn Lifeline,
    ) -> BoxFuture<'a, Result<Connected, EngineError>>;

    /// Makes a sandbox whose guest runs and waits for [`attach`](Self::attach), also after this process has ended.
    ///
    /// A failure leaves no sandbox, or one that the engine cannot remove either. If this process dies on the way, the
    /// sandbox is found by its labels.
    fn park<'a>(
        &'a self,
        spec: Spec<'a>,
        hold: Hold<'a>,
    ) -> BoxFuture<'a, Result<SandboxId, EngineError>>;

    /// Connects to the guest of a sandbox that waits, by its label: what else a file says of it is not trusted.
    fn attach<'a>(&'a self, label: &'a CallId) -> BoxFuture<'a, Result<Connected, EngineError>>;

    /// Ends and removes a sandbox in any state; one that is gone is no error.
    fn remove<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<(), EngineError>>;

    /// Removes what sandboxes that are gone left in the engine beside themselves, if its labels say so; how many.
    fn remove_remains<'a>(
        &'a self,
        left: LeftOver<'a>,
    ) -> BoxFuture<'a, Result<usize, EngineError>>;

    /// Every sandbox of this program, of one call or of all.
    fn list<'a>(
        &'a self,
        call: Option<&'a CallId>,
    ) -> BoxFuture<'a, Result<Vec<Found>, EngineError>>;
}

/// How long the sandboxes of an engine live.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Life {
    /// A daemon has them: one may outlive the process that asked for it, and may wait for a call.
    Daemon,
    /// They end with the process that uses them: the one that made them, or that took them when they waited.
    Ours,
}

/// Which sandboxes of an engine may wait for a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waits {
    /// All.
    All,
    /// Those in which a program was started ahead. The sandbox itself is made in the time that taking one would cost.
    Started,
    /// None: what limits them cannot be handed over.
    None,
}

/// What a sandbox that waits needs besides.
#[derive(Debug, Clone, Copy)]
pub struct Hold<'a> {
    /// This program, for an engine that has no other process to hold it.
    pub program: &'a Path,
    /// How long it waits. Its guest, whose arguments say the same, ends by itself then.
    pub wait: Duration,
}

/// What an engine is and can do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// Its own identity, which survives restarts.
    pub id: String,
    /// Its version, for people.
    pub version: String,
    /// Processors of its machine.
    pub processors: u32,
    /// How user ids inside relate to those outside.
    pub user_namespace: UserNamespace,
    /// The runtimes that it knows.
    pub runtimes: Vec<String>,
    /// The version of control groups, 1 or 2.
    pub cgroup: u8,
    /// Whether it applies system call filters.
    pub seccomp: bool,
    /// What holds the limits that are about a sandbox as a whole.
    pub holders: Holders,
    /// Whether Landlock closes its sandboxes once more.
    pub landlock: bool,
}

/// A program that an engine is made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Part {
    /// Its name: `containerd`, `runc`, …
    pub name: String,
    /// Its version, as it says it.
    pub version: String,
}

/// How user ids inside relate to those outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum UserNamespace {
    /// They are the same.
    Host,
    /// The engine runs as the caller; 0 inside is the caller.
    Rootless,
    /// The engine maps them to others.
    Remapped,
    /// They are the same, and the engine can show root's files as those of another user.
    Swapped,
    /// One user inside is the caller, whatever its number; there is no other.
    Single,
}

/// Whether an engine mounts from the file system that this process sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileSystem {
    /// The same.
    Ours,
    /// Another machine's, or another view of it.
    Another,
}

/// What a sandbox is made from.
#[derive(Debug, Clone, Copy)]
pub struct Spec<'a> {
    /// The plan.
    pub plan: &'a SandboxPlan,
    /// The plan's image, made ready.
    pub prepared: &'a Prepared,
    /// Whose it is.
    pub labels: &'a Labels,
    /// The guest's arguments.
    pub arguments: &'a [String],
    /// The folder of its stage, for a plan that has one.
    pub stage: Option<&'a Path>,
}

/// An image that is there and cannot change any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prepared {
    /// What sandboxes are made from, as the engine names it.
    pub image: String,
    /// Its content digest, for results.
    pub digest: String,
    /// What the image itself says; nothing for our own.
    pub facts: ImageFacts,
}

/// A sandbox as its engine knows it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SandboxId(String);

impl SandboxId {
    /// An id that the engine gave.
    #[must_use]
    pub fn new(id: String) -> Self {
        Self(id)
    }

    /// As the engine writes it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SandboxId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.get(..12).unwrap_or(&self.0))
    }
}

/// A sandbox to whose guest we are connected.
pub struct Connected {
    /// Its id.
    pub id: SandboxId,
    /// The guest's streams.
    pub attached: Attached,
}

/// The guest's standard streams.
pub struct Attached {
    /// What the guest writes; or why it could not be started.
    pub output: Pin<Box<dyn Stream<Item = Result<Chunk, EngineError>> + Send>>,
    /// What the guest reads; dropping both ends the guest.
    pub input: Pin<Box<dyn AsyncWrite + Send>>,
}

/// A piece of what a guest wrote.
#[derive(Debug)]
pub enum Chunk {
    /// Bytes of the wire: its standard output.
    Wire(Vec<u8>),
    /// Its standard error: nothing, unless it is broken.
    Noise(Vec<u8>),
}

/// A sandbox of ours that exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Its id.
    pub id: SandboxId,
    /// Its labels as found; only ours are kept.
    pub labels: BTreeMap<String, String>,
    /// What it does.
    pub state: State,
}

/// What a sandbox does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It was made and never started.
    Created,
    /// It runs.
    Running,
    /// It is on its way out.
    Ending,
}
