//! From the rows of a call to the steps that take them back, newest first, or to what stands in the way.
//!
//! Steps are imagined one after the other over the tree as it is: each row must find what it left. So all that can be
//! known is known before the first step is done.

use std::collections::BTreeMap;
use std::io;

use serde::Serialize;

use super::site::Site;
use super::state::{Stamp, State};

/// One change of a call, as it was kept.
#[derive(Debug, Clone)]
pub(crate) struct Change {
    pub path: String,
    /// Where `path` was moved to, for a move.
    pub goal: Option<String>,
    /// What had the name; for a move, that of the goal.
    pub before: State,
    /// What may have it now.
    pub after: Vec<State>,
    /// Its content.
    pub backup: Option<String>,
    /// Whether a command made it, rather than a request of a tool.
    pub staged: bool,
}

/// A step of an undo.
#[derive(Debug, Clone, Serialize)]
pub struct Step {
    /// Where, below the workspace.
    pub path: String,
    /// What is done, in words.
    pub action: String,
    #[serde(skip)]
    pub(super) act: Act,
    /// Which object must still have the name when it is done.
    #[serde(skip)]
    pub(super) seen: Option<Stamp>,
}

/// What a step does.
#[derive(Debug, Clone)]
pub(super) enum Act {
    /// The name gets what it had.
    Restore { before: State, backup: Option<String> },
    /// What has the name goes back to where it was.
    MoveBack { to: String },
    /// A whole tree goes, and is kept under this name.
    RemoveTree { tree: State, image: String },
    /// A whole tree comes back from where it is kept.
    RestoreTree { tree: State, image: String },
}

/// What stands in the way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Obstacle {
    /// Where, below the workspace.
    pub path: String,
    /// Why.
    pub why: String,
}

/// The steps, in order.
pub(crate) fn plan(site: &Site, changes: &[Change]) -> Result<Vec<Step>, Vec<Obstacle>> {
    let mut imagined = Imagined { site, states: BTreeMap::new(), moves: Vec::new() };
    let (mut steps, mut obstacles) = (Vec::new(), Vec::new());
    for change in changes.iter().rev() {
        let at = change.goal.as_ref().unwrap_or(&change.path);
        match imagined.take_back(change) {
            Ok(taken) => steps.extend(taken),
            Err(why) => obstacles.push(Obstacle { path: at.clone(), why }),
        }
    }
    obstacles.dedup();
    if obstacles.is_empty() { Ok(steps) } else { Err(obstacles) }
}

/// The tree as it would be after the steps so far.
struct Imagined<'s> {
    site: &'s Site,
    /// What steps have given names.
    states: BTreeMap<String, State>,
    /// Folders and files that steps have moved: from where they are to where they would be.
    moves: Vec<(String, String)>,
}

