//! What of a tool runs: a module that was compiled, a function of this program, or a foreign MCP server.

use std::path::PathBuf;
use std::sync::Arc;

use runner_policy::Effective;

use crate::broker;
use crate::tool::builtin::BuiltIn;
use crate::tool::compile::{Changed, Compiled, Difference};
use crate::tool::{Form, FromServer};

/// What runs, and what it was made from.
#[derive(Debug)]
pub enum Program {
    /// A module, in a sandbox with Node.
    Module {
        /// The code.
        compiled: Box<Compiled>,
        /// How its author wrote it.
        form: broker::Form,
    },
    /// A function of this program.
    BuiltIn(&'static BuiltIn),
    /// A tool of an MCP server, which runs in a sandbox as a command does.
    Server {
        /// Which.
        from: Arc<FromServer>,
        /// The policy that decides about the server.
        policy: Arc<Effective>,
        /// Where it runs.
        root: PathBuf,
    },
}

impl Program {
    /// A compiled tool.
    pub(super) fn of(compiled: Compiled, form: Form) -> Self {
        let form = match form {
            Form::Module => broker::Form::Module,
            Form::Yaml | Form::BuiltIn | Form::Mcp => broker::Form::Yaml,
        };
        Self::Module { compiled: Box::new(compiled), form }
    }

    /// Stands for all that it is made of.
    #[must_use]
    pub fn digest(&self) -> String {
        match self {
            Self::Module { compiled, .. } => compiled.digest.clone(),
            Self::BuiltIn(tool) => tool.digest(),
            Self::Server { from, .. } => from.digest(),
        }
    }

    /// Each file that it is made of, with its digest.
    #[must_use]
    pub fn inputs(&self) -> Vec<(String, String)> {
        match self {
            Self::Module { compiled, .. } => {
                let inputs = compiled.inputs.iter();
                inputs.map(|it| (it.path.clone(), it.digest.clone())).collect()
            }
            Self::BuiltIn(tool) => vec![(tool.file(), tool.digest())],
            Self::Server { from, .. } => from.inputs(),
        }
    }

    /// The command that a call runs, where it is always the same.
    #[must_use]
    pub fn command(&self) -> Option<String> {
        match self {
            Self::Server { from, .. } => Some(from.command()),
            Self::Module { .. } | Self::BuiltIn(_) => None,
        }
    }

    /// The `timeout` of the server that it is of, in milliseconds, and that server's name.
    pub(super) fn timeout(&self) -> Option<(u64, String)> {
        match self {
            Self::Server { from, .. } => Some((from.server.timeout?, from.name.to_string())),
            Self::Module { .. } | Self::BuiltIn(_) => None,
        }
    }

    /// Whether it is still what was looked at. This program does not change while it runs.
    ///
    /// # Errors
    /// The first file that is not.
    pub fn verify(&self) -> Result<(), Changed> {
        match self {
            Self::Module { compiled, .. } => compiled.verify_inputs(),
            Self::BuiltIn(_) => Ok(()),
            Self::Server { from, root, .. } => from
                .verify(root)
                .map_err(|moved| Changed { path: moved.path, how: Difference::Content }),
        }
    }
}
