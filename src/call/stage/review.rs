//! Stages that were kept: what is in them, and what a person decides about them.
//!
//! A person may apply what a policy did not let be applied by itself, but for what no policy can allow:
//! what the host would run without being asked, what stands at a covered path, and what is no file.
//! That is judged once more when it is applied: since then another call may have brought the other half
//! of a repository, or the user may have told git to run what is in a folder.

use std::collections::HashMap;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::json;

use super::around::seen_now;
use super::changes::{Changes, HeldChange};
use super::error::StagedError;
use super::settle::{By, PATIENCE, judge_root};
use crate::audit::Started;
use crate::call::record::{End, Unrecorded};
use crate::call::{CallError, Context};
use crate::config::Config;
use crate::environment::Environment;
use crate::error::Failure as _;
use crate::exit::Ending;
use crate::ids::CallId;
use crate::policy_files::Places;
use crate::stage::apply::{self, Sync};
use crate::stage::change::{Change, Held, Judged, Verdict, Why};
use crate::stage::compare::compare;
use crate::stage::diff::{Kind, Line};
use crate::stage::folder::{self, Root, Stage, StageState};
use crate::stage::turn::Turn;
use crate::stage::walk::{Bounds, walk};
use crate::workspace::grants::{Code, FileGrants, PathSet, Writes};

/// A call whose changes were held back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Kept {
    /// The call.
    pub call: String,
    /// Where it ran.
    pub workspace: PathBuf,
    /// How many changes were held back.
    pub held: usize,
    /// When, in milliseconds since 1970.
    pub at: i64,
}

/// A stage that is looked at.
#[derive(Debug)]
pub struct Looked {
    /// The call.
    pub call: String,
    /// The workspace.
    pub workspace: PathBuf,
    /// Each change that was held back.
    pub held: Vec<HeldChange>,
    /// The same with what is different, in the same order.
    pub diffs: Vec<Vec<Line>>,
}

/// The calls whose changes were held back, oldest first.
///
/// # Errors
/// The stages cannot be read.
pub fn kept(state: &Path) -> Result<Vec<Kept>, StagedError> {
    let listed = folder::list(state).map_err(|error| StagedError::Local("list stages", error))?;
    let mut all = Vec::new();
    for stage in listed.into_iter().filter(|stage| stage.state == StageState::Kept) {
        let call = stage.call.unwrap_or_else(|| stage.label.to_string());
        let at = stage.kept_at.map_or(0, |at| i64::try_from(at.as_millis()).unwrap_or(i64::MAX));
        let held = match Stage::open(state, &stage.label) {
            Ok(stage) => stage.held()?.len(),
            // Another process looks at it.
            Err(_) => continue,
        };
        all.push(Kept { call, workspace: stage.workspace, held, at });
    }
    Ok(all)
}

/// Opens the stage of a call, named by its id or the beginning of it.
fn open(state: &Path, call: &str) -> Result<Stage, StagedError> {
    let listed = folder::list(state).map_err(|error| StagedError::Local("list stages", error))?;
    let mut found = listed.into_iter().filter(|stage| {
        let own = stage.call.as_deref().unwrap_or(stage.label.as_str());
        stage.state == StageState::Kept && !call.is_empty() && own.starts_with(call)
    });
    match (found.next(), found.next()) {
        (Some(one), None) => Ok(Stage::open(state, &one.label)?),
        _ => Err(StagedError::None(call.to_owned())),
    }
}

/// Why each path was held back, by root and path. There is at least one.
fn reasons(stage: &Stage) -> Result<HashMap<(usize, PathBuf), Held>, StagedError> {
    let rows = stage.held()?;
    if rows.is_empty() {
        return Err(StagedError::None(stage.call().to_string()));
    }
    // Of several reasons for a path the first counts.
    Ok(rows.into_iter().rev().map(|(root, path, held)| ((root, path), held)).collect())
}

