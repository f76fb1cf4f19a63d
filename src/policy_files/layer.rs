//! The layers and their folders.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::environment::Environment;

/// Where a policy comes from. The order is the order of trust, most trusted first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Layer {
    /// In the executable.
    Shipped,
    /// In `/etc/runner/policies`.
    Managed,
    /// In the user's configuration folder.
    User,
    /// The file that the caller named.
    Given,
    /// In the workspace.
    Project,
}

impl Layer {
    /// Its word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Shipped => "shipped",
            Self::Managed => "managed",
            Self::User => "user",
            Self::Given => "given",
            Self::Project => "project",
        }
    }
}

/// Where a call finds things on this machine: our folders, and the environment that names them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Places {
    /// The folder that holds `runner/policies` of the managed layer. Not taken from the environment:
    /// the caller must not be able to move it.
    pub managed: PathBuf,
    /// The folder that holds `runner/policies` of the user.
    pub user: Option<PathBuf>,
    /// The workspace, which may hold `.runner/policies`.
    pub workspace: Option<PathBuf>,
    /// The folder for our own state.
    pub state: Option<PathBuf>,
    /// The caller's variables.
    pub environment: Environment,
}

impl Places {
    /// Of an environment, for a workspace.
    #[must_use]
    pub fn of(environment: &Environment, workspace: Option<&Path>) -> Self {
        let base = |name, below_home| environment.base_folder(name, below_home);
        Self {
            managed: PathBuf::from("/etc"),
            user: base("XDG_CONFIG_HOME", ".config"),
            workspace: workspace.map(Path::to_owned),
            state: base("XDG_STATE_HOME", ".local/state").map(|state| state.join("runner")),
            environment: environment.clone(),
        }
    }

    /// The folder of a layer, for messages.
    #[must_use]
    pub fn folder(&self, layer: Layer) -> Option<PathBuf> {
        match layer {
            Layer::Shipped | Layer::Given => None,
            Layer::Managed => Some(self.managed.join("runner/policies")),
            Layer::User => self.user.as_ref().map(|base| base.join("runner/policies")),
            Layer::Project => self.workspace.as_ref().map(|base| base.join(".runner/policies")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(pairs: &[(&str, &str)]) -> Places {
        Places::of(&pairs.iter().copied().collect(), None)
    }

    #[test]
    fn folders_follow_the_base_directory_specification() {
        let places = env(&[("HOME", "/h")]);
        assert_eq!(places.folder(Layer::User), Some("/h/.config/runner/policies".into()));
        assert_eq!(places.state, Some("/h/.local/state/runner".into()));
        let places = env(&[("HOME", "/h"), ("XDG_CONFIG_HOME", "/c"), ("XDG_STATE_HOME", "rel")]);
        assert_eq!(places.folder(Layer::User), Some("/c/runner/policies".into()));
        assert_eq!(places.state, Some("/h/.local/state/runner".into()));
        assert_eq!(env(&[]).user, None);
    }

    #[test]
    fn the_environment_cannot_move_the_managed_folder() {
        let places = env(&[("HOME", "/h"), ("XDG_CONFIG_DIRS", "/x")]);
        assert_eq!(places.folder(Layer::Managed), Some("/etc/runner/policies".into()));
    }
}
