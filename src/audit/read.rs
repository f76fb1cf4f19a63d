//! Reading the ledger: one call, or lists of them.

use rusqlite::{OptionalExtension, Row as SqlRow, params};
use serde::Serialize;
use serde_json::Value;

use super::Ledger;
use super::actor::Actor;
use super::chain::{Link, hex};
use super::event::Kind;
use super::ledger::link_of;
use crate::exit::{ExitCode, Status};
use crate::store::StoreError;

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
    /// The tool, if it was one.
    pub tool: Option<String>,
    /// Who called.
    pub actor: Actor,
    /// The arguments of a tool, without secrets.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub args: Value,
    /// What it cost, in millionths of a US dollar, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_microdollars: Option<u64>,
    /// What it came to.
    #[serde(skip)]
    pub outcome: Outcome,
}

/// A record with what seals it.
#[derive(Debug, Clone, Serialize)]
pub struct Sealed {
    /// The record.
    #[serde(flatten)]
    pub row: Row,
    /// The digest of the stored bytes, and of all before them.
    pub link: Option<Link>,
    /// How many records, up to this one, the signature is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vouches: Option<i64>,
    /// Ed25519, as hexadecimal digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
}

/// Which calls to list.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Only those that came to one of these.
    pub outcomes: Option<&'static [Outcome]>,
    /// Only calls of this tool.
    pub tool: Option<String>,
    /// Only calls by this user: a name or a number.
    pub actor: Option<String>,
    /// Not before this moment, in milliseconds since 1970.
    pub since: Option<i64>,
    /// Not after this moment, in milliseconds since 1970.
    pub until: Option<i64>,
    /// Only the newest.
    pub most: Option<usize>,
}

/// What a call came to, as far as permission is concerned. What a tool may not do is found while it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It ran, or runs.
    Ran,
    /// It was denied.
    Denied,
    /// It needs approval.
    NeedsApproval,
    /// It was not started for another reason: a limit was reached, it was cancelled, or something failed.
    Held,
}

impl Filter {
    /// Whether it leaves nothing out.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        let Self { outcomes, tool, actor, since, until, most } = self;
        outcomes.is_none()
            && tool.is_none()
            && actor.is_none()
            && since.is_none()
            && until.is_none()
            && most.is_none()
    }

    fn takes(&self, call: &Summary) -> bool {
        self.outcomes.is_none_or(|outcomes| outcomes.contains(&call.outcome))
            && self.tool.as_ref().is_none_or(|tool| call.tool.as_ref() == Some(tool))
            && self.actor.as_ref().is_none_or(|actor| call.actor.is(actor))
    }
}

impl Outcome {
    /// Of a call that began and ended so.
    fn of(first: Kind, status: &str) -> Self {
        match status {
            word if word == Status::Denied.word() => Self::Denied,
            word if word == Status::NeedsApproval.word() => Self::NeedsApproval,
            _ if first == Kind::Refused => Self::Held,
            _ => Self::Ran,
        }
    }
}

impl Ledger {
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
    pub fn list(&self, filter: &Filter) -> Result<Vec<Summary>, StoreError> {
        let mut calls = Vec::new();
        self.each_call(filter, |call| calls.push(call))?;
        Ok(calls)
    }

    /// The same, one by one.
    ///
    /// # Errors
    /// The store refused.
    pub fn each_call(
        &self,
        filter: &Filter,
        mut take: impl FnMut(Summary),
    ) -> Result<(), StoreError> {
        let mut read = || {
            let connection = self.store.connection();
            let mut firsts = connection.prepare(
                "SELECT seq, at, call, kind, body FROM events
                 WHERE kind IN ('start', 'refused') AND at BETWEEN ?1 AND ?2 ORDER BY seq DESC",
            )?;
            let mut end = connection.prepare(
                "SELECT seq, at, call, kind, body FROM events
                 WHERE call = ?1 AND kind IN ('end', 'aborted') ORDER BY seq DESC LIMIT 1",
            )?;
            let (since, until) = (filter.since.unwrap_or(0), filter.until.unwrap_or(i64::MAX));
            let mut rows = firsts.query(params![since, until])?;
            let mut left = filter.most.unwrap_or(usize::MAX);
            while let Some(first) = rows.next()? {
                if left == 0 {
                    break;
                }
                let first = row(first)?;
                let end = match first.kind {
                    Kind::Start => end.query_row([&first.call], row).optional()?,
                    _ => None,
                };
                let call = summary(&first, end.as_ref());
                if filter.takes(&call) {
                    take(call);
                    left -= 1;
                }
            }
            Ok(())
        };
        read().map_err(|error| self.store.failed("read", error))
    }

    /// The number of the newest record; 0 if there is none.
    ///
    /// # Errors
    /// The store refused.
    pub fn last(&self) -> Result<i64, StoreError> {
        self.store
            .connection()
            .query_row("SELECT coalesce(max(seq), 0) FROM events", [], |row| row.get(0))
            .map_err(|error| self.store.failed("read", error))
    }

