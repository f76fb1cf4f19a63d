//! The shape of an engine.
//!
//! ```text
//! probe -> prepare -> line -> create -> attach -> start -> (wire) -> end by itself
//!                                |                                     |
//!                                +--------- remove, by id or call <----+  watchdog, sweep
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;

use futures_util::Stream;
use serde::{Deserialize, Serialize};
use tokio::io::AsyncWrite;

use super::docker::Line;
use super::error::EngineError;
use super::label::Labels;
use crate::engine::plan::ImageFacts;
use crate::engine::plan::{Image, SandboxPlan};
use crate::ids::CallId;

/// A future that can be kept in a trait object.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What makes sandboxes.
pub trait Engine: Send + Sync {
    /// Its name in policies and results.
    fn name(&self) -> &'static str;

    /// Where it is reached, for messages and for the watchdog.
    fn endpoint(&self) -> &str;

    /// What it is and what it can enforce.
    fn probe(&self) -> BoxFuture<'_, Result<Facts, EngineError>>;

    /// The same, asked again: before something is refused because it was not there once.
    fn probe_anew(&self) -> BoxFuture<'_, Result<Facts, EngineError>>;

    /// Whether it mounts from the file system that this process sees; proved, never guessed.
    fn sees_our_files(&self) -> BoxFuture<'_, Result<FileSystem, EngineError>>;

    /// Makes the image ready and resolves it to what cannot change.
    fn prepare<'a>(&'a self, image: &'a Image) -> BoxFuture<'a, Result<Prepared, EngineError>>;

    /// What the engine would be asked to make, in its own words, without making it.
    fn describe<'a>(
        &'a self,
        plan: &'a SandboxPlan,
    ) -> BoxFuture<'a, Result<serde_json::Value, EngineError>>;

    /// Opens a connection of its own to ask for a sandbox. Who holds a copy of it sees when the engine is done with
    /// that, whatever happens to the one who asks.
    fn line(&self) -> BoxFuture<'_, Result<Line, EngineError>>;

    /// Makes a sandbox that does not run yet; the guest is started with `arguments`.
    fn create<'a>(
        &'a self,
        line: Line,
        plan: &'a SandboxPlan,
        prepared: &'a Prepared,
        labels: &'a Labels,
        arguments: &'a [String],
    ) -> BoxFuture<'a, Result<SandboxId, EngineError>>;

    /// Connects to the guest's standard streams. Before the start: a guest's early word may be lost.
    fn attach<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<Attached, EngineError>>;

    /// Starts the guest.
    fn start<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<(), EngineError>>;

    /// Ends and removes a sandbox in any state; one that is gone is no error.
    fn remove<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<(), EngineError>>;

    /// Every sandbox of this program, of one call or of all.
    fn list<'a>(
        &'a self,
        call: Option<&'a CallId>,
    ) -> BoxFuture<'a, Result<Vec<Found>, EngineError>>;
}

/// What an engine is and can do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// Its own identity, which survives restarts.
    pub id: String,
    /// Its version, for people.
    pub version: String,
    /// The version of its protocol that is spoken.
    pub api: String,
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
    /// Limits that its machine cannot enforce; empty is good.
    pub unenforced: Vec<String>,
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

/// An image that is there and cannot change any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prepared {
    /// What sandboxes are made from.
    pub image: String,
    /// Its content digest, for results.
    pub digest: String,
    /// How the guest gets in.
    pub guest: super::docker::settings::GuestDelivery,
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

/// The guest's standard streams.
pub struct Attached {
    /// What the guest writes.
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
