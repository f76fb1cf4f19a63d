//! What of a tool runs: a module that was compiled, or a function of this program.

use crate::broker;
use crate::tool::Form;
use crate::tool::builtin::BuiltIn;
use crate::tool::compile::{Changed, Compiled};

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
}

impl Program {
    /// A compiled tool.
    pub(super) fn of(compiled: Compiled, form: Form) -> Self {
        let form = match form {
            Form::Module => broker::Form::Module,
            Form::Yaml | Form::BuiltIn => broker::Form::Yaml,
        };
        Self::Module { compiled: Box::new(compiled), form }
    }

    /// Stands for all that it is made of.
    #[must_use]
    pub fn digest(&self) -> String {
        match self {
            Self::Module { compiled, .. } => compiled.digest.clone(),
            Self::BuiltIn(tool) => tool.digest(),
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
        }
    }
}
