//! Looks around a workspace for what a tool writes there through the broker.

use std::path::PathBuf;
use std::sync::Arc;

use runner_policy::Effective;

use super::outer_git::{self, Outer};
use crate::call::plan::unscanned;
use crate::config::Config;
use crate::engine::plan::WorkTree;
use crate::environment::Environment;
use crate::sandbox::hidden_index;
use crate::stage::around::{Around, LookAround};
use crate::workspace::grants::{Code, Writes};
use crate::workspace::lists::Lists;
use crate::workspace::mountinfo::MountPoints;
use crate::workspace::survey::{Looking, survey};
use crate::workspace::{Workspace, gitdirs};

/// Whose workspace is looked at, and by what.
#[derive(Clone)]
pub(in crate::call) struct Scene {
    /// The workspace.
    pub workspace: Arc<Workspace>,
    /// The policy of the call.
    pub policy: Arc<Effective>,
    /// The configuration.
    pub config: Arc<Config>,
    /// The caller's environment.
    pub environment: Environment,
    /// Where surveys remember what they found.
    pub memory: Option<PathBuf>,
}

impl Scene {
    /// The look, for when something is written.
    pub(in crate::call) fn later(self) -> Arc<LookAround> {
        Arc::new(move || self.look())
    }

    fn look(&self) -> Result<Around, String> {
        let lists = Lists::new(&self.policy);
        let root = self.workspace.root();
        let survey = survey(&Looking {
            workspace: &self.workspace,
            grants: &lists.grants(Writes::Some, Code::Granted),
            memory: self.memory.as_deref(),
            unscanned: &unscanned(&self.config),
            mounted_below: MountPoints::read().below(root).next().is_some(),
        })
        .map_err(|error| error.to_string())?;
        let mut trees = hidden_index::trees(&self.workspace, &survey.repositories);
        let own = gitdirs::find(&self.workspace).own;
        trees.extend(own.map(|git| WorkTree { git, top: PathBuf::new() }));
        let led = outer_git::led(&Outer {
            environment: &self.environment,
            root,
            workspace: root,
            trees: &trees,
            repositories: &survey.repositories,
        })
        .map_err(|error| error.to_string())?;
        let home = self.environment.home();
        Ok(Around { repositories: survey.repositories, links: survey.links, led, home })
    }
}