/// Every change of a stage that was held back, with its reason.
fn held(stage: &Stage) -> Result<Vec<Vec<(Change, Held)>>, StagedError> {
    let mut reasons = reasons(stage)?;
    let mut all = Vec::new();
    for (at, root) in stage.roots().iter().enumerate() {
        let host = root.open()?;
        let upper = std::fs::File::open(stage.upper(at))
            .map_err(|error| StagedError::Local("open a stage", error))?;
        let changes = walk(upper.as_fd(), host.as_fd(), Bounds::default())?;
        let with_reason = |change: Change| {
            let held = reasons.remove(&(at, change.path.clone()))?;
            Some((change, held))
        };
        all.push(changes.into_iter().filter_map(with_reason).collect());
    }
    Ok(all)
}

fn shown(stage: &Stage, root: usize, path: &Path) -> PathBuf {
    match root {
        0 => path.to_owned(),
        _ => stage.roots()[root].path().join(path),
    }
}

/// What was held back of a call, and what is different.
///
/// # Errors
/// There is no such stage, or it cannot be read.
pub fn look(state: &Path, call: &str) -> Result<Looked, StagedError> {
    let stage = open(state, call)?;
    let (mut held_changes, mut diffs) = (Vec::new(), Vec::new());
    for (at, changes) in held(&stage)?.into_iter().enumerate() {
        let host = stage.roots()[at].open()?;
        let upper = std::fs::File::open(stage.upper(at))
            .map_err(|error| StagedError::Local("open a stage", error))?;
        for (change, held) in &changes {
            held_changes.push(HeldChange::new(&shown(&stage, at, &change.path), held));
        }
        let hidden: Vec<bool> = changes.iter().map(|(_, held)| is_hidden(held.why)).collect();
        let changes: Vec<Change> = changes.into_iter().map(|(change, _)| change).collect();
        let root = stage.roots()[at].path();
        let compared = compare(&changes, &root, host.as_fd(), upper.as_fd());
        diffs.extend(compared.into_iter().zip(hidden).map(|(lines, hidden)| match hidden {
            true => without_content(lines),
            false => lines,
        }));
    }
    let workspace = stage.roots().first().map(|root| root.path()).unwrap_or_default();
    Ok(Looked { call: stage.call().to_string(), workspace, held: held_changes, diffs })
}

/// Whether the policy hides what the host has there: a program that may call us must not read it here.
fn is_hidden(why: Why) -> bool {
    matches!(why, Why::Covered | Why::Denied)
}

/// The heading of a difference alone.
fn without_content(mut lines: Vec<Line>) -> Vec<Line> {
    lines.retain(|line| line.kind == Kind::Heading);
    let text = "the policy hides it: its content is not shown".to_owned();
    lines.push(Line { kind: Kind::Note, text });
    lines
}

impl Looked {
    /// How many changes an apply of these paths would apply; of all, if none is named.
    ///
    /// # Errors
    /// A path is not among those that were held back.
    pub fn chosen(&self, paths: &[PathBuf]) -> Result<usize, StagedError> {
        let below = |held: &HeldChange, path: &Path| Path::new(&held.path).starts_with(path);
        for path in paths {
            if !self.held.iter().any(|held| below(held, path)) {
                let path = path.display().to_string();
                return Err(StagedError::NotHeld { path, call: self.call.clone() });
            }
        }
        let wanted = |held: &&HeldChange| {
            held.why.may_be_applied()
                && (paths.is_empty() || paths.iter().any(|path| below(held, path)))
        };
        Ok(self.held.iter().filter(wanted).count())
    }
}

/// What a person's apply came to.
#[derive(Debug)]
pub struct ByHand {
    /// The apply is a call of its own, which can be undone.
    pub call: String,
    /// What it came to.
    pub changes: Changes,
}

/// Applies what was held back of a call: all of it, or these paths and what lies below them. It is
/// judged again, by the host of now: what no policy can allow stays held back. It is recorded as a
/// call. It blocks.
///
/// # Errors
/// The stage is gone, or it cannot be applied.
pub fn apply(
    looked: &Looked,
    paths: &[PathBuf],
    (places, config): (&Places, &Config),
    context: &Context,
) -> Result<ByHand, CallError> {
    let workspace = looked.workspace.to_string_lossy();
    let started = Started::of_stage_apply(&looked.call, &workspace, &context.caller);
    let record = Unrecorded::new(places, context)?.open()?.start(&started)?;
    let call = record.id().clone();
    let state = crate::call::plan::state(places)?;
    let chosen = Chosen { call: &looked.call, paths, by: &call };
    let done = apply_chosen(state, &chosen, config, &context.environment);
    let (ending, code, detail) = match &done {
        Ok(changes) => (Ending::ok(), None, json!({ "changes": changes })),
        Err(error) => (Ending::of_kind(error.kind(), error.code()), Some(error.code()), json!({})),
    };
    record.end(End { ending, code, detail, rule: None, cost: None, requests: Vec::new() })?;
    Ok(ByHand { call: call.to_string(), changes: done? })
}

