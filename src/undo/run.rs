//! One undo from its record to its end, and what can be undone.

use std::path::PathBuf;

use rusqlite::params;
use serde::Serialize;
use serde_json::json;

use super::backups::Backups;
use super::error::UndoError;
use super::journal::{Journal, millis};
use super::plan::{Change, Step, plan};
use super::site::Site;
use super::state::State;
use crate::audit::{Event, Ledger, Requested, Started};
use crate::call::record::{End, Record};
use crate::config::Undo;
use crate::exit::{Ending, Kind};
use crate::policies::Places;
use crate::sandbox::workspace::Workspace;
use crate::store::Store;

/// A call that can be undone.
#[derive(Debug, Clone, Serialize)]
pub struct Undoable {
    /// The call.
    pub call: String,
    /// When it changed something first, in milliseconds since 1970.
    pub at: i64,
    /// What it was.
    pub command: String,
    /// Where.
    pub workspace: String,
    /// Changes that were kept.
    pub changes: i64,
    /// Bytes of their contents.
    pub bytes: i64,
    /// The undo that took it back, if one did.
    pub undone: Option<String>,
    /// Until when it is kept, in milliseconds since 1970.
    pub until: i64,
}

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
pub enum Doing {
    /// They are.
    Restore,
    /// They are only told.
    Look,
}

/// The calls whose changes are kept, newest first.
///
/// # Errors
/// The store refused.
pub fn list(ledger: &Ledger, bounds: Undo) -> Result<Vec<Undoable>, UndoError> {
    let store = ledger.store();
    let read = || {
        store
            .connection()
            .prepare(
                "SELECT call, min(at), max(at), workspace, count(*), sum(size), max(undone),
                        (SELECT body ->> 'command' FROM events WHERE events.call = changes.call AND kind = 'start' LIMIT 1)
                 FROM changes GROUP BY call ORDER BY min(id) DESC",
            )?
            .query_map([], |row| {
                Ok(Undoable {
                    call: row.get(0)?,
                    at: row.get(1)?,
                    until: row.get::<_, i64>(2)?.saturating_add(millis(bounds.age)),
                    workspace: row.get(3)?,
                    changes: row.get(4)?,
                    bytes: row.get(5)?,
                    undone: row.get(6)?,
                    command: row.get::<_, Option<String>>(7)?.unwrap_or_default(),
                })
            })?
            .collect::<rusqlite::Result<Vec<_>>>()
    };
    Ok(read().map_err(|error| store.failed("read", error))?)
}

/// Takes back what a call changed through the broker.
///
/// # Errors
/// See [`UndoError`].
pub fn run(
    ledger: &Ledger,
    (places, bounds): (&Places, Undo),
    call: &str,
    doing: Doing,
) -> Result<Undone, UndoError> {
    let store = ledger.store();
    let Changes { workspace, undone, all: changes } = changes(store, call)?;
    let Some(workspace) = workspace else { return Err(UndoError::Nothing(call.to_owned())) };
    if undone.is_some() {
        // What is there now is no longer that call's.
        return Ok(Undone { undid: call.to_owned(), call: None, workspace, steps: Vec::new() });
    }
    let root = PathBuf::from(&workspace);
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let opened = Workspace::open_at(&root, &root, home.as_deref())
        .map_err(|error| UndoError::Workspace(root.clone(), error))?;
    let backups = Backups::open(store.folder())
        .map_err(|error| crate::call::CallError::Local("open the backups", error))?;
    let site = Site::new(opened, backups);
    let planned = plan(&site, &changes);
    if doing == Doing::Look {
        let steps = planned.map_err(|found| UndoError::Conflict(call.to_owned(), found))?;
        return Ok(Undone { undid: call.to_owned(), call: None, workspace, steps });
    }
    let mut record = Record::open(places)?;
    let own = record.id().to_string();
    record.start(&Started::of_undo(call, &workspace))?;
    let done =
        planned.map_err(|found| UndoError::Conflict(call.to_owned(), found)).and_then(|steps| {
            let journal = Journal::new(record.id(), places, &root, bounds).of_undo(call);
            restore(&site, &record, &journal, steps)
        });
    let (ending, code, count) = match &done {
        Ok(steps) => (Ending::ok(), None, steps.len()),
        Err(error) => {
            let code = crate::error::Failure::code(error);
            let count = match error {
                UndoError::Step { done, .. } => done + 1,
                _ => 0,
            };
            (Ending::of_kind(Kind::Broken, code), Some(code.to_owned()), count)
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
    site: &Site,
    record: &Record,
    journal: &Journal,
    steps: Vec<Step>,
) -> Result<Vec<Step>, UndoError> {
    for (at, step) in steps.iter().enumerate() {
        let begun = std::time::Instant::now();
        let done = site.take(step, journal);
        let requested = Requested {
            request: u32::try_from(at + 1).unwrap_or(u32::MAX),
            method: "undo.restore",
            object: format!("{}: {}", step.path, step.action),
            decision: "allow",
            code: done.is_err().then_some("undo_failed"),
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
    Ok(steps)
}

/// What a call changed.
struct Changes {
    /// Where; `None` if nothing is known.
    workspace: Option<String>,
    /// The call that has taken it back.
    undone: Option<String>,
    /// Each change, in order.
    all: Vec<Change>,
}

/// What a call changed, as it was noted.
fn changes(store: &Store, call: &str) -> Result<Changes, UndoError> {
    let (mut workspace, mut undone) = (None, None);
    let mut read = || {
        let mut statement = store.connection().prepare(
            "SELECT workspace, path, goal, before, after, backup, undone FROM changes WHERE call = ?1 ORDER BY id",
        )?;
        let mut rows = statement.query([call])?;
        let mut changes = Vec::new();
        while let Some(row) = rows.next()? {
            workspace = Some(row.get(0)?);
            undone = row.get(6)?;
            let (before, after): (String, String) = (row.get(3)?, row.get(4)?);
            changes.push(Change {
                path: row.get(1)?,
                goal: row.get(2)?,
                before: serde_json::from_str(&before).unwrap_or(State::Other),
                after: serde_json::from_str(&after).unwrap_or_default(),
                backup: row.get(5)?,
            });
        }
        Ok(changes)
    };
    let all = read().map_err(|error| store.failed("read", error))?;
    Ok(Changes { workspace, undone, all })
}

/// Notes who has taken a call back. Where that call was an undo itself, what it had taken back stands again.
fn mark(store: &Store, call: &str, by: &str) -> Result<(), UndoError> {
    let write = || {
        store
            .connection()
            .execute(
                "UPDATE changes SET undone = CASE WHEN call = ?1 THEN ?2 END WHERE call = ?1 OR undone = ?1",
                params![call, by],
            )
            .map(drop)
    };
    Ok(write().map_err(|error| store.failed("write in", error))?)
}