impl Imagined<'_> {
    fn take_back(&mut self, change: &Change) -> Result<Vec<Step>, String> {
        let at = change.goal.as_ref().unwrap_or(&change.path);
        let is_tree = |state: &State| matches!(state, State::Tree { .. });
        let tree = is_tree(&change.before) || change.after.iter().any(is_tree);
        let looked = if tree { self.look_tree(at) } else { self.look(at) };
        let mut now = looked.map_err(|error| in_the_way(&error))?;
        if !change.after.iter().any(|after| after.is(&now)) {
            // The change never happened, or was undone already.
            if change.before.is(&now) {
                return Ok(Vec::new());
            }
            return Err(match change.after.is_empty() {
                true => {
                    "the call died while it changed this, so what it left is not known".to_owned()
                }
                false => format!("it has changed since: {} is there now", now.words()),
            });
        }
        let whole = matches!(change.before, State::File { .. } | State::Tree { .. });
        if whole && change.backup.is_none() {
            return Err(format!("what was there was not kept: {}", change.before.words()));
        }
        if matches!(change.before, State::Other) {
            return Err("what was there was no file, link or folder".to_owned());
        }
        if let (State::Absent, State::Folder { .. }, None) = (&change.before, &now, &change.goal) {
            let rest = self.rest_of(at).map_err(|error| in_the_way(&error))?;
            if let Some(rest) = rest {
                return Err(format!("the folder is not empty: {rest} is in it"));
            }
        }
        let seen = if self.states.contains_key(at) { None } else { now.stamp() };
        let mut steps = Vec::new();
        if change.goal.is_some() {
            match self.look(&change.path).map_err(|error| in_the_way(&error))? {
                State::Absent => {}
                other => {
                    return Err(format!("{} has its old name {} now", other.words(), change.path));
                }
            }
            let action = format!("move back to {}", change.path);
            let act = Act::MoveBack { to: change.path.clone() };
            steps.push(Step { path: at.clone(), action, act, seen });
            self.moved(at, &change.path);
            let moved = std::mem::replace(&mut now, State::Absent);
            self.states.insert(change.path.clone(), moved);
            self.states.insert(at.clone(), State::Absent);
            if change.before == State::Absent {
                return Ok(steps);
            }
        }
        let action = match (&change.before, &now) {
            (State::Absent, _) => "remove".to_owned(),
            (State::Folder { .. }, State::Absent) => "make the folder again".to_owned(),
            (before, State::Absent) => format!("put back {}", before.words()),
            (before, _) => format!("restore {}", before.words()),
        };
        let act = match (&change.before, &now, &change.backup) {
            (State::Absent, State::Tree { .. }, _) => {
                Act::RemoveTree { tree: now.clone(), image: self.image()? }
            }
            (State::Tree { .. }, _, Some(image)) => {
                Act::RestoreTree { tree: change.before.clone(), image: image.clone() }
            }
            _ => Act::Restore { before: change.before.clone(), backup: change.backup.clone() },
        };
        let seen = if change.goal.is_some() { None } else { seen };
        steps.push(Step { path: at.clone(), action, act, seen });
        // Other permissions leave what is in the folder as it is; a folder that is made again is empty.
        if !matches!((&change.before, &now), (State::Folder { .. }, State::Folder { .. })) {
            self.states.insert(at.clone(), change.before.clone());
        }
        Ok(steps)
    }

    /// A name that no other image has.
    fn image(&self) -> Result<String, String> {
        let call = crate::ids::CallId::fresh().map_err(|error| in_the_way(&error))?;
        Ok(super::backups::image_name(&call, 0))
    }

    /// The same as a whole tree.
    fn look_tree(&self, path: &str) -> io::Result<State> {
        match self.look(path)? {
            State::Folder { .. } if !self.states.contains_key(path) => {
                self.site.look_tree(&self.real(path))
            }
            other => Ok(other),
        }
    }

    /// What has a name after the steps so far.
    fn look(&self, path: &str) -> io::Result<State> {
        if let Some(state) = self.states.get(path) {
            return Ok(state.clone());
        }
        // Below a folder that is not there, or was made a moment ago, is nothing.
        let above =
            ancestors(path).find_map(|above| self.states.get(above).map(|state| (above, state)));
        let moved = self.moves.iter().rev().find(|(_, to)| below(path, to).is_some());
        match (above, moved) {
            (Some((above, State::Folder { .. })), Some((_, to))) if above == to => {}
            (Some(_), _) => return Ok(State::Absent),
            (None, _) => {}
        }
        self.site.look(&self.real(path))
    }

    /// Where something is now that would have this name.
    fn real(&self, path: &str) -> String {
        self.moves.iter().rev().fold(path.to_owned(), |real, (from, to)| match below(&real, to) {
            Some(rest) => format!("{from}{rest}"),
            None => real,
        })
    }

    /// Something in a folder that would still be there.
    fn rest_of(&self, folder: &str) -> io::Result<Option<String>> {
        for name in self.site.entries(&self.real(folder))? {
            let path = format!("{folder}/{name}");
            if self.look(&path)? != State::Absent {
                return Ok(Some(path));
            }
        }
        Ok(None)
    }

    /// What is known of what lies below goes along.
    fn moved(&mut self, from: &str, to: &str) {
        let along: Vec<String> =
            self.states.keys().filter(|path| below(path, from).is_some()).cloned().collect();
        for path in along {
            if let (Some(rest), Some(state)) = (below(&path, from), self.states.get(&path).cloned())
            {
                let there = format!("{to}{rest}");
                self.states.remove(&path);
                self.states.insert(there, state);
            }
        }
        self.moves.push((from.to_owned(), to.to_owned()));
    }
}

fn ancestors(path: &str) -> impl Iterator<Item = &str> {
    path.char_indices().rev().filter(|(_, c)| *c == '/').map(|(at, _)| &path[..at])
}

/// What follows `folder` in a path that is it or lies below it.
fn below<'p>(path: &'p str, folder: &str) -> Option<&'p str> {
    path.strip_prefix(folder).filter(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn in_the_way(error: &io::Error) -> String {
    match error.raw_os_error().map(rustix::io::Errno::from_raw_os_error) {
        Some(rustix::io::Errno::LOOP | rustix::io::Errno::NOTDIR | rustix::io::Errno::XDEV) => {
            "a link or a file is where a folder was".to_owned()
        }
        _ => format!("it cannot be looked at: {error}"),
    }
}
