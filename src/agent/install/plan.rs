//! What installing would do.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::edits::{Paths, changes};
use super::files::Change;
use crate::agent::error::AgentError;
use crate::agent::kind::{Agent, Layer};
use crate::agent::pin::{self, Pin, Prompts, VARIABLES};
use crate::agent::place::Place;
use crate::agent::rules::Rules;
use crate::environment::Environment;

/// What a person wants to have installed.
#[derive(Debug, Clone)]
pub struct Request {
    /// The agent.
    pub agent: Agent,
    /// The layer.
    pub layer: Layer,
    /// The workspace of the caller, for the project's layer.
    pub workspace: Option<PathBuf>,
    /// The policy; the configuration's default if there is none.
    pub policy: Option<String>,
    /// The engine; the configuration's if there is none.
    pub engine: Option<String>,
    /// What becomes of the agent's prompts.
    pub prompts: Prompts,
    /// The absolute path of this program.
    pub program: PathBuf,
    /// Rules for the agent's own file tools.
    pub rules: Rules,
}

/// What would be done.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The agent.
    pub agent: Agent,
    /// The pin.
    pub pin: Pin,
    /// The files of the agent that change.
    pub changes: Vec<Change>,
    /// What the person should know before saying yes.
    pub notes: Vec<String>,
}

impl Request {
    /// Plans it. Nothing is written.
    ///
    /// # Errors
    /// It is installed there already, the agent has no such layer, or its configuration is not understood.
    pub fn plan(self, place: &Place, environment: &Environment) -> Result<Plan, AgentError> {
        let workspace = match self.layer {
            Layer::Project => self.workspace.clone(),
            Layer::User | Layer::Managed => None,
        };
        let there = pin::read(place, self.agent, self.layer)?;
        if there.iter().any(|pin| pin.layer == self.layer && pin.workspace == workspace) {
            return Err(AgentError::Installed(self.agent, self.layer));
        }
        let home = environment.home().unwrap_or_else(|| place.home.clone());
        let paths = Paths { home: &home, environment, workspace: workspace.as_deref() };
        let changes = changes(&self, &paths)?;
        let notes = notes(&self, &changes);
        let variables: BTreeMap<String, String> = VARIABLES
            .iter()
            .filter_map(|name| {
                let value = environment.get(name)?.into_string().ok()?;
                Some(((*name).to_owned(), value))
            })
            .collect();
        let pin = Pin {
            layer: self.layer,
            workspace,
            policy: self.policy,
            engine: self.engine,
            prompts: self.prompts,
            program: self.program,
            variables,
            files: changes.iter().map(Change::edited).collect(),
            at: jiff::Timestamp::now().to_string(),
        };
        Ok(Plan { agent: self.agent, pin, changes, notes })
    }
}

impl Plan {
    /// Carries it out: the pin first, so that the hook finds it from its first call on.
    ///
    /// # Errors
    /// A file changed meanwhile, or cannot be written. What was written is put back.
    pub fn carry_out(&self, place: &Place) -> Result<(), AgentError> {
        let (agent, layer) = (self.agent, self.pin.layer);
        let before = pin::read(place, agent, layer)?;
        let mut pins = before.clone();
        pins.push(self.pin.clone());
        pin::write(place, agent, layer, pins)?;
        for (at, change) in self.changes.iter().enumerate() {
            if let Err(error) = change.write() {
                for written in &self.changes[..at] {
                    let _ = super::undo::put_back(&written.edited());
                }
                let _ = pin::write(place, agent, layer, before);
                return Err(error);
            }
        }
        Ok(())
    }
}

/// What a person should know.
fn notes(request: &Request, changes: &[Change]) -> Vec<String> {
    let title = request.agent.title();
    let mut notes = Vec::new();
    match (request.agent.rewrites(), request.prompts) {
        (false, _) => notes.push(format!(
            "{title} takes no rewritten command: what the policy denies or asks about is refused, and what it \
             allows runs on the host, outside of any sandbox"
        )),
        (true, Prompts::Replace) => notes.push(format!(
            "{title} will not ask any more before it runs shell commands: the policy decides; keep its prompts with \
             --keep-prompts"
        )),
        (true, Prompts::Keep) => notes.push(format!("{title} asks before shell commands as before")),
    }
    match request.agent {
        Agent::Claude | Agent::Cursor => {}
        Agent::Copilot => notes.push(format!(
            "{title} runs the original command on the host if the hook takes longer than its limit or another hook \
             breaks its answer"
        )),
        _ => notes.push(format!(
            "{title} has no fail-closed setting: where runner's program is gone or cannot start, commands run on the host"
        )),
    }
    if request.agent == Agent::Cursor {
        notes.push(
            "this form is from Cursor's documentation and was not tried with the program"
                .to_owned(),
        );
    }
    if request.rules.left_out > 0 {
        notes.push(format!(
            "{} patterns of the policy's files.deny cannot be written as rules of {title}; its file tools are not \
             held back there",
            request.rules.left_out
        ));
    }
    if changes.is_empty() {
        notes.push("no file of the agent changes".to_owned());
    }
    notes.push(
        "the agent's own file tools, its MCP servers and its other hooks do not go through runner"
            .to_owned(),
    );
    notes
}
