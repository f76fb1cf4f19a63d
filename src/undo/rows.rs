//! The rows of changes: which calls have some, what they say, and who took them back.

use rusqlite::params;
use serde::Serialize;

use super::journal::millis;
use super::plan::Change;
use super::staged::STAGED;
use super::state::State;
use crate::config::Undo;
use crate::store::{Store, StoreError};

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

/// The calls whose changes are kept, newest first.
///
/// # Errors
/// The store refused.
pub fn list(store: &Store, bounds: Undo) -> Result<Vec<Undoable>, StoreError> {
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
    read().map_err(|error| store.failed("read", error))
}

/// What a call changed.
pub(crate) struct Changes {
    /// Where; `None` if nothing is known.
    pub workspace: Option<String>,
    /// The call that has taken it back.
    pub undone: Option<String>,
    /// Each change, in order, by root: a command may have changed a git folder beside its workspace.
    pub all: Vec<(String, Vec<Change>)>,
}

/// What a call changed, as it was noted.
pub(crate) fn changes(store: &Store, call: &str) -> Result<Changes, StoreError> {
    let (mut workspace, mut undone): (Option<String>, _) = (None, None);
    let mut read = || {
        let mut statement = store.connection().prepare(
            "SELECT workspace, path, goal, before, after, backup, undone, change FROM changes WHERE call = ?1 ORDER BY id",
        )?;
        let mut rows = statement.query([call])?;
        let mut changes: Vec<(String, Vec<Change>)> = Vec::new();
        while let Some(row) = rows.next()? {
            let root: String = row.get(0)?;
            workspace.get_or_insert_with(|| root.clone());
            undone = row.get(6)?;
            let (before, after): (String, String) = (row.get(3)?, row.get(4)?);
            let change = Change {
                path: row.get(1)?,
                goal: row.get(2)?,
                before: State::of_text(&before),
                after: serde_json::from_str(&after).unwrap_or_default(),
                backup: row.get(5)?,
                staged: row.get::<_, String>(7)?.starts_with(STAGED),
            };
            match changes.iter_mut().find(|(known, _)| *known == root) {
                Some((_, own)) => own.push(change),
                None => changes.push((root, vec![change])),
            }
        }
        Ok(changes)
    };
    let all = read().map_err(|error| store.failed("read", error))?;
    Ok(Changes { workspace, undone, all })
}

/// Notes who has taken a call back. Where that call was an undo itself, what it had taken back stands again.
pub(crate) fn mark(store: &Store, call: &str, by: &str) -> Result<(), StoreError> {
    let write = || {
        store
            .connection()
            .execute(
                "UPDATE changes SET undone = CASE WHEN call = ?1 THEN ?2 END WHERE call = ?1 OR undone = ?1",
                params![call, by],
            )
            .map(drop)
    };
    write().map_err(|error| store.failed("write in", error))
}
