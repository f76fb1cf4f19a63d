//! What holds for an agent's calls: written at install, read by every hook and every wrapped line.
//!
//! Duty: one file an agent, with an entry for each layer that it was installed in. The managed file counts before the
//! user's, and the entry of the nearest workspace before the user's general one. Trust boundary: nothing that an agent's
//! configuration holds names a pin or a part of one, so that of a repository cannot choose among them; a file that
//! another user can write is refused.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::error::AgentError;
use super::kind::{Agent, Layer};
use super::place::{Place, make_folder, read_own, write_own};
use crate::engine;
use crate::environment::Environment;
use crate::json::{self, Limits};
use crate::policy_files::{Choice, ChoiceError};

/// The format of the file.
const VERSION: u32 = 1;

/// The variables that are pinned: they lead to policies, records, programs and engines. No call of an agent reads any of
/// the agent's own.
pub const VARIABLES: [&str; 14] = [
    "HOME",
    "PATH",
    "XDG_CONFIG_HOME",
    "XDG_STATE_HOME",
    "XDG_CACHE_HOME",
    "XDG_RUNTIME_DIR",
    "DOCKER_HOST",
    "RUSTUP_HOME",
    "CARGO_HOME",
    "LANG",
    "LC_ALL",
    "TZ",
    "USER",
    "LOGNAME",
];

/// What becomes of the agent's own prompt for shell calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Prompts {
    /// The policy decides in its place.
    #[default]
    Replace,
    /// The agent asks as it did before.
    Keep,
}

/// A file of the agent that installing changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Edited {
    /// Which.
    pub path: PathBuf,
    /// Its text before; `None` if there was none.
    pub before: Option<String>,
    /// The digest of its text after.
    pub after: String,
    /// The rules for file tools that were put into it.
    pub rules: Vec<String>,
}

/// One entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pin {
    /// The layer of the agent's configuration.
    pub layer: Layer,
    /// The workspace, for the layer of a project.
    pub workspace: Option<PathBuf>,
    /// The policy; the configuration's default if there is none.
    pub policy: Option<String>,
    /// The engine; the configuration's if there is none.
    pub engine: Option<String>,
    /// What becomes of the agent's prompt.
    pub prompts: Prompts,
    /// The absolute path of this program.
    pub program: PathBuf,
    /// The variables of the person who installed it.
    pub variables: BTreeMap<String, String>,
    /// The agent's files that were changed.
    pub files: Vec<Edited>,
    /// When.
    pub at: String,
}

/// The file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Pins {
    version: u32,
    agent: Agent,
    pins: Vec<Pin>,
}

/// A pin that holds, and whose it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pinned {
    /// The agent.
    pub agent: Agent,
    /// The entry.
    pub pin: Pin,
    /// The home of the account.
    home: PathBuf,
}

impl Pinned {
    /// The pin of an agent that works in this folder.
    ///
    /// # Errors
    /// There is none, or a file of pins cannot be believed.
    pub fn find(place: &Place, agent: Agent, cwd: &Path) -> Result<Self, AgentError> {
        let pinned = |pin| Self { agent, pin, home: place.home.clone() };
        if let Some(pin) = read(place, agent, Layer::Managed)?.into_iter().next() {
            return Ok(pinned(pin));
        }
        let pins = read(place, agent, Layer::User)?;
        let here = pins.iter().filter(|pin| {
            pin.workspace.as_ref().is_none_or(|workspace| cwd.starts_with(workspace))
        });
        // The deepest workspace; the user's general pin is the one without.
        let depth = |pin: &&Pin| pin.workspace.as_ref().map_or(0, |it| it.components().count());
        here.max_by_key(depth).cloned().map(pinned).ok_or(AgentError::NotInstalled(agent))
    }

    /// The environment of its calls: the pinned variables and no others.
    #[must_use]
    pub fn environment(&self) -> Environment {
        let mut variables = self.pin.variables.clone();
        if self.pin.layer == Layer::Managed {
            // One pin for every account: each has its own folders, where the specification puts them.
            variables.retain(|name, _| name != "HOME" && !name.starts_with("XDG_"));
            variables.insert("HOME".to_owned(), self.home.to_string_lossy().into_owned());
        }
        variables.into_iter().collect()
    }

    /// The policy.
    ///
    /// # Errors
    /// It is neither a name nor a path.
    pub fn choice(&self) -> Result<Choice, AgentError> {
        let Some(policy) = &self.pin.policy else { return Ok(Choice::Default) };
        policy.parse().map_err(|error: ChoiceError| self.wrong(&error))
    }

    /// The engine, if one is pinned.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn engine(&self) -> Result<Option<engine::Choice>, AgentError> {
        let parsed = self.pin.engine.as_deref().map(str::parse::<engine::Choice>);
        parsed.transpose().map_err(|error| self.wrong(&error))
    }

    fn wrong(&self, what: &impl ToString) -> AgentError {
        AgentError::Pin { agent: self.agent, what: what.to_string() }
    }
}

