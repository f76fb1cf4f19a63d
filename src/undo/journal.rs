//! Before each change through the broker: what is there, in a row, and its content, in a backup.
//!
//! What a call changes again and again is kept once, as it was before the first time. A row is written before
//! its change happens, so that a call which dies in between can be undone too.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rusqlite::{Transaction, params};

use super::backups::{Backups, Copied};
use super::keep::{Change, Keep, NotKept, What};
use super::names::decode_os;
use super::state::{State, open_file};
use crate::config::Undo;
use crate::ids::CallId;
use crate::policy_files::Places;
use crate::store::{Store, StoreError};

/// The largest file whose content is kept, if all may have as much.
const FILE_MAX: u64 = 64 << 20;
/// Bytes that are kept for one call, if all may have as many.
const CALL_MAX: u64 = 512 << 20;

/// Keeps what one call takes away.
pub struct Journal {
    call: CallId,
    /// The call that this one takes back, if it is an undo.
    undoes: Option<String>,
    places: Places,
    workspace: String,
    bounds: Undo,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    /// Opened by the first change: most calls change nothing.
    open: Option<(Store, Backups)>,
    /// How this call left what it changed, by path.
    left: HashMap<String, Left>,
    /// Bytes of this call.
    kept: u64,
    /// Bytes of all calls, at most: others may have let go of some meanwhile.
    total: u64,
}

/// A path as the call left it.
struct Left {
    row: i64,
    state: State,
    /// What the row says that the path may be.
    after: Vec<State>,
    stands: Stands,
}

/// What the row of an earlier change can stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stands {
    /// Also for later changes of the same path: it has what was there before the first.
    ForLater,
    /// For its own change alone: what was moved or made here was not kept by it.
    Alone,
}

/// A row that is about to be written.
struct Row<'a> {
    change: &'a Change<'a>,
    word: &'static str,
    goal: Option<&'a str>,
    before: State,
    after: Vec<State>,
    copied: Option<Copied>,
    /// A tree that is kept under this name, and its bytes.
    image: Option<(&'a str, u64)>,
    /// The row of an earlier change of the same path, which stands for both.
    known: Option<i64>,
}

impl Journal {
    /// For one call in a workspace.
    #[must_use]
    pub fn new(call: &CallId, places: &Places, workspace: &Path, bounds: Undo) -> Self {
        Self {
            call: call.clone(),
            undoes: None,
            places: places.clone(),
            // The broker serves none whose path is not text.
            workspace: workspace.to_string_lossy().into_owned(),
            bounds,
            inner: Mutex::default(),
        }
    }

    /// For an undo of this call, which is needed until it is over.
    #[must_use]
    pub fn of_undo(self, call: &str) -> Self {
        Self { undoes: Some(call.to_owned()), ..self }
    }

    /// Lets go of what is too old or too much; the bytes that are left.
    fn prune(&self, store: &Store, backups: &Backups) -> rusqlite::Result<u64> {
        let own = self.call.as_str();
        prune(store, backups, [own, self.undoes.as_deref().unwrap_or(own)], &self.bounds)
    }

