//! Where a question about a policy is asked: the folder, its workspace, and the policies found there.

use std::path::{Path, PathBuf};

use crate::call::Context;
use crate::cli::Error;
use crate::cli::usage::UsageError;
use crate::environment::Environment;
use crate::policy_files::{Choice, ChoiceError, Places};
use crate::workspace::{Workspace, WorkspaceError};

/// Which policy, and where. As typed.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct Args {
    /// The policy to ask: a name, or the path of a .yml file [default: the configuration's, else readonly]
    #[arg(long, value_name = "POLICY")]
    pub policy: Option<Choice>,
    /// Ask as if in this folder
    #[arg(long, visible_alias = "workdir", value_name = "DIR")]
    pub cwd: Option<PathBuf>,
}

/// The same, resolved.
#[derive(Debug)]
pub struct Place {
    /// Which policy.
    pub choice: Choice,
    /// The folder in which the question is asked.
    pub cwd: PathBuf,
    /// The workspace it belongs to.
    pub workspace: PathBuf,
    /// Where policies are looked for.
    pub places: Places,
}

impl Args {
    /// Finds the workspace.
    pub fn resolve(self, context: &Context) -> Result<Place, Error> {
        let environment = &context.environment;
        let (cwd, workspace) = find(self.cwd.as_deref(), environment)?;
        let places = Places::of(environment, Some(&workspace));
        Ok(Place { choice: self.policy.unwrap_or_default(), cwd, workspace, places })
    }
}

/// Names the policy of the commands that are typed where it is set.
const VARIABLE: &str = "RUNNER_POLICY";

/// The policy that the caller of the command line chose: `--policy`, else `RUNNER_POLICY`. The variable counts
/// here alone: a server or hook is started by a program, and no person chose its environment.
pub fn choice(typed: Option<Choice>, environment: &Environment) -> Result<Choice, UsageError> {
    if let Some(typed) = typed {
        return Ok(typed);
    }
    let set = environment.get(VARIABLE).filter(|value| !value.is_empty());
    let Some(value) = set else { return Ok(Choice::Default) };
    value.to_string_lossy().parse().map_err(|error: ChoiceError| UsageError::Option {
        option: VARIABLE.to_owned(),
        why: error.to_string(),
    })
}

/// The folder and its workspace.
fn find(
    start: Option<&Path>,
    environment: &Environment,
) -> Result<(PathBuf, PathBuf), WorkspaceError> {
    match Workspace::find(start, environment) {
        Ok(found) => Ok((found.cwd().to_owned(), found.root().to_owned())),
        // Nothing runs here, so a question may be asked anywhere.
        Err(WorkspaceError::Home(path) | WorkspaceError::System(path)) => Ok((path.clone(), path)),
        Err(WorkspaceError::Ours { workspace, cwd, .. }) => Ok((cwd, workspace)),
        Err(WorkspaceError::ThroughLink { real, .. }) => find(Some(&real), environment),
        Err(error) => Err(error),
    }
}