    /// Every record after one.
    ///
    /// # Errors
    /// The store refused.
    pub fn after(&self, seq: i64) -> Result<Vec<Row>, StoreError> {
        let read = || {
            self.store
                .connection()
                .prepare_cached(
                    "SELECT seq, at, call, kind, body FROM events WHERE seq > ?1 ORDER BY seq",
                )?
                .query_map([seq], row)?
                .collect::<rusqlite::Result<Vec<_>>>()
        };
        read().map_err(|error| self.store.failed("read", error))
    }

    /// Some records after one, with what seals them.
    ///
    /// # Errors
    /// The store refused.
    pub fn sealed_after(&self, seq: i64, most: usize) -> Result<Vec<Sealed>, StoreError> {
        let read = || {
            self.store
                .connection()
                .prepare_cached(
                    "SELECT seq, at, call, kind, body, link, vouches, signature FROM events
                     WHERE seq > ?1 ORDER BY seq LIMIT ?2",
                )?
                .query_map(params![seq, i64::try_from(most).unwrap_or(i64::MAX)], |stored| {
                    Ok(Sealed {
                        row: row(stored)?,
                        link: link_of(stored.get_ref(5)?),
                        vouches: stored.get(6)?,
                        signature: stored.get::<_, Option<Vec<u8>>>(7)?.map(|bytes| hex(&bytes)),
                    })
                })?
                .collect::<rusqlite::Result<Vec<_>>>()
        };
        read().map_err(|error| self.store.failed("read", error))
    }

    /// Connections of commands in this time, newest first.
    ///
    /// # Errors
    /// The store refused.
    pub fn connections(&self, filter: &Filter) -> Result<Vec<Row>, StoreError> {
        let read = || {
            let most = filter.most.and_then(|most| i64::try_from(most).ok()).unwrap_or(i64::MAX);
            self.store
                .connection()
                .prepare(
                    "SELECT seq, at, call, kind, body FROM events
                     WHERE kind = 'request' AND at BETWEEN ?1 AND ?2
                     AND instr(body, '\"method\":\"net.connect\"') ORDER BY seq DESC LIMIT ?3",
                )?
                .query_map(
                    params![filter.since.unwrap_or(0), filter.until.unwrap_or(i64::MAX), most],
                    row,
                )?
                .collect::<rusqlite::Result<Vec<_>>>()
        };
        read().map_err(|error| self.store.failed("read", error))
    }

    /// What tools asked for in this time and were refused: the calls, and what was recorded.
    ///
    /// # Errors
    /// The store refused.
    pub(super) fn refused_requests(
        &self,
        filter: &Filter,
    ) -> Result<Vec<(String, Value)>, StoreError> {
        let read = || {
            self.store
                .connection()
                .prepare(
                    "SELECT call, body FROM events WHERE kind = 'request' AND at BETWEEN ?1 AND ?2
                     AND NOT instr(body, '\"decision\":\"allow\"')",
                )?
                .query_map(
                    params![filter.since.unwrap_or(0), filter.until.unwrap_or(i64::MAX)],
                    |row| {
                        let body: String = row.get(1)?;
                        Ok((row.get(0)?, serde_json::from_str(&body).unwrap_or(Value::Null)))
                    },
                )?
                .collect::<rusqlite::Result<Vec<_>>>()
        };
        read().map_err(|error| self.store.failed("read", error))
    }
}

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
        (Kind::Refused, _) if first.body["status"].is_string() => {
            (text(&first.body, "status"), first.body["exit"].as_u64())
        }
        // Records of before do not say what the caller saw.
        (Kind::Refused, _) if first.body["decision"] == "ask" => {
            refused(Status::NeedsApproval, ExitCode::APPROVAL_NEEDED)
        }
        (Kind::Refused, _) => refused(Status::Denied, ExitCode::DENIED),
        (_, Some(end)) if end.kind == Kind::Aborted => ("aborted".to_owned(), None),
        (_, Some(end)) => (text(&end.body, "status"), end.body["exit"].as_u64()),
        (_, None) => ("running".to_owned(), None),
    };
    let rule = first.body["rule"]["id"].as_str();
    Summary {
        outcome: Outcome::of(first.kind, &status),
        call: first.call.clone(),
        at: first.at,
        status,
        exit,
        duration_ms: end.and_then(|end| end.body["duration_ms"].as_u64()),
        code: text(&first.body, "code"),
        error: end.and_then(|end| end.body["code"].as_str()).map(str::to_owned),
        // A tool is decided while it runs: the rule that ended it comes with its end.
        rule: rule.or(end.and_then(|end| end.body["rule"].as_str())).map(str::to_owned),
        command: text(&first.body, "command"),
        workspace: text(&first.body, "workspace"),
        tool: first.body["tool"]["name"].as_str().map(str::to_owned),
        actor: Actor::of_body(&first.body),
        args: first.body["args"].clone(),
        cost_microdollars: end.and_then(|end| end.body["cost_microdollars"].as_u64()),
    }
}

#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;
