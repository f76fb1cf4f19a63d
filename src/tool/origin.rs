//! Where a tool comes from, and whether it is switched on.

use serde::Serialize;

use super::folder::Form;
use crate::config::{Config, Source};
use crate::ids::ToolName;
use crate::policy_files::Layer;

/// Where a tool comes from, in the words of lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// It comes with this program.
    BuiltIn,
    /// It is in the folder that the managed configuration names.
    Team,
    /// It is a tool of an MCP server.
    Mcp,
    /// It is the user's or the workspace's, or in a folder that the caller named.
    Custom,
}

/// Whether a tool is switched on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Switch {
    /// It is.
    On,
    /// It is an example that was not switched on.
    Example,
    /// A configuration file says that it is not.
    Off(Source),
}

impl Origin {
    /// Of a tool of this form in this layer.
    #[must_use]
    pub const fn of(layer: Layer, form: Form) -> Self {
        match (form, layer) {
            (Form::Mcp, _) => Self::Mcp,
            (_, Layer::Shipped) => Self::BuiltIn,
            (_, Layer::Managed) => Self::Team,
            (_, Layer::User | Layer::Given | Layer::Project) => Self::Custom,
        }
    }

    /// As a list shows it.
    #[must_use]
    pub const fn badge(self) -> &'static str {
        match self {
            Self::BuiltIn => "[Built-in]",
            Self::Team => "[Team]",
            Self::Mcp => "[MCP]",
            Self::Custom => "[Custom]",
        }
    }
}

impl Switch {
    /// What holds for a tool. Team tools are always on; examples are off until they are enabled; all others are on.
    pub(super) fn of(name: &ToolName, layer: Layer, form: Form, config: &Config) -> Self {
        let said = config.enabled(name);
        match (Origin::of(layer, form), said) {
            (Origin::Team, _) => Self::On,
            (Origin::BuiltIn, None) if form != Form::BuiltIn => Self::Example,
            (Origin::BuiltIn | Origin::Mcp | Origin::Custom, None) => Self::On,
            (_, Some(said)) if said.value => Self::On,
            (_, Some(said)) => Self::Off(said.source.clone()),
        }
    }
}