    fn keep(&self, inner: &mut Inner, changes: &[Change<'_>]) -> Result<(), String> {
        if inner.open.is_none() {
            let (store, backups, total) = self.open().map_err(|error| error.to_string())?;
            inner.total = total;
            inner.open = Some((store, backups));
        }
        let Inner { open: Some((store, backups)), left, kept, total } = inner else {
            return Ok(());
        };
        let already = *kept;
        let mut rows = Vec::with_capacity(changes.len());
        for change in changes {
            let row = row(change, left, backups, kept, &self.bounds)
                .map_err(|error| format!("{}: {error}", change.path))?;
            rows.push(row);
        }
        let write = || -> Result<Vec<i64>, String> {
            let failed = |error: rusqlite::Error| error.to_string();
            let transaction = store.writing().map_err(failed)?;
            let mut ids = Vec::with_capacity(rows.len());
            for row in &rows {
                if let Some(copied) = &row.copied {
                    backups.name(copied).map_err(|error| error.to_string())?;
                }
                ids.push(self.insert(&transaction, row).map_err(failed)?);
            }
            transaction.commit().map_err(failed)?;
            Ok(ids)
        };
        let ids = write()?;
        *total += *kept - already;
        if *total > self.bounds.size {
            *total = self.prune(store, backups).map_err(|error| error.to_string())?;
        }
        for (row, id) in rows.into_iter().zip(ids) {
            let Row { change, after, before, .. } = row;
            match (&change.what, &before) {
                // Paths below have moved or gone with it: what was known of them is not true any more.
                (What::Moved { .. } | What::Made { .. } | What::TreeGone { .. }, _)
                | (What::Gone, State::Folder { .. }) => left.clear(),
                _ => {}
            }
            let path = match change.what {
                What::Moved { to, .. } => to,
                _ => change.path,
            };
            let stands = match change.what {
                What::Moved { .. }
                | What::Made { .. }
                | What::Mode { .. }
                | What::TreeGone { .. }
                | What::TreeBack { .. } => Stands::Alone,
                What::Put { .. } | What::Grow | What::Gone | What::Linked { .. } => {
                    Stands::ForLater
                }
            };
            left.insert(path.to_owned(), Left { row: id, state: State::Other, after, stands });
        }
        Ok(())
    }

    fn open(&self) -> Result<(Store, Backups, u64), Box<dyn std::error::Error>> {
        let store = Store::open(self.places.state.as_deref())?;
        let backups = Backups::open(store.folder())?;
        let total = self.prune(&store, &backups)?;
        Ok((store, backups, total))
    }

    fn insert(&self, transaction: &Transaction<'_>, row: &Row<'_>) -> rusqlite::Result<i64> {
        let after = json(&row.after);
        if let Some(known) = row.known {
            transaction
                .prepare_cached("UPDATE changes SET after = ?2 WHERE id = ?1")?
                .execute(params![known, after])?;
            return Ok(known);
        }
        let at = i64::try_from(crate::sys::now().as_millis()).unwrap_or(i64::MAX);
        let copied = row.copied.as_ref();
        let (backup, size) = match (copied, row.image) {
            (Some(copied), _) => (Some(copied.digest.to_hex().to_string()), copied.size),
            (None, Some((image, size))) => (Some(image.to_owned()), size),
            (None, None) => (None, 0),
        };
        let size = i64::try_from(size).unwrap_or(i64::MAX);
        transaction
            .prepare_cached(
                "INSERT INTO changes (call, at, workspace, change, path, goal, before, after, backup, size)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
            )?
            .execute(params![
                self.call.as_str(),
                at,
                self.workspace,
                row.word,
                row.change.path,
                row.goal,
                json(&row.before),
                after,
                backup,
                size
            ])?;
        Ok(transaction.last_insert_rowid())
    }
}

impl Keep for Journal {
    fn before(&self, changes: &[Change<'_>]) -> Result<(), NotKept> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        self.keep(&mut inner, changes).map_err(NotKept)
    }

    fn after(&self, change: &Change<'_>) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let (path, folder, name) = match change.what {
            What::Moved { to, folder, name } => (to, folder, name),
            _ => (change.path, change.folder, change.name),
        };
        let Inner { open: Some((store, _)), left, .. } = &mut *inner else { return };
        let name = decode_os(name);
        let (Some(known), Ok(state)) = (left.get_mut(path), State::glance(folder, &*name)) else {
            return;
        };
        known.state = state.clone();
        // Of the others it was known beforehand.
        if matches!(change.what, What::Grow | What::Moved { .. } | What::Made { .. }) {
            known.after = vec![state];
            // What cannot be noted cannot be undone later, and says so then.
            let _ = store.connection().execute(
                "UPDATE changes SET after = ?2 WHERE id = ?1",
                params![known.row, json(&known.after)],
            );
        }
    }
}

/// The largest file, and the bytes of one call, that are kept within the bounds.
pub(super) fn limits(bounds: &Undo) -> (u64, u64) {
    (FILE_MAX.min(bounds.size), CALL_MAX.min(bounds.size))
}

fn row<'a>(
    change: &'a Change<'a>,
    left: &HashMap<String, Left>,
    backups: &Backups,
    kept: &mut u64,
    bounds: &Undo,
) -> io::Result<Row<'a>> {
    let (file_max, call_max) = limits(bounds);
    let (word, goal, mut after) = match change.what {
        What::Put { digest, size, mode } => {
            let digest = Some(digest.to_hex().to_string());
            ("put", None, vec![State::File { mode, size, digest, stamp: None }])
        }
        What::Grow => ("grow", None, Vec::new()),
        What::Gone => ("gone", None, vec![State::Absent]),
        What::Made { mode } => ("made", None, vec![State::Folder { mode, stamp: None }]),
        What::Mode { mode } => ("mode", None, vec![State::Folder { mode, stamp: None }]),
        What::TreeGone { .. } => ("tree", None, vec![State::Absent]),
        What::TreeBack { tree } => ("tree", None, vec![State::of_text(tree)]),
        What::Linked { target } => {
            ("linked", None, vec![State::Link { target: target.to_owned() }])
        }
        What::Moved { to, .. } => ("moved", Some(to), Vec::new()),
    };
    let (path, folder, name) = match change.what {
        What::Moved { to, folder, name } => (to, folder, name),
        _ => (change.path, change.folder, change.name),
    };
    let raw = decode_os(name);
    let name = raw.as_os_str();
    let now = State::glance(folder, name)?;
    let image = match change.what {
        What::TreeGone { image, size, .. } => Some((image, size)),
        _ => None,
    };
    let again =
        left.get(path).filter(|left| left.stands == Stands::ForLater && left.state.is(&now));
    let structural = matches!(change.what, What::Moved { .. } | What::Made { .. })
        || matches!(now, State::Folder { .. });
    if let Some(again) = again.filter(|_| !structural) {
        // Until it has happened, it may also be as the call left it before.
        after.splice(0..0, again.after.last().cloned());
        return Ok(Row {
            change,
            word,
            goal,
            before: now,
            after,
            copied: None,
            image: None,
            known: Some(again.row),
        });
    }
    let (before, copied) = match now {
        State::Folder { .. } if let What::TreeGone { tree, .. } = change.what => {
            (State::of_text(tree), None)
        }
        State::File { size, .. } if size <= file_max && *kept + size <= call_max => {
            let file = open_file(folder, name)?;
            // It may have grown since.
            let copied = backups.copy(&file, file_max.min(call_max - *kept))?;
            *kept += copied.as_ref().map_or(0, |copied| copied.size);
            (State::of_file(&file, copied.as_ref().map(|copied| &copied.digest))?, copied)
        }
        other => (other, None),
    };
    Ok(Row { change, word, goal, before, after, copied, image, known: None })
}

