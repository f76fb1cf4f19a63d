//! One undo from its record to its end.

use std::path::PathBuf;
use std::time::Duration;

use runner_policy::Verdict;
use serde::Serialize;
use serde_json::json;

use super::error::UndoError;
use crate::audit::{Event, Ledger, Requested, Started};
use crate::call::record::{End, Record, Unrecorded};
use crate::call::{CallError, Context};
use crate::codes::Code;
use crate::config::Undo;
use crate::exit::{Ending, Kind};
use crate::policy_files::Places;
use crate::stage::turn::Turn;
use crate::store::Store;
use crate::undo::names::decode;
use crate::undo::{
    Backups, Changes, Journal, Kept as Change, Obstacle, Site, Step, Writing, changes, mark, plan,
};
use crate::workspace::Workspace;

/// How long an undo waits for calls that change the same folders.
const PATIENCE: Duration = Duration::from_secs(60);

/// What an undo came to, or would come to.
#[derive(Debug, Serialize)]
pub struct Undone {
    /// The call that was taken back.
    pub undid: String,
    /// The undo's own call; `None` if it was only looked at.
    pub call: Option<String>,
    /// The workspace.
    pub workspace: String,
    /// What was done, in order; none if everything was as before already.
    pub steps: Vec<Step>,
}

/// Whether steps are done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UndoMode {
    /// They are.
    Restore,
    /// They are only told.
    Look,
}

/// Takes back what a call changed, through the broker or by its command. It blocks: a host that has an event loop gives it a thread.
///
/// # Errors
/// See [`UndoError`].
pub fn run(
    ledger: &Ledger,
    (places, bounds): (&Places, Undo),
    call: &str,
    mode: UndoMode,
    context: &Context,
) -> Result<Undone, UndoError> {
    let store = ledger.store();
    // An apply that a death interrupted is ended first: until then it is not known what the call left.
    crate::stage::recover::finish_all(store.folder(), crate::stage::apply::Sync::Once)
        .map_err(|error| CallError::Local("recover interrupted calls", error))?;
    let Changes { workspace, undone, all: changes } = changes(store, call)?;
    let Some(workspace) = workspace else { return Err(UndoError::Nothing(call.to_owned())) };
    if undone.is_some() {
        // What is there now is no longer that call's.
        return Ok(Undone { undid: call.to_owned(), call: None, workspace, steps: Vec::new() });
    }
    let sites = open_sites(store, &workspace, &changes, context)?;
    // From the look at what is there until all is restored, no other call changes it.
    let folders: Vec<PathBuf> = changes.iter().map(|(root, _)| decode(root)).collect();
    let _turn = Turn::take(store.folder(), &folders, PATIENCE)
        .map_err(|error| CallError::Local("wait for other calls", std::io::Error::other(error)))?;
    let planned = plan_all(&sites, &changes);
    if mode == UndoMode::Look {
        let steps = planned.map_err(|found| UndoError::Conflict(call.to_owned(), found))?;
        let steps = steps.into_iter().map(|(_, step)| step).collect();
        return Ok(Undone { undid: call.to_owned(), call: None, workspace, steps });
    }
    let started = Started::of_undo(call, &workspace, &context.caller);
    let record = Unrecorded::new(places, context)?.open()?.start(&started)?;
    let own = record.id().to_string();
    let done =
        planned.map_err(|found| UndoError::Conflict(call.to_owned(), found)).and_then(|steps| {
            let own = |(root, _): &(String, _)| {
                let root = decode(root);
                Journal::new(record.id(), places, &root, bounds).of_undo(call)
            };
            let journals: Vec<Journal> = changes.iter().map(own).collect();
            restore(&sites, &record, &journals, steps)
        });
    let (ending, code, count) = match &done {
        Ok(steps) => (Ending::ok(), None, steps.len()),
        Err(error) => {
            let code = crate::error::Failure::code(error);
            let count = match error {
                UndoError::Step { done, .. } => done + 1,
                _ => 0,
            };
            (Ending::of_kind(Kind::Broken, code), Some(code), count)
        }
    };
    let detail = json!({ "undid": call, "broker": { "usage": { "recorded": count } } });
    record.end(End { ending, code, detail, rule: None, cost: None, requests: Vec::new() })?;
    let steps = done?;
    mark(store, call, &own)?;
    Ok(Undone { undid: call.to_owned(), call: Some(own), workspace, steps })
}

/// Does the steps; each is recorded as the request that it is.
fn restore(
    sites: &[Site],
    record: &Record,
    journals: &[Journal],
    steps: Vec<(usize, Step)>,
) -> Result<Vec<Step>, UndoError> {
    for (at, (root, step)) in steps.iter().enumerate() {
        let begun = std::time::Instant::now();
        let done = sites[*root].take(step, &journals[*root]);
        let requested = Requested {
            address: None,
            request: u32::try_from(at + 1).unwrap_or(u32::MAX),
            method: "undo.restore",
            object: format!("{}: {}", step.path, step.action),
            decision: Verdict::Allow,
            code: done.is_err().then_some(Code::UndoFailed),
            rule: None,
            bytes_in: 0,
            bytes_out: 0,
            us: u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX),
            call: None,
        };
        record.events(&[Event::Request(&requested)])?;
        done.map_err(|error| UndoError::Step {
            call: record.id().to_string(),
            path: step.path.clone(),
            error,
            done: at,
        })?;
    }
    Ok(steps.into_iter().map(|(_, step)| step).collect())
}

/// Opens the workspace of a call, and other folders that a command changed.
fn open_sites(
    store: &Store,
    workspace: &str,
    changes: &[(String, Vec<Change>)],
    context: &Context,
) -> Result<Vec<Site>, UndoError> {
    let failed = |what| move |error| CallError::Local(what, error);
    let mut sites = Vec::with_capacity(changes.len());
    for (root, own) in changes {
        let path = decode(root);
        let backups = Backups::open(store.folder()).map_err(failed("open the backups"))?;
        let site = if root == workspace {
            let opened = Workspace::open_at(&path, &path, &context.environment)
                .map_err(|error| UndoError::Workspace(path.clone(), error))?;
            let writing = match own.iter().all(|change| change.staged) {
                true => Writing::AsCommand,
                false => Writing::AsTool,
            };
            Site::new(&opened, backups, writing)
        } else {
            Site::beside(&path, backups)
        };
        sites.push(site.map_err(failed("open the workspace"))?);
    }
    Ok(sites)
}

/// The steps in all folders, each with the number of its folder.
fn plan_all(
    sites: &[Site],
    changes: &[(String, Vec<Change>)],
) -> Result<Vec<(usize, Step)>, Vec<Obstacle>> {
    let (mut steps, mut obstacles) = (Vec::new(), Vec::new());
    for (index, (site, (_, own))) in sites.iter().zip(changes).enumerate() {
        match plan(site, own) {
            Ok(own) => steps.extend(own.into_iter().map(|step| (index, step))),
            Err(found) => obstacles.extend(found),
        }
    }
    if obstacles.is_empty() { Ok(steps) } else { Err(obstacles) }
}
