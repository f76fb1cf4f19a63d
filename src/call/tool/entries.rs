//! The registry as it is shown: every tool that was found, what it says of itself, and whether it can be used.

use serde::Serialize;

use crate::environment::Environment;
use crate::tool::{Auth, Definition, Library, Switch, Tool};

/// Whether a tool can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It can.
    Ready,
    /// It lacks credentials.
    Unavailable,
    /// It is switched off.
    Off,
    /// Another tool has its name.
    NameTaken,
    /// Its definition has findings.
    Broken,
}

impl State {
    /// Its words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Unavailable => "unavailable",
            Self::Off => "off",
            Self::NameTaken => "name taken",
            Self::Broken => "broken",
        }
    }
}

/// What a tool says of itself, if that is known.
#[derive(Debug)]
enum Held<'l> {
    /// A YAML tool's own.
    Of(&'l Definition),
    /// A module's answer.
    Own(Box<Definition>),
    /// It was not asked yet, or it is broken.
    Unknown,
}

/// One tool of the registry.
#[derive(Debug)]
pub struct Entry<'l> {
    /// The tool.
    pub tool: &'l Tool,
    /// Whether it can be used.
    pub state: State,
    held: Held<'l>,
    environment: Environment,
}

impl Entry<'_> {
    /// What it says of itself.
    #[must_use]
    pub fn definition(&self) -> Option<&Definition> {
        match &self.held {
            Held::Of(definition) => Some(definition),
            Held::Own(definition) => Some(definition),
            Held::Unknown => None,
        }
    }

    /// The credentials that it lacks.
    #[must_use]
    pub fn lacks(&self) -> Option<&Auth> {
        lacks(self.definition()?, &self.environment)
    }
}

/// Every tool that was found, in the order of names. `ask` gives what a module says, if it can be known.
pub fn entries<'l>(
    library: &'l Library,
    environment: &Environment,
    mut ask: impl FnMut(&'l Tool) -> Option<Definition>,
) -> Vec<Entry<'l>> {
    library.read_all();
    let entry = |tool: &'l Tool| {
        let held = match tool.definition() {
            Ok(Some(definition)) => Held::Of(definition),
            Ok(None) => ask(tool).map_or(Held::Unknown, |it| Held::Own(Box::new(it))),
            Err(_) => Held::Unknown,
        };
        let mut entry = Entry { tool, state: State::Ready, held, environment: environment.clone() };
        entry.state = state(library, &entry);
        entry
    };
    library.tools.iter().map(entry).collect()
}

fn state(library: &Library, entry: &Entry<'_>) -> State {
    let definition = entry.definition();
    if library.is_twice(&entry.tool.name) {
        State::NameTaken
    } else if !entry.tool.findings().is_empty() {
        State::Broken
    } else if !matches!(entry.tool.switch, Switch::On)
        || definition.is_some_and(|definition| !definition.enabled)
    {
        State::Off
    } else if entry.lacks().is_some() {
        State::Unavailable
    } else {
        State::Ready
    }
}

/// The credentials that a tool lacks in an environment.
#[must_use]
pub fn lacks<'d>(definition: &'d Definition, environment: &Environment) -> Option<&'d Auth> {
    let is_set = |name: &str| environment.get(name).is_some_and(|value| !value.is_empty());
    definition.metadata.lacks(is_set)
}
