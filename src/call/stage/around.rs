//! Looks around a workspace for what a tool writes there through the broker.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use runner_policy::Effective;

use super::outer_git::{self, Outer};
use super::settle::Seen;
use crate::call::plan::unscanned;
use crate::config::Config;
use crate::engine::plan::WorkTree;
use crate::environment::Environment;
use crate::sandbox::hidden_index;
use crate::stage::around::{Around, LookAround};
use crate::stage::judge::System;
use crate::workspace::grants::{Code, FileGrants, Writes};
use crate::workspace::lists::Lists;
use crate::workspace::mountinfo::MountPoints;
use crate::workspace::survey::{Looking, Survey, survey};
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
        let grants = lists.grants(Writes::Some, Code::Granted);
        let (survey, trees) =
            survey_now(&self.workspace, &grants, &self.config, self.memory.as_deref())?;
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

/// What is in a workspace now, and its working trees of git.
fn survey_now(
    workspace: &Workspace,
    grants: &FileGrants<'_>,
    config: &Config,
    memory: Option<&Path>,
) -> Result<(Survey, Vec<WorkTree>), String> {
    let survey = survey(&Looking {
        workspace,
        grants,
        memory,
        unscanned: &unscanned(config),
        mounted_below: MountPoints::read().below(workspace.root()).next().is_some(),
    })
    .map_err(|error| error.to_string())?;
    let mut trees = hidden_index::trees(workspace, &survey.repositories);
    let own = gitdirs::find(workspace).own;
    trees.extend(own.map(|git| WorkTree { git, top: PathBuf::new() }));
    Ok((survey, trees))
}

/// What a call with these lists would see of a workspace now, as far as changes that were kept are
/// judged by it again. What was hidden from the call that made them comes from their stage.
pub(super) fn seen_now(
    root: &Path,
    grants: &FileGrants<'_>,
    covered: BTreeSet<PathBuf>,
    (config, environment): (&Config, &Environment),
) -> Result<Seen, String> {
    let workspace =
        Workspace::open_at(root, root, environment).map_err(|error| error.to_string())?;
    let (survey, trees) = survey_now(&workspace, grants, config, None)?;
    Ok(Seen {
        covered,
        repositories: survey.repositories,
        links: survey.links,
        trees,
        // It only lets a symlink to a program be applied without a person.
        system: System::default(),
        environment: environment.clone(),
    })
}