/// What a person wants applied.
struct Chosen<'a> {
    /// The call, or the beginning of its id.
    call: &'a str,
    /// Only these paths, if there are any.
    paths: &'a [PathBuf],
    /// The call under which it is undone.
    by: &'a CallId,
}

fn apply_chosen(
    state: &Path,
    chosen: &Chosen<'_>,
    config: &Config,
    environment: &Environment,
) -> Result<Changes, StagedError> {
    let mut stage = open(state, chosen.call)?;
    let roots: Vec<PathBuf> = stage.roots().iter().map(Root::path).collect();
    let Some(workspace) = roots.first() else {
        return Err(StagedError::None(chosen.call.to_owned()));
    };
    let mut reasons = reasons(&stage)?;
    // Until the apply is over, nothing of what is judged now changes by another call.
    let _turn = Turn::take(state, &roots, PATIENCE)?;
    let grants = everything();
    let around = (config, environment);
    let seen =
        seen_now(workspace, &grants, stage.covered()?, around).map_err(StagedError::Around)?;
    let by = By { grants, policy: "runner stage apply", seen: &seen };
    let mut judged = Vec::new();
    for at in 0..roots.len() {
        let own = judge_root(&stage, at, &by)?.into_iter();
        // What was not held back then is not what the person has seen.
        let held = own.filter_map(|now| {
            let held = reasons.remove(&(at, now.change.path.clone()))?;
            let path = shown(&stage, at, &now.change.path);
            let verdict = chosen.verdict(&path, held, now.verdict);
            Some(Judged { change: now.change, verdict })
        });
        judged.push(held.collect());
    }
    let own = stage.call().to_string();
    // What is applied now is the work of this call, and is undone by its name.
    stage.applied_by(chosen.by);
    let context = apply::Context { state, bounds: config.undo(), sync: Sync::Never };
    let applied = apply::apply(&stage, &judged, &context)?;
    let changes = Changes::of(applied, &own, &roots);
    if changes.held_count == 0 {
        stage.discard()?;
    }
    Ok(changes)
}

impl Chosen<'_> {
    /// What becomes of a change that was held back, and is judged as it is now.
    fn verdict(&self, path: &Path, held: Held, now: Verdict) -> Verdict {
        let wanted = self.paths.is_empty() || self.paths.iter().any(|it| path.starts_with(it));
        match now {
            _ if !(wanted && held.why.may_be_applied()) => Verdict::Hold(held),
            Verdict::Hold(now) if !now.why.may_be_applied() => Verdict::Hold(now),
            Verdict::Apply | Verdict::Hold(_) => Verdict::Apply,
        }
    }
}

/// The lists of somebody who may write everything. What the call's policy denied was held back for
/// that, and stays so.
fn everything<'a>() -> FileGrants<'a> {
    FileGrants {
        policy: [0; 32],
        read: &Any(true),
        write: &Any(true),
        create: &[],
        readonly: &Any(false),
        deny: &Any(false),
        writes: Writes::Some,
        code: Code::Granted,
    }
}

/// Every path, or none.
struct Any(bool);

impl PathSet for Any {
    fn matches(&self, _: &Path) -> bool {
        self.0
    }

    fn patterns(&self) -> Vec<String> {
        if self.0 { vec!["**".to_owned()] } else { Vec::new() }
    }
}

/// Throws away what was held back of a call; how many changes that were.
///
/// # Errors
/// There is no such stage, or it cannot be removed.
pub fn discard(state: &Path, call: &str) -> Result<usize, StagedError> {
    let stage = open(state, call)?;
    let count = stage.held()?.len();
    stage.discard()?;
    Ok(count)
}

#[cfg(test)]
#[path = "review_tests.rs"]
mod tests;
