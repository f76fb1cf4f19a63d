//! Judges and applies the changes of a call when its sandbox is still.

use std::collections::BTreeSet;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use runner_policy::Effective;
use runner_policy::model::Writes as When;

use super::changes::Changes;
use super::error::StagedError;
use super::outer_git::{self, Outer};
use crate::call::launch::outcome::Stillness;
use crate::config::Undo;
use crate::engine::plan::{MountRole, SandboxPlan, WorkTree};
use crate::environment::Environment;
use crate::sandbox::outcome::Verdict as Ended;
use crate::stage::apply::{self, ApplyError, Sync, apply, not_applied};
use crate::stage::change::{Held, Judged, RootKind, Verdict, Why};
use crate::stage::folder::{Root, Stage};
use crate::stage::judge::{Rules, System, judge};
use crate::stage::tracked::settle as tracked;
use crate::stage::turn::Turn;
use crate::stage::walk::{Bounds, walk};
use crate::workspace::grants::{Code, FileGrants, PathSet, Writes};
use crate::workspace::lists::Lists;

/// How long a call waits for others that apply changes to the same folders. An apply of 100,000 files
/// takes a few seconds.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// What the changes of a call are settled by.
pub(in crate::call) struct Settling {
    /// The policy that decided the call.
    pub policy: Arc<Effective>,
    /// What the call saw.
    pub seen: Seen,
    /// When changes are applied.
    pub when: When,
    /// How the command ended.
    pub ended: Ended,
    /// Whether a process of it may be left.
    pub stillness: Stillness,
    /// The caller's state folder.
    pub state: PathBuf,
    /// How much undo keeps.
    pub bounds: Undo,
}

/// What a call saw of the host, as far as its changes are judged by it.
#[derive(Debug, Clone, Default)]
pub(in crate::call) struct Seen {
    /// What was covered, below the workspace.
    pub covered: BTreeSet<PathBuf>,
    /// The `.git` of each repository, below the workspace.
    pub repositories: BTreeSet<PathBuf>,
    /// Symlinks that stand where the host runs something, or could, below the workspace.
    pub links: BTreeSet<PathBuf>,
    /// The working trees of git in the workspace.
    pub trees: Vec<WorkTree>,
    /// Programs of the host.
    pub system: System,
    /// The caller's environment.
    pub environment: Environment,
}

impl Seen {
    /// What a call with this plan sees.
    pub(in crate::call) fn of(plan: &SandboxPlan, environment: &Environment) -> Self {
        let programs = plan.mounts.iter().filter(|mount| match mount.role {
            MountRole::System | MountRole::Toolchain => true,
            MountRole::Below => false,
        });
        Self {
            covered: plan.covered.clone(),
            repositories: plan.repositories.clone(),
            links: plan.links.clone(),
            trees: plan.trees.clone(),
            system: System {
                folders: programs.map(|mount| mount.target.clone()).collect(),
                hidden: plan.masks.iter().map(|mask| mask.target.clone()).collect(),
            },
            environment: environment.clone(),
        }
    }
}

/// Judges and applies what a call changed, when it is its turn. It blocks.
///
/// # Errors
/// The stage cannot be read or applied; nothing was applied, or the journal says what was.
pub(in crate::call) fn settle(stage: &Stage, settling: &Settling) -> Result<Changes, StagedError> {
    settle_within(PATIENCE, stage, settling)
}

/// The same, with how long it waits for its turn.
fn settle_within(
    patience: Duration,
    stage: &Stage,
    settling: &Settling,
) -> Result<Changes, StagedError> {
    if settling.stillness == Stillness::Unknown {
        return Err(StagedError::Restless);
    }
    stage.free_reserve();
    // Where it cannot be noted, a review applies nothing; this apply does not need it.
    let _ = stage.note_covered(&settling.seen.covered);
    let roots: Vec<PathBuf> = stage.roots().iter().map(Root::path).collect();
    // What is judged stays true until it is applied.
    let turn = Turn::take(&settling.state, &roots, patience);
    let lists = Lists::new(&settling.policy);
    let by = By {
        grants: lists.grants(Writes::Some, Code::Granted),
        policy: settling.policy.name(),
        seen: &settling.seen,
    };
    let mut judged = Vec::new();
    for at in 0..stage.roots().len() {
        judged.push(judge_root(stage, at, &by)?);
    }
    if let Some(why) = settling.held_as_a_whole() {
        hold_all(&mut judged, &why);
    }
    let _turn = match turn {
        Ok(turn) => turn,
        // Without it nothing is applied, and nothing is lost.
        Err(error) => {
            apply::keep(stage, &judged, &not_applied(&error.to_string()))?;
            return Err(error.into());
        }
    };
    let context =
        apply::Context { state: &settling.state, bounds: settling.bounds, sync: Sync::Never };
    let applied = match apply(stage, &judged, &context) {
        // What the command did is not lost: it can be applied once there is room.
        Err(error @ (ApplyError::Failed { .. } | ApplyError::Store(_))) => {
            apply::keep(stage, &judged, &not_applied(&error.to_string()))?;
            return Err(error.into());
        }
        applied => applied?,
    };
    Ok(Changes::of(applied, stage.call().as_str(), &roots))
}

