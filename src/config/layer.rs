//! The layers of the configuration and their files.

use std::path::PathBuf;

use serde::Serialize;

use crate::policy_files::Places;

/// Where a value comes from. The order is the order of precedence, the weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Layer {
    /// No file says anything.
    Default,
    /// The workspace's file.
    Project,
    /// The user's file.
    User,
    /// The file that root alone can change.
    Managed,
}

/// A value's layer and place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Source {
    /// Its layer.
    pub layer: Layer,
    /// The file that says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line that it stands on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

impl Layer {
    /// The layers that have files, the strongest first.
    pub const FILES: [Self; 3] = [Self::Managed, Self::User, Self::Project];

    /// Its word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Project => "project",
            Self::User => "user",
            Self::Managed => "managed",
        }
    }

    /// What this word means, of layers that have files.
    #[must_use]
    pub fn by_word(word: &str) -> Option<Self> {
        Self::FILES.into_iter().find(|layer| layer.word() == word)
    }
}

impl Source {
    /// What holds if no file says anything.
    #[must_use]
    pub const fn default() -> Self {
        Self { layer: Layer::Default, file: None, line: None }
    }
}

/// The folder that is given, and the folder below it that holds the file.
pub(super) fn folder(layer: Layer, places: &Places) -> Option<(PathBuf, &'static str)> {
    match layer {
        Layer::Default => None,
        Layer::Managed => Some((places.managed.clone(), "runner")),
        Layer::User => Some((places.user.clone()?, "runner")),
        Layer::Project => Some((places.workspace.clone()?, ".runner")),
    }
}

/// The name of the file, in every layer.
pub(super) const FILE: &str = "config.yml";

/// The file of a layer.
#[must_use]
pub fn path(layer: Layer, places: &Places) -> Option<PathBuf> {
    folder(layer, places).map(|(base, below)| base.join(below).join(FILE))
}
