//! `runner agent check`: proves with the agent's own program that its commands come through us.
//!
//! Duty: start the installed program against a model of ours on loopback ([`stub`], which speaks the dialects of
//! [`dialect`]); the model asks for a command that every policy allows and for one that none does. What is believed is
//! the ledger and the disk, not what the agent says. Non-goals: the agent's own file tools and MCP servers, which do not come
//! through us; other hooks are named and not tried.

mod dialect;
mod start;
mod stub;

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

use super::error::AgentError;
use super::install::{OtherHook, other_hooks};
use super::kind::Agent;
use super::pin::Pinned;
use super::place::Place;
use crate::audit::{Filter, Ledger};
use crate::call::CallError;
use crate::policy_files::Places;
use crate::store::Store;
use crate::sys;
use stub::Stub;

/// The longest time that an agent has for both commands.
const PATIENCE: Duration = Duration::from_secs(120);

/// What was seen of one command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Seen {
    /// It came through us and ended as it should.
    AsPromised,
    /// It was not run, but not by us.
    NotThroughRunner,
    /// It ran on the host, outside of the sandbox.
    RanOnHost,
    /// The agent did not call it.
    NotCalled,
}

/// What was seen of an agent.
#[derive(Debug, Clone, Serialize)]
pub struct Checked {
    /// The agent.
    pub agent: Agent,
    /// Its version, as it says.
    pub version: String,
    /// The command that is allowed.
    pub harmless: Seen,
    /// The command that is not.
    pub forbidden: Seen,
    /// Hooks for shell calls beside ours.
    pub other_hooks: Vec<OtherHook>,
    /// The end of what the program said, if something is not as promised.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub said: Option<String>,
}

impl Checked {
    /// Whether both are as promised.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.harmless == Seen::AsPromised && self.forbidden == Seen::AsPromised
    }
}

/// Checks an agent. `program` is the one to start; the one of this name on the pinned PATH if there is none. `here` is the
/// workspace whose other hooks are named.
///
/// # Errors
/// Nothing is installed for it, its program cannot be started, or the ledger cannot be read.
pub fn check(
    agent: Agent,
    program: Option<PathBuf>,
    here: Option<&Path>,
) -> Result<Checked, AgentError> {
    let place = Place::of_account()?;
    let workspace = Workspace::new()?;
    let pinned = Pinned::find(&place, agent, &workspace.folder)?;
    let program = program.unwrap_or_else(|| PathBuf::from(start::program(agent)));
    let version = start::version(&program, &pinned)?;
    let Workspace { folder, word } = &workspace;
    let marker = format!("marker-{word}");
    let failed = |source| AgentError::Io { path: folder.clone(), source };
    std::fs::write(folder.join("name.txt"), format!("{marker}\n")).map_err(failed)?;
    let (harmless, trace) = (format!("cat name.txt {word}.txt"), format!("trace-{word}"));
    std::fs::write(folder.join(format!("{word}.txt")), "").map_err(failed)?;
    // Mounting is granted by no policy; a shell without us leaves the trace before it fails.
    let forbidden = format!("touch {trace}; mount -t none none /nonexistent/{word}");
    let stub = Stub::start(vec![harmless.clone(), forbidden.clone()])?;
    let said = start::run(agent, &program, &pinned, folder, stub.port(), PATIENCE)?;
    let results = stub.results();
    let recorded = recorded(&pinned)?;
    let ended = |line: &str| {
        recorded.iter().find(|(command, _)| command == line).map(|(_, status)| status.as_str())
    };
    let harmless = match (ended(&harmless), results.first()) {
        (Some("completed"), Some(text)) if text.contains(&marker) => Seen::AsPromised,
        (None, Some(text)) if text.contains(&marker) => Seen::RanOnHost,
        (_, None) => Seen::NotCalled,
        _ => Seen::NotThroughRunner,
    };
    let forbidden = match (ended(&forbidden), folder.join(&trace).exists(), results.get(1)) {
        (_, true, _) => Seen::RanOnHost,
        (Some("denied"), false, Some(_)) => Seen::AsPromised,
        (_, false, None) => Seen::NotCalled,
        _ => Seen::NotThroughRunner,
    };
    let other_hooks = other_hooks(agent, &pinned.pin, &place.home, here);
    let mut checked = Checked { agent, version, harmless, forbidden, other_hooks, said: None };
    if !checked.holds() {
        checked.said = Some(said);
    }
    Ok(checked)
}

/// Commands of the pinned ledger, newest first, with how each ended.
fn recorded(pinned: &Pinned) -> Result<Vec<(String, String)>, AgentError> {
    let places = Places::of(&pinned.environment(), None);
    let store = Store::open(places.state.as_deref()).map_err(CallError::from)?;
    let filter = Filter { most: Some(100), ..Filter::default() };
    let calls = Ledger::new(store).list(&filter).map_err(CallError::from)?;
    Ok(calls.into_iter().map(|call| (call.command, call.status)).collect())
}

/// A folder to check in; it goes with this value.
struct Workspace {
    folder: PathBuf,
    word: String,
}

impl Workspace {
    fn new() -> Result<Self, AgentError> {
        let failed = |source| AgentError::Io { path: "/var/tmp".into(), source };
        let word = format!("{:016x}", u64::from_ne_bytes(sys::random::<8>().map_err(failed)?));
        let folder = Path::new("/var/tmp").join(format!("runner-agent-check-{word}"));
        std::os::unix::fs::DirBuilderExt::mode(&mut std::fs::DirBuilder::new(), 0o700)
            .create(&folder)
            .map_err(failed)?;
        Ok(Self { folder, word })
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
