//! Asking modules what they are, for commands about many tools: one that cannot be asked is told at the end.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::call::CallError;
use crate::call::Context;
use crate::call::tool::Looker;
use crate::cli::Error;
use crate::cli::event_loop::cancellable;
use crate::cli::printer::Printer;
use crate::error::Failure as _;
use crate::policy_files::Choice;
use crate::tool::{Definition, Library, Switch, Tool};

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

/// What modules said.
pub(super) struct Said<'l>(Vec<(&'l Tool, Definition)>);

impl Said<'_> {
    /// What this module said, once.
    pub fn take(&mut self, tool: &Tool) -> Option<Definition> {
        let at = self.0.iter().position(|(it, _)| std::ptr::eq(*it, tool))?;
        Some(self.0.swap_remove(at).1)
    }
}

/// Asks modules, and keeps what went wrong.
pub(super) struct Asking {
    cwd: Option<PathBuf>,
    policy: Choice,
    failed: Vec<(String, String)>,
}

impl Asking {
    /// Nothing happens before the first module.
    pub fn new(cwd: Option<PathBuf>, policy: Choice) -> Self {
        Self { cwd, policy, failed: Vec::new() }
    }

    /// What every module says. One that is switched off is asked only if it is `wanted`.
    ///
    /// # Errors
    /// A signal came.
    pub fn ask_all<'l>(
        &mut self,
        library: &'l Library,
        context: &Context,
        wanted: impl Fn(&Tool) -> bool,
    ) -> Result<Said<'l>, Error> {
        library.read_all();
        let is_asked = |tool: &&Tool| {
            let is_module = matches!(tool.definition(), Ok(None));
            is_module && (wanted(tool) || matches!(tool.switch, Switch::On))
        };
        let modules: Vec<&Tool> = library.tools.iter().filter(is_asked).collect();
        if modules.is_empty() {
            return Ok(Said(Vec::new()));
        }
        let looker =
            Looker::new(self.cwd.as_deref(), &self.policy, context).map_err(|it| it.to_string());
        cancellable(async |cancel| {
            let mut said = Vec::new();
            for tool in modules {
                let answer = match &looker {
                    Ok(looker) => match looker.look(tool, cancel).await {
                        Err(error @ CallError::Cancelled(_)) => return Err(error.into()),
                        answer => answer.map_err(|error| {
                            let hint = error.hint().map(|hint| format!("; {hint}"));
                            format!("{error}{}", hint.unwrap_or_default())
                        }),
                    },
                    Err(why) => Err(why.clone()),
                };
                match answer {
                    Ok(definition) => said.extend(definition.map(|it| (tool, it))),
                    Err(why) => self.failed.push((tool.name.to_string(), why)),
                }
            }
            Ok(Said(said))
        })
    }

    /// What could not be asked, for machines.
    pub fn failed(&self) -> Vec<Value> {
        let each = |(name, why): &(String, String)| json!({ "name": name, "why": why });
        self.failed.iter().map(each).collect()
    }

    /// The same for people.
    pub fn hints(&self, printer: &mut Printer) {
        for (name, why) in self.failed.iter() {
            printer.hint(&format!("{name} is left out: {why}"));
        }
    }
}
