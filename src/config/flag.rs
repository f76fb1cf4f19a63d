//! Every switch of the configuration.

use super::layer::Layer;

/// One switch. The order is the order of [`TABLE`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the table beside it says what each one is")]
pub enum Flag {
    ShowTokenCosts,
    AutoLoadCustomTools,
    DisableLocalTools,
    ApproveWithoutTerminal,
}

/// What a project's file may say of a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Project {
    /// Either: it is only shown.
    Either,
    /// Only this.
    Only(bool),
}

/// One row of the table of switches.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// Which switch.
    pub flag: Flag,
    /// Its key, from the top of the file.
    pub key: &'static str,
    /// What holds if no file says otherwise.
    pub default: bool,
    /// The least trusted layer that may set it.
    pub from: Layer,
    /// What a project may say.
    pub project: Project,
    /// What it is.
    pub about: &'static str,
}

/// Every switch. `docs/reference` is generated from it.
#[rustfmt::skip]
pub const TABLE: [Row; 4] = [
    Row { flag: Flag::ShowTokenCosts,      key: "showTokenCosts",      default: true,  from: Layer::Project, project: Project::Either,      about: "whether lists of tools show what each costs in a context" },
    Row { flag: Flag::AutoLoadCustomTools, key: "autoLoadCustomTools", default: true,  from: Layer::Project, project: Project::Only(false), about: "whether tools of the user and of the workspace are found without being named" },
    Row { flag: Flag::DisableLocalTools,   key: "disableLocalTools",   default: false, from: Layer::Managed, project: Project::Only(true),  about: "whether only built-in and team tools can be used, and MCP servers of the managed file" },
    Row { flag: Flag::ApproveWithoutTerminal, key: "approvals.withoutTerminal", default: false, from: Layer::User, project: Project::Only(false), about: "whether programs may answer questions, with `runner approve` or `--yes`, not only people at a terminal" },
];

impl Flag {
    /// This switch's row of [`TABLE`].
    #[must_use]
    pub fn row(self) -> &'static Row {
        &TABLE[self as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order() {
        for (at, row) in TABLE.iter().enumerate() {
            assert_eq!(row.flag as usize, at, "{}", row.key);
        }
    }
}
