//! What a call of a built-in tool will do, as far as its arguments alone tell: for who decides and who is asked before
//! it starts. What it then does is decided once more, request by request.

use serde_json::Value;

use crate::broker::Command;

/// One thing that a call will do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Intent {
    /// Run a command.
    Run {
        /// Which.
        command: Command,
        /// In which folder, from the workspace.
        cwd: String,
        /// With which variables.
        env: Vec<(String, String)>,
    },
    /// Remove a path.
    Remove {
        /// Which, as the caller names it.
        path: String,
        /// Whether everything below it goes too.
        recursive: bool,
    },
    /// Send a request.
    Reach {
        /// The method.
        method: String,
        /// The URL.
        url: String,
    },
}

impl Intent {
    /// A program with its arguments.
    pub(super) fn run(argv: Vec<String>, cwd: &str) -> Self {
        Self::Run { command: Command::Argv(argv), cwd: cwd.to_owned(), env: Vec::new() }
    }
}

/// For tools whose arguments do not show their intent, or that need no approval.
pub(super) fn untold(_: &Value) -> Vec<Intent> {
    Vec::new()
}