/// Lets go of what is too old or too much, whole calls at a time; the bytes that are left. Never of what is spared, nor of
/// a call that runs: of half a call, nothing could be undone rightly.
pub(super) fn prune(
    store: &Store,
    backups: &Backups,
    spared: [&str; 2],
    bounds: &Undo,
) -> rusqlite::Result<u64> {
    let now = i64::try_from(crate::sys::now().as_millis()).unwrap_or(i64::MAX);
    let since = now.saturating_sub(millis(bounds.age));
    let oldest = "SELECT coalesce(min(at), ?1) FROM (SELECT at FROM changes ORDER BY id LIMIT 1)";
    let total = "SELECT coalesce(sum(size), 0) FROM (SELECT max(size) AS size FROM changes WHERE backup IS NOT NULL GROUP BY backup)";
    let connection = store.connection();
    let is_old = connection.query_row(oldest, [now], |row| row.get::<_, i64>(0))? < since;
    let bytes = |connection: &rusqlite::Connection| {
        connection.query_row(total, [], |row| row.get::<_, i64>(0)).map(i64::unsigned_abs)
    };
    let mut left = bytes(connection)?;
    if !is_old && left <= bounds.size {
        return Ok(left);
    }
    let transaction = store.writing()?;
    transaction.execute(
        "DELETE FROM changes WHERE call IN (SELECT call FROM changes GROUP BY call HAVING max(at) < ?1)
         AND call NOT IN (?2, ?3) AND call NOT IN (SELECT call FROM running)",
        params![since, spared[0], spared[1]],
    )?;
    loop {
        left = bytes(&transaction)?;
        if left <= bounds.size {
            break;
        }
        let gone = transaction.execute(
            "DELETE FROM changes WHERE call = (SELECT call FROM changes WHERE backup IS NOT NULL
             AND call NOT IN (?1, ?2) AND call NOT IN (SELECT call FROM running) ORDER BY id LIMIT 1)",
            spared,
        )?;
        if gone == 0 {
            break;
        }
    }
    remove_unwanted(&transaction, backups)?;
    transaction.commit()?;
    Ok(left)
}

/// A time as the table has it.
pub(super) fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

/// Removes contents that no row refers to; how many there were.
///
/// # Errors
/// The store refused.
pub fn sweep(store: &Store) -> Result<u64, StoreError> {
    let Ok(backups) = Backups::open(store.folder()) else { return Ok(0) };
    let sweep = || {
        let transaction = store.writing()?;
        let removed = remove_unwanted(&transaction, &backups)?;
        transaction.commit()?;
        Ok(removed)
    };
    sweep().map_err(|error| store.failed("sweep the backups of", error))
}

fn remove_unwanted(transaction: &Transaction<'_>, backups: &Backups) -> rusqlite::Result<u64> {
    let wanted = transaction
        .prepare("SELECT DISTINCT backup FROM changes WHERE backup IS NOT NULL")?
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<HashSet<String>>>()?;
    // A folder that cannot be read is looked at again next time.
    Ok(backups.retain(|digest| wanted.contains(digest)).unwrap_or(0))
}

pub(super) fn json(value: &impl serde::Serialize) -> String {
    // Plain data with text keys: writing it as JSON cannot fail.
    serde_json::to_string(value).unwrap_or_default()
}
