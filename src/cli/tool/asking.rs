//! Asking modules what they are, for commands about many tools: one that cannot be asked is told at the end.

use std::cell::{OnceCell, RefCell};
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::call::tool::Looker;
use crate::cli::printer::Printer;
use crate::error::Failure as _;
use crate::policy_files::Choice;
use crate::tool::{Definition, Switch, Tool};

/// As typed.
#[derive(Debug, clap::Args)]
pub struct Under {
    /// The policy under which a module is asked what it is [default: readonly]
    #[arg(long, short = 'p', value_name = "POLICY")]
    policy: Option<Choice>,
}

impl Under {
    /// The one that was meant.
    pub fn policy(self) -> Choice {
        self.policy.unwrap_or_default()
    }
}

/// Asks modules, and keeps what went wrong.
pub(super) struct Asking {
    cwd: Option<PathBuf>,
    policy: Choice,
    looker: OnceCell<Result<Looker, String>>,
    failed: RefCell<Vec<(String, String)>>,
}

impl Asking {
    /// Nothing happens before the first module.
    pub fn new(cwd: Option<PathBuf>, policy: Choice) -> Self {
        Self { cwd, policy, looker: OnceCell::new(), failed: RefCell::default() }
    }

    /// What a module says. One that is switched off is asked only if `all` are.
    pub fn ask(&self, tool: &Tool, all: bool) -> Option<Definition> {
        if !all && !matches!(tool.switch, Switch::On) {
            return None;
        }
        let new = || Looker::new(self.cwd.as_deref(), &self.policy).map_err(|it| it.to_string());
        let said = match self.looker.get_or_init(new) {
            Ok(looker) => looker.look(tool).map_err(|error| {
                let hint = error.hint().map(|hint| format!("; {hint}"));
                format!("{error}{}", hint.unwrap_or_default())
            }),
            Err(why) => Err(why.clone()),
        };
        match said {
            Ok(definition) => definition,
            Err(why) => {
                self.failed.borrow_mut().push((tool.name.to_string(), why));
                None
            }
        }
    }

    /// What could not be asked, for machines.
    pub fn failed(&self) -> Vec<Value> {
        let each = |(name, why): &(String, String)| json!({ "name": name, "why": why });
        self.failed.borrow().iter().map(each).collect()
    }

    /// The same for people.
    pub fn hints(&self, printer: &mut Printer) {
        for (name, why) in self.failed.borrow().iter() {
            printer.hint(&format!("{name} is left out: {why}"));
        }
    }
}
