//! What is installed where, what is pinned, and whether it is still as it was.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::error::AgentError;
use super::install::{Intact, OtherHook, intact, other_hooks};
use super::kind::{Agent, Layer};
use super::pin::{self, Prompts};
use super::place::Place;

/// One installation.
#[derive(Debug, Clone, Serialize)]
pub struct Standing {
    /// The agent.
    pub agent: Agent,
    /// The layer.
    pub layer: Layer,
    /// The workspace of a project's layer.
    pub workspace: Option<PathBuf>,
    /// The pinned policy; the configuration's default if there is none.
    pub policy: Option<String>,
    /// The pinned engine.
    pub engine: Option<String>,
    /// What becomes of the agent's prompts.
    pub prompts: Prompts,
    /// This program, as the hook calls it.
    pub program: PathBuf,
    /// Whether that program is there.
    pub program_there: bool,
    /// The agent's files, and what became of our entries in them.
    pub files: Vec<(PathBuf, Intact)>,
    /// Hooks for shell calls beside ours, which can change a command after ours did.
    pub other_hooks: Vec<OtherHook>,
    /// When it was installed.
    pub at: String,
}

/// Every installation of these agents, with the other hooks of the workspace `here`.
///
/// # Errors
/// A file of pins cannot be believed.
pub fn standing(
    place: &Place,
    agents: &[Agent],
    here: Option<&Path>,
) -> Result<Vec<Standing>, AgentError> {
    let mut all = Vec::new();
    for agent in agents.iter().copied() {
        for layer in [Layer::Managed, Layer::User] {
            for pin in pin::read(place, agent, layer)? {
                let files = pin
                    .files
                    .iter()
                    .map(|edited| (edited.path.clone(), intact(agent, &pin, edited)));
                let other_hooks = other_hooks(agent, &pin, &place.home, here);
                all.push(Standing {
                    agent,
                    layer: pin.layer,
                    files: files.collect(),
                    other_hooks,
                    program_there: pin.program.is_file(),
                    workspace: pin.workspace,
                    policy: pin.policy,
                    engine: pin.engine,
                    prompts: pin.prompts,
                    program: pin.program,
                    at: pin.at,
                });
            }
        }
    }
    Ok(all)
}
