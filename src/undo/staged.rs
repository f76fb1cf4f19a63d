//! The rows of what a command changed: all of them before the first change, and what it left afterwards.
//!
//! `stage` applies the changes and keeps what they take away as images. A row without an `after` says that
//! the change may or may not have happened; recovery of the stage fills it in.

use rusqlite::params;

use super::backups::Backups;
use super::journal::{json, limits, millis, prune};
use super::state::State;
use crate::config::Undo;
use crate::ids::CallId;
use crate::store::{Store, StoreError};

/// How the word for a change begins that a command made.
pub(super) const STAGED: &str = "staged-";

/// A change that is about to happen.
#[derive(Debug)]
pub(crate) struct StagedRow {
    /// The root, encoded.
    pub workspace: String,
    /// As the table has it: put, gone, made, linked, mode, tree.
    pub word: &'static str,
    /// Below the root, encoded.
    pub path: String,
    /// What has the name.
    pub before: State,
    /// The name of its image, if it should be kept. Taken away where the bounds do not allow it.
    pub image: Option<String>,
    /// Bytes of the image.
    pub size: u64,
}

/// Writes rows in one transaction; the ids. Images that are too large for the bounds are taken out.
pub(crate) fn keep_staged(
    store: &Store,
    backups: &Backups,
    call: &CallId,
    rows: &mut [StagedRow],
    bounds: &Undo,
) -> Result<Vec<i64>, StoreError> {
    let (file_max, call_max) = limits(bounds);
    let mut kept = 0_u64;
    for row in rows.iter_mut() {
        match row.image.is_some() && row.size <= file_max && kept + row.size <= call_max {
            true => kept += row.size,
            false => (row.image, row.size) = (None, 0),
        }
    }
    let write = || {
        let at = millis(crate::sys::now());
        let transaction = store.writing()?;
        let mut ids = Vec::with_capacity(rows.len());
        {
            let mut statement = transaction.prepare(
                "INSERT INTO changes (call, at, workspace, change, path, before, after, backup, size)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, '[]', ?7, ?8)",
            )?;
            for row in rows.iter() {
                statement.execute(params![
                    call.as_str(),
                    at,
                    row.workspace,
                    format!("{STAGED}{}", row.word),
                    row.path,
                    json(&row.before),
                    row.image,
                    i64::try_from(row.size).unwrap_or(i64::MAX)
                ])?;
                ids.push(transaction.last_insert_rowid());
            }
        }
        transaction.commit()?;
        if kept > 0 {
            prune(store, backups, [call.as_str(), call.as_str()], bounds)?;
        }
        Ok(ids)
    };
    write().map_err(|error| store.failed("write in", error))
}

/// Notes what changes left, and takes out the rows of those that did not happen (`None`).
pub(crate) fn finish_staged(
    store: &Store,
    left: &[(i64, Option<State>)],
) -> Result<(), StoreError> {
    let write = || {
        let transaction = store.writing()?;
        {
            let mut update = transaction.prepare("UPDATE changes SET after = ?2 WHERE id = ?1")?;
            let mut delete = transaction.prepare("DELETE FROM changes WHERE id = ?1")?;
            for (id, state) in left {
                match state {
                    Some(state) => update.execute(params![id, json(&[state])])?,
                    None => delete.execute([id])?,
                };
            }
        }
        transaction.commit()
    };
    write().map_err(|error| store.failed("write in", error))
}