impl Settling {
    /// Why nothing is applied, whatever the changes are.
    fn held_as_a_whole(&self) -> Option<Held> {
        let reason = match (self.when, &self.ended) {
            (When::Apply, _) | (When::OnSuccess, Ended::Completed) => return None,
            (When::OnSuccess, _) => "the command failed, and changes are applied on success only",
            (When::Review, _) => "changes are applied after a review",
        };
        Some(Held {
            why: Why::Review,
            reason: reason.to_owned(),
            rule: format!("{}/sandbox.writes", self.policy.name()),
            next: "look at them with `runner stage diff CALL`, then `runner stage apply CALL`"
                .to_owned(),
        })
    }
}

/// Holds back what could be applied; what is held for another reason keeps it.
fn hold_all(judged: &mut [Vec<Judged>], why: &Held) {
    for change in judged.iter_mut().flatten() {
        if change.verdict == Verdict::Apply {
            change.verdict = Verdict::Hold(why.clone());
        }
    }
}

/// What the changes of a root are judged by.
#[derive(Clone, Copy)]
pub(super) struct By<'a> {
    /// The lists of a policy.
    pub grants: FileGrants<'a>,
    /// Its name.
    pub policy: &'a str,
    /// The host.
    pub seen: &'a Seen,
}

/// Walks and judges the changes of one root. The caller has the turn to change it.
pub(super) fn judge_root(
    stage: &Stage,
    at: usize,
    by: &By<'_>,
) -> Result<Vec<Judged>, StagedError> {
    let root = &stage.roots()[at];
    let host = root.open()?;
    let upper = std::fs::File::open(stage.upper(at))
        .map_err(|error| StagedError::Local("open a stage", error))?;
    let workspace = stage.roots()[0].open()?;
    let By { grants, policy, seen } = *by;
    let home = seen.environment.home();
    let home = home.as_deref();
    let path = root.path();
    // Entries of a git folder elsewhere are checked out in the workspace.
    let top = stage.roots()[0].path();
    let outer = Outer {
        environment: &seen.environment,
        root: &top,
        workspace: &top,
        trees: &seen.trees,
        repositories: &seen.repositories,
    };
    let led_in_workspace = outer_git::led(&outer)?;
    let led = outer_git::led(&Outer { root: &path, ..outer })?;
    let mut changes = walk(upper.as_fd(), host.as_fd(), Bounds::default())?;
    let nothing = BTreeSet::new();
    let workspace_upper = std::fs::File::open(stage.upper(0))
        .map_err(|error| StagedError::Local("open a stage", error))?;
    let in_workspace = Rules {
        grants: &grants,
        policy,
        covered: &seen.covered,
        root: &top,
        kind: RootKind::Workspace,
        host: workspace.as_fd(),
        upper: workspace_upper.as_fd(),
        repositories: &seen.repositories,
        links: &seen.links,
        home,
        led: &led_in_workspace,
        system: &seen.system,
    };
    let staged = tracked::Staged {
        host: host.as_fd(),
        upper: upper.as_fd(),
        root: &path,
        kind: root.kind,
        covered: &seen.covered,
        rules: &in_workspace,
        trees: &seen.trees,
        room: &stage.folder().join(at.to_string()),
    };
    let imported = tracked::import(&changes, &staged);
    if imported.is_changed() {
        changes = walk(upper.as_fd(), host.as_fd(), Bounds::default())?;
    }
    let held = tracked::settle(&mut changes, &staged, &imported);
    let mut rules = Rules {
        root: &path,
        kind: root.kind,
        host: host.as_fd(),
        upper: upper.as_fd(),
        led: &led,
        ..in_workspace
    };
    let mut judged = match root.kind {
        RootKind::Workspace => judge(changes, &rules),
        RootKind::GitFolder => {
            // A git folder outside the workspace is judged as `.git` in it would be.
            let [read, write] = [InGit(grants.read), InGit(grants.write)];
            let [readonly, deny] = [InGit(grants.readonly), InGit(grants.deny)];
            let below = FileGrants {
                read: &read,
                write: &write,
                readonly: &readonly,
                deny: &deny,
                create: &[],
                ..grants
            };
            (rules.grants, rules.covered) = (&below, &nothing);
            (rules.repositories, rules.links) = (&nothing, &nothing);
            judge(changes, &rules)
        }
    };
    for (at, why) in held {
        if let Some(change) = judged.get_mut(at)
            && is_weaker(&change.verdict, &why)
        {
            change.verdict = Verdict::Hold(why);
        }
    }
    Ok(judged)
}

/// Whether a verdict lets something happen that the reason does not: by itself, or because a person may
/// apply it.
fn is_weaker(verdict: &Verdict, why: &Held) -> bool {
    match verdict {
        Verdict::Apply => true,
        Verdict::Hold(held) => held.why.may_be_applied() && !why.why.may_be_applied(),
    }
}

/// A list for the paths of a git folder that lies elsewhere.
struct InGit<'a>(&'a dyn PathSet);

impl PathSet for InGit<'_> {
    fn matches(&self, relative: &Path) -> bool {
        self.0.matches(&Path::new(".git").join(relative))
    }

    fn patterns(&self) -> Vec<String> {
        self.0.patterns()
    }
}

#[cfg(test)]
#[path = "settle_tests.rs"]
mod tests;
