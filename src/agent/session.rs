//! What persists between the calls of an agent's session: the folder and exported variables.
//!
//! Duty: the state that the agent's own shell would have kept. It is read from the plan of a line that has run: `cd` and
//! `export` with known words, as far as they certainly ran. Nothing is believed of it: the folder is opened anew below
//! the workspace's handle in each call, and variables are judged again as if they had been typed before the line.
//! Non-goal: what a script or a loop changes; a session keeps its folder then.

use std::path::{Component, Path, PathBuf};

use runner_policy::plan::PlannedLine;
use runner_policy::shell::{AndOr, Join, Pipeline};
use serde::{Deserialize, Serialize};

use super::error::AgentError;
use super::judge::export_line;
use super::kind::Agent;
use super::place::{Place, make_folder, read_own, write_own};
use crate::json::{self, Limits};
use crate::workspace::Workspace;

/// The folder of sessions.
const FOLDER: &str = "sessions";
/// Most exported variables.
const EXPORTS_MAX: usize = 64;
/// Most bytes of them.
const BYTES_MAX: usize = 16 << 10;
/// Sessions that are kept; the oldest go first.
const KEPT: usize = 200;

/// What a session remembers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// Where the agent starts its calls.
    start: PathBuf,
    /// Where the last call ended, from the workspace.
    folder: PathBuf,
    /// Exported variables, in order.
    pub(super) exports: Vec<(String, String)>,
    /// Whether a folder was left that cannot be kept.
    left: bool,
}

impl Memory {
    /// That of a session in a workspace.
    ///
    /// # Errors
    /// Its file cannot be believed.
    pub fn recall(
        place: &Place,
        agent: Agent,
        session: &str,
        workspace: &Path,
    ) -> Result<Self, AgentError> {
        let Some(path) = file(place, agent, session, workspace) else { return Ok(Self::default()) };
        let Some(bytes) = read_own(&path, rustix::process::getuid().as_raw())? else {
            return Ok(Self::default());
        };
        json::read_as(&bytes, Limits::USUAL)
            .map_err(|error| AgentError::Damaged { path, why: error.to_string() })
    }

    /// The folder in which a call starts that the agent starts in `start`. A folder that is not there any more, or that a
    /// link leads to, is not entered: the call starts where the agent starts it, and a note says so.
    pub(super) fn folder(
        &mut self,
        workspace: &Workspace,
        start: &Path,
        notes: &mut Vec<String>,
    ) -> PathBuf {
        if self.start.as_os_str().is_empty() {
            self.start = start.to_owned();
            self.folder = relative(workspace.root(), start).unwrap_or_default();
        }
        if self.start != start {
            // The agent names a folder for this call alone.
            return start.to_owned();
        }
        if std::mem::take(&mut self.left) {
            notes.push(
                "the last call ended outside the workspace; this one starts in its root".to_owned(),
            );
            self.folder = PathBuf::new();
        }
        if workspace.open_folder(&self.folder).is_err() {
            let gone = self.folder.display().to_string();
            notes.push(format!(
                "the folder {gone} is not there any more, is a link, or its creation was held back; \
                 this call starts in the workspace's root"
            ));
            self.folder = PathBuf::new();
        }
        workspace.root().join(&self.folder)
    }

    /// `export` of what is remembered.
    pub(super) fn exports_line(&self) -> String {
        export_line(&self.exports)
    }

    /// Takes over what a line did that ran in `folder`.
    pub fn after(&mut self, line: &PlannedLine, succeeded: bool, workspace: &Path, folder: &Path) {
        let mut seen = Seen { folder: folder.to_owned(), exports: Vec::new(), unset: Vec::new() };
        let lists = &line.script().lists;
        for (at, list) in lists.iter().enumerate() {
            seen.list(list, succeeded && at + 1 == lists.len());
        }
        for name in seen.unset {
            self.exports.retain(|(known, _)| *known != name);
        }
        for (name, value) in seen.exports {
            self.exports.retain(|(known, _)| *known != name);
            self.exports.push((name, value));
        }
        let bytes = |all: &[(String, String)]| {
            all.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>()
        };
        while self.exports.len() > EXPORTS_MAX || bytes(&self.exports) > BYTES_MAX {
            self.exports.remove(0);
        }
        if folder == workspace.join(&self.folder) {
            match relative(workspace, &seen.folder) {
                Some(folder) => self.folder = folder,
                None => self.left = true,
            }
        }
    }

