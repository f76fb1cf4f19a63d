//! Appending to the ledger and reading from it.

use std::collections::HashMap;

use rusqlite::{OptionalExtension, Row as SqlRow, params};
use serde::Serialize;
use serde_json::Value;

use super::event::{Event, Kind};
use crate::engine::{CallId, Owner};
use crate::exit::{ExitCode, Status};
use crate::store::{Store, StoreError};
use crate::text::harmless_json;

/// The ledger in a store.
#[derive(Debug)]
pub struct Ledger<'s> {
    store: &'s Store,
}

/// One event as recorded.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// Its number.
    pub seq: i64,
    /// Milliseconds since 1970.
    pub at: i64,
    /// The call.
    pub call: String,
    /// The kind.
    pub kind: Kind,
    /// The body.
    pub body: Value,
}

/// One call, from all its events.
#[derive(Debug, Clone, Serialize)]
pub struct Summary {
    /// The call.
    pub call: String,
    /// When it was decided, in milliseconds since 1970.
    pub at: i64,
    /// `running`, `denied`, `needs_approval`, `aborted`, or how it ended.
    pub status: String,
    /// The exit code that the caller saw, if it ended or was refused.
    pub exit: Option<u64>,
    /// How long it took, if it ended.
    pub duration_ms: Option<u64>,
    /// The decision's code.
    pub code: String,
    /// The code that it ended with, if something was wrong: a tool is decided while it runs.
    pub error: Option<String>,
    /// `policy/id` of the rule.
    pub rule: Option<String>,
    /// The command.
    pub command: String,
    /// The workspace.
    pub workspace: String,
}

/// Which calls to list.
#[derive(Debug, Clone, Copy, Default)]
pub struct Filter {
    /// Only those that were denied or need approval, at the start or while they ran.
    pub refused: bool,
    /// Not before this moment, in milliseconds since 1970.
    pub since: Option<i64>,
    /// Only the newest.
    pub most: Option<usize>,
}

impl<'s> Ledger<'s> {
    /// The ledger of a store.
    #[must_use]
    pub fn new(store: &'s Store) -> Self {
        Self { store }
    }

    /// Appends an event. A start also marks the call as running, an end unmarks it, in one transaction.
    ///
    /// # Errors
    /// The store refused; nothing was written.
    pub fn append(&self, call: &CallId, event: Event<'_>, owner: &Owner) -> Result<(), StoreError> {
        let (kind, body) = match event {
            Event::Start(body) => (Kind::Start, serde_json::to_string(body)),
            Event::Refused(body) => (Kind::Refused, serde_json::to_string(body)),
            Event::End(body) => (Kind::End, serde_json::to_string(body)),
        };
        // Plain data with text keys: writing it as JSON cannot fail.
        let body =
            body.unwrap_or_else(|error| format!("{{\"unwritable\":{:?}}}", error.to_string()));
        let body = harmless_json(body);
        let write = || {
            let transaction = self.store.connection().unchecked_transaction()?;
            self.insert(call.as_str(), kind, &body)?;
            match kind {
                Kind::Start => transaction.execute(
                    "INSERT INTO running (call, pid, started, place) VALUES (?1, ?2, ?3, ?4)",
                    params![call.as_str(), owner.pid, owner.started.cast_signed(), owner.place],
                )?,
                Kind::End | Kind::Aborted => {
                    transaction.execute("DELETE FROM running WHERE call = ?1", [call.as_str()])?
                }
                Kind::Refused => 0,
            };
            transaction.commit()
        };
        write().map_err(|error| self.store.failed("record a call in", error))
    }

    fn insert(&self, call: &str, kind: Kind, body: &str) -> rusqlite::Result<usize> {
        let at = i64::try_from(crate::engine::now().as_millis()).unwrap_or(i64::MAX);
        self.store
            .connection()
            .prepare_cached("INSERT INTO events (at, call, kind, body) VALUES (?1, ?2, ?3, ?4)")?
            .execute(params![at, call, kind.word(), body])
    }

    /// Records as aborted what runs according to the ledger and whose process is gone.
    ///
    /// # Errors
    /// The store refused.
    pub fn find_aborted(&self) -> Result<Vec<String>, StoreError> {
        let find = || {
            let connection = self.store.connection();
            let mut statement =
                connection.prepare("SELECT call, pid, started, place FROM running")?;
            let rows = statement
                .query_map([], |row| {
                    let owner = Owner {
                        uid: 0,
                        pid: row.get(1)?,
                        started: row.get::<_, i64>(2)?.cast_unsigned(),
                        place: row.get(3)?,
                    };
                    Ok((row.get::<_, String>(0)?, owner))
                })?
                .collect::<rusqlite::Result<Vec<_>>>()?;
            let gone: Vec<String> = rows
                .into_iter()
                .filter(|(_, owner)| owner.is_gone())
                .map(|(call, _)| call)
                .collect();
            for call in &gone {
                let transaction = connection.unchecked_transaction()?;
                // Another process may have found it at the same moment.
                if transaction.execute("DELETE FROM running WHERE call = ?1", [call])? == 1 {
                    self.insert(call, Kind::Aborted, "{}")?;
                }
                transaction.commit()?;
            }
            Ok(gone)
        };
        find().map_err(|error| self.store.failed("look for aborted calls in", error))
    }