/// The file of a layer.
#[must_use]
pub fn file(place: &Place, agent: Agent, layer: Layer) -> PathBuf {
    let folder = match layer {
        Layer::Managed => &place.managed,
        Layer::User | Layer::Project => &place.folder,
    };
    folder.join(format!("{}.json", agent.word()))
}

/// Who may have written it.
fn owner(layer: Layer) -> u32 {
    match layer {
        Layer::Managed => 0,
        Layer::User | Layer::Project => rustix::process::getuid().as_raw(),
    }
}

/// All pins of a layer's file.
///
/// # Errors
/// The file cannot be read or believed.
pub fn read(place: &Place, agent: Agent, layer: Layer) -> Result<Vec<Pin>, AgentError> {
    let path = file(place, agent, layer);
    let Some(bytes) = read_own(&path, owner(layer))? else { return Ok(Vec::new()) };
    let damaged = |why: String| AgentError::Damaged { path: path.clone(), why };
    let pins: Pins =
        json::read_as(&bytes, Limits::USUAL).map_err(|error| damaged(error.to_string()))?;
    if pins.version != VERSION {
        return Err(damaged(format!("version {} is not {VERSION}", pins.version)));
    }
    if pins.agent != agent {
        return Err(damaged(format!("it is about {}", pins.agent.title())));
    }
    let managed = |pin: &Pin| (pin.layer == Layer::Managed) == (layer == Layer::Managed);
    match pins.pins.iter().all(managed) {
        true => Ok(pins.pins),
        false => Err(damaged("a pin of another layer is in it".to_owned())),
    }
}

/// Writes all pins of a layer's file; none removes it.
///
/// # Errors
/// It cannot be written.
pub fn write(place: &Place, agent: Agent, layer: Layer, pins: Vec<Pin>) -> Result<(), AgentError> {
    let path = file(place, agent, layer);
    if pins.is_empty() {
        return match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(AgentError::Io { path, source: error })
            }
            _ => Ok(()),
        };
    }
    let mode = match layer {
        Layer::Managed => {
            let failed = |source| AgentError::Io { path: place.managed.clone(), source };
            std::fs::create_dir_all(&place.managed).map_err(failed)?;
            0o644
        }
        Layer::User | Layer::Project => {
            make_folder(&place.folder)?;
            0o600
        }
    };
    let pins = Pins { version: VERSION, agent, pins };
    let text = serde_json::to_vec_pretty(&pins)
        .map_err(|error| AgentError::Damaged { path: path.clone(), why: error.to_string() })?;
    write_own(&path, &text, mode)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pin(layer: Layer, workspace: Option<&str>, policy: &str) -> Pin {
        Pin {
            layer,
            workspace: workspace.map(PathBuf::from),
            policy: Some(policy.to_owned()),
            engine: None,
            prompts: Prompts::Replace,
            program: "/usr/bin/runner".into(),
            variables: [("HOME", "/h"), ("PATH", "/p"), ("XDG_STATE_HOME", "/s")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
            files: Vec::new(),
            at: "2026-11-20T00:00:00Z".to_owned(),
        }
    }

    #[test]
    fn the_nearest_workspace_has_the_say_and_no_pin_is_a_refusal() {
        let folder = tempfile::tempdir().unwrap();
        let place = Place {
            home: folder.path().to_owned(),
            folder: folder.path().join("agents"),
            managed: folder.path().join("etc"),
        };
        let find = |cwd: &str| Pinned::find(&place, Agent::Claude, Path::new(cwd));
        assert!(matches!(find("/w"), Err(AgentError::NotInstalled(Agent::Claude))));
        let pins = vec![
            pin(Layer::Project, Some("/w"), "develop"),
            pin(Layer::User, None, "readonly"),
            pin(Layer::Project, Some("/w/inner"), "edit"),
        ];
        write(&place, Agent::Claude, Layer::User, pins).unwrap();
        let policy = |cwd: &str| find(cwd).unwrap().pin.policy.unwrap();
        assert_eq!([policy("/w/a"), policy("/w/inner/b")], ["develop", "edit"]);
        // A folder whose name begins alike is another.
        assert_eq!([policy("/w2"), policy("/")], ["readonly", "readonly"]);
        assert!(Pinned::find(&place, Agent::Codex, Path::new("/w")).is_err());
        write(&place, Agent::Claude, Layer::User, Vec::new()).unwrap();
        assert!(find("/w").is_err());
    }

    #[test]
    fn a_managed_pin_has_each_account_in_its_own_home() {
        let pinned = |layer| Pinned {
            agent: Agent::Claude,
            pin: pin(layer, None, "readonly"),
            home: "/home/ann".into(),
        };
        let user = pinned(Layer::User).environment();
        assert_eq!(user.get("XDG_STATE_HOME"), Some("/s".into()));
        let managed = pinned(Layer::Managed).environment();
        assert_eq!(managed.home(), Some("/home/ann".into()));
        assert_eq!((managed.get("XDG_STATE_HOME"), managed.get("PATH")), (None, Some("/p".into())));
    }
}