    /// Keeps it for the next call.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn keep(
        &self,
        place: &Place,
        agent: Agent,
        session: &str,
        workspace: &Path,
    ) -> Result<(), AgentError> {
        let Some(path) = file(place, agent, session, workspace) else { return Ok(()) };
        let folder = place.folder.join(FOLDER);
        place.make()?;
        make_folder(&folder)?;
        let text = serde_json::to_vec(self)
            .map_err(|error| AgentError::Damaged { path: path.clone(), why: error.to_string() })?;
        write_own(&path, &text, 0o600)?;
        forget_the_oldest(&folder);
        Ok(())
    }
}

/// What a line did, as far as it is certain.
struct Seen {
    folder: PathBuf,
    exports: Vec<(String, String)>,
    unset: Vec<String>,
}

impl Seen {
    /// A list. `all` says that it ended well: then all of `a && b` ran.
    fn list(&mut self, list: &AndOr, all: bool) {
        let joined = list.rest.iter().all(|(join, _)| *join == Join::And);
        let mut certain = self.pipeline(&list.first);
        for (join, pipeline) in &list.rest {
            if *join != Join::And || !(certain || (all && joined)) {
                return;
            }
            certain &= self.pipeline(pipeline);
        }
    }

    /// One command; whether it is one of those that are followed, so that what `&&` joins to it runs too.
    fn pipeline(&mut self, pipeline: &Pipeline) -> bool {
        let [command] = pipeline.commands.as_slice() else { return false };
        let Some(simple) = command.simple().filter(|_| !pipeline.negated) else { return false };
        let words: Option<Vec<&str>> = simple.words.iter().map(|word| word.literal()).collect();
        let Some(words) = words else { return false };
        match words.as_slice() {
            ["cd", folder] => {
                self.folder = joined(&self.folder, Path::new(folder));
                true
            }
            ["export", pairs @ ..] => {
                let pairs = pairs.iter().filter_map(|pair| pair.split_once('='));
                self.exports.extend(pairs.map(|(a, b)| (a.to_owned(), b.to_owned())));
                true
            }
            ["unset", names @ ..] => {
                for name in names {
                    self.exports.retain(|(known, _)| known != name);
                    self.unset.push((*name).to_owned());
                }
                true
            }
            _ => false,
        }
    }
}

/// A path from a folder, with `.` and `..` taken by their names, as `cd` does.
fn joined(folder: &Path, path: &Path) -> PathBuf {
    let mut entered = folder.to_owned();
    for part in path.components() {
        match part {
            Component::RootDir => entered = PathBuf::from("/"),
            Component::ParentDir => {
                entered.pop();
            }
            Component::Normal(name) => entered.push(name),
            Component::CurDir | Component::Prefix(_) => {}
        }
    }
    entered
}

/// A folder from the workspace; `None` outside of it.
fn relative(workspace: &Path, folder: &Path) -> Option<PathBuf> {
    folder.strip_prefix(workspace).ok().map(Path::to_owned)
}

/// The file of a session; an agent that names no session has none.
fn file(place: &Place, agent: Agent, session: &str, workspace: &Path) -> Option<PathBuf> {
    if session.is_empty() {
        return None;
    }
    let mut hasher = blake3::Hasher::new();
    for part in [session.as_bytes(), workspace.as_os_str().as_encoded_bytes()] {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    let name = format!("{}-{}.json", agent.word(), &hasher.finalize().to_hex()[..32]);
    Some(place.folder.join(FOLDER).join(name))
}

/// Best effort: a session that is forgotten starts in the workspace's root.
fn forget_the_oldest(folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let mut files: Vec<_> = entries
        .flatten()
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .collect();
    if files.len() <= KEPT {
        return;
    }
    files.sort();
    for (_, path) in files.iter().take(files.len() - KEPT) {
        let _ = std::fs::remove_file(path);
    }
}