    /// Calls that run now, by the process that runs them.
    ///
    /// # Errors
    /// The store refused.
    pub fn running(&self) -> Result<Vec<(String, u32)>, StoreError> {
        let find = || {
            let connection = self.store.connection();
            let mut statement =
                connection.prepare("SELECT call, pid FROM running ORDER BY call")?;
            statement
                .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
                .collect::<rusqlite::Result<Vec<_>>>()
        };
        find().map_err(|error| self.store.failed("read", error))
    }

    /// The calls whose ids begin so; of many, the first two, which is enough to know that they are many.
    ///
    /// # Errors
    /// The store refused.
    pub fn beginning(&self, start: &str) -> Result<Vec<String>, StoreError> {
        let read = || {
            self.store
                .connection()
                .prepare(
                    "SELECT DISTINCT call FROM events WHERE substr(call, 1, length(?1)) = ?1 ORDER BY call LIMIT 2",
                )?
                .query_map([start], |row| row.get(0))?
                .collect::<rusqlite::Result<Vec<_>>>()
        };
        read().map_err(|error| self.store.failed("read", error))
    }

    /// Every event of one call, by its whole id.
    ///
    /// # Errors
    /// The store refused.
    pub fn show(&self, call: &str) -> Result<Vec<Row>, StoreError> {
        let read = || {
            self.store
                .connection()
                .prepare(
                    "SELECT seq, at, call, kind, body FROM events WHERE call = ?1 ORDER BY seq",
                )?
                .query_map([call], row)?
                .collect::<rusqlite::Result<Vec<_>>>()
        };
        read().map_err(|error| self.store.failed("read", error))
    }

    /// Calls, newest first.
    ///
    /// # Errors
    /// The store refused.
    pub fn list(&self, filter: Filter) -> Result<Vec<Summary>, StoreError> {
        let read = || {
            let most = filter.most.map_or(-1, |most| i64::try_from(most).unwrap_or(i64::MAX));
            let since = filter.since.unwrap_or(i64::MIN);
            let which = if filter.refused { REFUSED } else { "kind IN ('start', 'refused')" };
            let connection = self.store.connection();
            let firsts = connection
                .prepare(&format!(
                    "SELECT seq, at, call, kind, body FROM events WHERE {which} AND at >= ?1 ORDER BY seq DESC LIMIT ?2"
                ))?
                .query_map(params![since, most], row)?
                .collect::<rusqlite::Result<Vec<_>>>()?;
            let mut ends: HashMap<String, Row> = HashMap::new();
            let mut statement = connection.prepare(
                "SELECT seq, at, call, kind, body FROM events WHERE call = ?1 AND kind IN ('end', 'aborted') LIMIT 1",
            )?;
            for first in firsts.iter().filter(|first| first.kind == Kind::Start) {
                if let Some(end) = statement.query_row([&first.call], row).optional()? {
                    ends.insert(first.call.clone(), end);
                }
            }
            Ok(firsts.into_iter().map(|first| summary(&first, ends.get(&first.call))).collect())
        };
        read().map_err(|error| self.store.failed("read", error))
    }
}

/// The first events of calls that were refused. What a tool may not do is found while it runs, so that its end says it.
const REFUSED: &str = "(kind = 'refused' OR (kind = 'start' AND EXISTS (
    SELECT 1 FROM events AS ended WHERE ended.call = events.call AND ended.kind = 'end'
    AND CASE WHEN json_valid(ended.body) THEN ended.body ->> 'status' END IN ('denied', 'needs_approval'))))";

fn row(row: &SqlRow<'_>) -> rusqlite::Result<Row> {
    let kind: String = row.get(3)?;
    let body: String = row.get(4)?;
    Ok(Row {
        seq: row.get(0)?,
        at: row.get(1)?,
        call: row.get(2)?,
        kind: Kind::by_word(&kind).unwrap_or(Kind::Aborted),
        body: serde_json::from_str(&body).unwrap_or(Value::Null),
    })
}

fn summary(first: &Row, end: Option<&Row>) -> Summary {
    let text = |body: &Value, key: &str| body[key].as_str().unwrap_or_default().to_owned();
    let refused =
        |status: Status, exit: ExitCode| (status.word().to_owned(), Some(exit.get().into()));
    let (status, exit) = match (first.kind, end) {
        (Kind::Refused, _) if first.body["decision"] == "ask" => {
            refused(Status::NeedsApproval, ExitCode::APPROVAL_NEEDED)
        }
        (Kind::Refused, _) => refused(Status::Denied, ExitCode::DENIED),
        (_, Some(end)) if end.kind == Kind::Aborted => ("aborted".to_owned(), None),
        (_, Some(end)) => (text(&end.body, "status"), end.body["exit"].as_u64()),
        (_, None) => ("running".to_owned(), None),
    };
    Summary {
        call: first.call.clone(),
        at: first.at,
        status,
        exit,
        duration_ms: end.and_then(|end| end.body["duration_ms"].as_u64()),
        code: text(&first.body, "code"),
        error: end.and_then(|end| end.body["code"].as_str()).map(str::to_owned),
        rule: first.body["rule"]["id"].as_str().map(str::to_owned),
        command: text(&first.body, "command"),
        workspace: text(&first.body, "workspace"),
    }
}

#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;
