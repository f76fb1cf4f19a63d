//! Where configurations outside a workspace lead into it.
//!
//! A `core.hooksPath`, an `include.path` or a command of such a configuration may lie in the workspace:
//! what a call writes there would run at the next git command. These configurations count:
//!
//! - the user's and the system's, in every repository;
//! - those of a git folder outside that a working tree of the workspace belongs to: the workspace, or
//!   a folder of it, is a linked worktree or a submodule;
//! - those of the repositories above the workspace: it is a folder of their working tree.
//!
//! A configuration that lies in the workspace itself counts as a place, and so does what a symlink in the
//! user's home leads to ([`super::outer_home`]).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::outer_home;
use crate::engine::plan::WorkTree;
use crate::environment::Environment;
use crate::stage::leads::{self, Leads, Own, Source, UnknownLeads};
use crate::stage::led::Led;

/// Configurations that are read, at most.
const MAX_CONFIGS: usize = 1024;

/// The system's configuration, where distributions and builds of git have it.
const SYSTEM: [&str; 2] = ["/etc/gitconfig", "/usr/local/etc/gitconfig"];

/// What lies around a workspace.
#[derive(Debug, Clone, Copy)]
pub(in crate::call) struct Outer<'a> {
    /// The caller's environment.
    pub environment: &'a Environment,
    /// The workspace, or another folder that a stage is for.
    pub root: &'a Path,
    /// The workspace.
    pub workspace: &'a Path,
    /// The working trees of git in it that are known with their git folder.
    pub trees: &'a [WorkTree],
    /// The `.git` of each repository, below the workspace.
    pub repositories: &'a BTreeSet<PathBuf>,
}

/// The places below the root that configurations outside lead to.
///
/// # Errors
///
/// Not all of them could be followed.
pub(in crate::call) fn led(outer: &Outer<'_>) -> Result<Vec<Led>, UnknownLeads> {
    let home = outer.environment.home();
    let mut leads = Leads::outside(outer.root, home.as_deref(), MAX_CONFIGS);
    let tops = outer.tops();
    for file in users(outer.environment, &tops) {
        leads.follow(Source { file, tops: tops.clone() }, Own::File)?;
    }
    let given = leads::given(&|name| outer.environment.get(name));
    leads.of_config(&given, &tops, "the environment");
    for (git, top) in outer.repositories(&leads) {
        leads.repository(&git, &top)?;
    }
    outer_home::note(&mut leads, outer.environment);
    Ok(leads.found())
}

/// The user's and the system's configurations.
fn users(environment: &Environment, tops: &[PathBuf]) -> Vec<PathBuf> {
    let home = environment.home();
    let mut files: Vec<PathBuf> = SYSTEM.map(PathBuf::from).into();
    files.extend(environment.config_home().map(|folder| folder.join("git/config")));
    files.extend(home.map(|home| home.join(".gitconfig")));
    // Another shell of the user may not have these: they count beside the others.
    for variable in ["GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"] {
        let Some(file) = environment.get(variable).filter(|file| !file.is_empty()) else {
            continue;
        };
        // Git goes to the top of a working tree before it opens the file.
        files.extend(tops.iter().map(|top| top.join(&file)));
    }
    files.sort();
    files.dedup();
    files
}

impl Outer<'_> {
    /// The tops of the working trees in the workspace.
    fn tops(&self) -> Vec<PathBuf> {
        let known = self.trees.iter().map(|tree| tree.top.as_path());
        let found = self.repositories.iter().filter_map(|dot_git| dot_git.parent());
        let below: BTreeSet<&Path> = known.chain(found).chain([Path::new("")]).collect();
        below.into_iter().map(|top| self.workspace.join(top)).collect()
    }

    /// The git folders outside the root, with the tops of working trees in the workspace and around it.
    fn repositories(&self, leads: &Leads<'_>) -> Vec<(PathBuf, PathBuf)> {
        let known =
            self.trees.iter().map(|tree| (tree.git.clone(), self.workspace.join(&tree.top)));
        let found = self.repositories.iter().filter_map(|dot_git| {
            let top = self.workspace.join(dot_git.parent()?);
            Some((leads.git_of(&top)?, top))
        });
        let outside = known.chain(found).filter(|(git, _)| !git.starts_with(self.root));
        let above = self.root.ancestors().skip(1);
        let above = above.filter_map(|top| Some((leads.git_of(top)?, top.to_owned())));
        let all: BTreeSet<_> = outside.chain(above).collect();
        all.into_iter().collect()
    }
}

#[cfg(test)]
#[path = "outer_git_tests.rs"]
mod tests;
