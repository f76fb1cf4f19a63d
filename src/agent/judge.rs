//! From a pin and a line to a decided call: the same for the hook and for what it rewrote.

use std::path::{Path, PathBuf};

use runner_policy::model::Writes;

use super::error::AgentError;
use super::kind::Agent;
use super::pin::Pinned;
use super::place::Place;
use super::quote::quoted;
use super::session::Memory;
use crate::call::{Command, Context, Decided, OnHeld, Request, Variables, Warmth};
use crate::caller::{Caller, Credential, Front};
use crate::config;
use crate::policy_files::Places;
use crate::workspace::Workspace;

/// What an agent wants to run.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// The agent.
    pub agent: Agent,
    /// Its session, or nothing.
    pub session: &'a str,
    /// The folder of the call, as the agent starts it.
    pub start: &'a Path,
    /// The line.
    pub line: &'a str,
}

/// A call that was decided, with what its session remembers.
#[derive(Debug)]
pub struct Judged {
    /// The call.
    pub decided: Decided,
    /// The workspace of the agent.
    pub workspace: PathBuf,
    /// What the session remembers.
    pub memory: Memory,
    /// What the model should know of its session.
    pub notes: Vec<String>,
}

impl Wanted<'_> {
    /// Decides it.
    ///
    /// # Errors
    /// There is no workspace, or no policy that can decide.
    pub fn judge(&self, place: &Place, pinned: &Pinned) -> Result<Judged, AgentError> {
        let environment = pinned.environment();
        let workspace = Workspace::find(Some(self.start), &environment)?;
        let root = workspace.root().to_owned();
        holds_nothing_of_ours(&root, place)?;
        let mut memory = Memory::recall(place, self.agent, self.session, &root)?;
        let mut notes = Vec::new();
        let folder = memory.folder(&workspace, self.start, &mut notes);
        let exported = !memory.exports.is_empty();
        let line = match exported {
            true => format!("{}\n{}", memory.exports_line(), self.line),
            false => self.line.to_owned(),
        };
        let mut decided = self.decide(pinned, line, &root, &folder)?;
        if exported && decided.decision.code == runner_policy::Code::EnvDenied {
            let alone = self.decide(pinned, self.line.to_owned(), &root, &folder)?;
            if alone.decision.code != runner_policy::Code::EnvDenied {
                memory.exports.clear();
                let note = "exported variables of this session are forgotten: the policy does not accept them";
                notes.push(note.to_owned());
                decided = alone;
            }
        }
        Ok(Judged { decided, workspace: root, memory, notes })
    }

    fn decide(
        &self,
        pinned: &Pinned,
        line: String,
        root: &Path,
        folder: &Path,
    ) -> Result<Decided, AgentError> {
        let environment = pinned.environment();
        let workspace = Workspace::open_at(root, folder, &environment)?;
        let places = Places::of(&environment, Some(root));
        let config = std::sync::Arc::new(config::load(&places)?);
        let request = Request {
            command: Command::Line(line),
            cwd: Some(folder.to_owned()),
            policy: pinned.choice()?,
            image: None,
            engine: pinned.engine()?,
            tighten: Vec::new(),
            warmth: Warmth::Pool,
            variables: Variables::Told,
            writes: Writes::default(),
            on_held: OnHeld::Tell,
        };
        let context = Context::new(caller(self.agent, self.session), environment);
        Ok(request.decide_at(workspace, places, config, &context)?)
    }
}

/// The caller: an agent's session is told from others by what its tickets prove.
fn caller(agent: Agent, session: &str) -> Caller {
    let credential = match session {
        "" => Credential::Terminal(None),
        session => Credential::Token(format!("{}:{session}", agent.word())),
    };
    Caller {
        uid: rustix::process::getuid().as_raw(),
        front: Front::Hook,
        credential,
        claimed: Some(agent.title().to_owned()),
    }
}

/// Refuses a workspace in which a command could change pins.
fn holds_nothing_of_ours(root: &Path, place: &Place) -> Result<(), AgentError> {
    for folder in [&place.folder, &place.managed] {
        let real = folder.canonicalize().unwrap_or_else(|_| folder.clone());
        if real.starts_with(root) || root.starts_with(&real) {
            return Err(AgentError::Unsafe(folder.clone()));
        }
    }
    Ok(())
}

/// `export` of variables, as it would have been typed.
pub(super) fn export_line(exports: &[(String, String)]) -> String {
    let words: Vec<String> =
        exports.iter().map(|(name, value)| format!("{name}={}", quoted(value))).collect();
    format!("export {}", words.join(" "))
}
