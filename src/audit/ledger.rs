//! Appending to the ledger: one transaction reads the end of the chain, adds to it and signs.

use std::cell::OnceCell;

use rusqlite::{OptionalExtension, Transaction, params};
use serde_json::json;

use super::chain::{Columns, Line, Link, Stretch, hex};
use super::event::{Event, Kind};
use super::seal::{Head, Known, Recorded, Seal, vouches};
use super::verify::LAG;
use crate::ids::{CallId, Owner};
use crate::store::{Store, StoreError};
use crate::text::harmless_json;

/// The ledger in a store.
pub struct Ledger {
    pub(super) store: Store,
    /// Opened by the first append.
    seal: OnceCell<Seal>,
}

/// The end of the chain.
#[derive(Debug, Clone, Copy)]
struct Last {
    seq: i64,
    link: Option<Link>,
}

impl Ledger {
    /// The ledger of a store.
    #[must_use]
    pub fn new(store: Store) -> Self {
        Self { store, seal: OnceCell::new() }
    }

    /// The store that it is in.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Appends events of a call, in one transaction. A start also marks the call as running, an end unmarks it.
    ///
    /// # Errors
    /// The store refused; nothing was written.
    pub fn append(
        &self,
        call: &CallId,
        events: &[Event<'_>],
        owner: &Owner,
    ) -> Result<(), StoreError> {
        let lines: Vec<Line> = events.iter().map(|event| event.line(call)).collect();
        self.write(&lines, |transaction| {
            for line in &lines {
                match line.kind {
                    Kind::Start => transaction.execute(
                        "INSERT INTO running (call, pid, started, place) VALUES (?1, ?2, ?3, ?4)",
                        params![call.as_str(), owner.pid, owner.started.cast_signed(), owner.place],
                    )?,
                    Kind::End | Kind::Aborted => transaction
                        .execute("DELETE FROM running WHERE call = ?1", [call.as_str()])?,
                    Kind::Refused | Kind::Request | Kind::Approval | Kind::Gap => 0,
                };
            }
            Ok(Go::On)
        })
    }

    /// Appends events that mark nothing, in one transaction: those of a tool's requests.
    ///
    /// # Errors
    /// The store refused; nothing was written.
    pub fn append_all(&self, call: &CallId, events: &[Event<'_>]) -> Result<(), StoreError> {
        let lines: Vec<Line> = events.iter().map(|event| event.line(call)).collect();
        self.write(&lines, |_| Ok(Go::On))
    }

    /// Records as aborted what runs according to the ledger and whose process is gone.
    ///
    /// # Errors
    /// The store refused.
    pub fn find_aborted(&self) -> Result<Vec<String>, StoreError> {
        let gone =
            self.gone().map_err(|error| self.store.failed("look for aborted calls in", error))?;
        for call in &gone {
            let line = Line { call: call.clone(), kind: Kind::Aborted, body: "{}".to_owned() };
            self.write(&[line], |transaction| {
                // Another process may have found it at the same moment.
                let found = transaction.execute("DELETE FROM running WHERE call = ?1", [call])?;
                Ok(if found == 1 { Go::On } else { Go::Back })
            })?;
        }
        Ok(gone)
    }

    fn gone(&self) -> rusqlite::Result<Vec<String>> {
        let connection = self.store.connection();
        let mut statement = connection.prepare("SELECT call, pid, started, place FROM running")?;
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
        Ok(rows.into_iter().filter(|(_, owner)| owner.is_gone()).map(|(call, _)| call).collect())
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

    /// Appends lines and whatever belongs to them, or nothing.
    fn write(
        &self,
        lines: &[Line],
        also: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<Go>,
    ) -> Result<(), StoreError> {
        if lines.is_empty() {
            // There is nothing to vouch for.
            return Ok(());
        }
        let fail = |error| self.store.failed("record a call in", error);
        let transaction = self.store.writing().map_err(fail)?;
        if also(&transaction).map_err(fail)? == Go::Back {
            return Ok(());
        }
        // Inside the transaction: only one process at a time can find that there is no key yet.
        let seal = match self.seal.get() {
            Some(seal) => seal,
            None => {
                let recorded = match last(&transaction).map_err(fail)? {
                    Some(_) => Recorded::Something,
                    None => Recorded::Nothing,
                };
                let opened = Seal::open_or_make(self.store.folder(), recorded)?;
                self.seal.get_or_init(|| opened)
            }
        };
        let head = seal.head()?;
        let (stretch, known) = extend(&transaction, seal, &head, lines).map_err(fail)?;
        transaction.commit().map_err(fail)?;
        // A death here leaves a head that lags: the next append brings it up to date.
        seal.advance(stretch, known)
    }
}

/// Whether a transaction goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Go {
    On,
    Back,
}

/// Adds lines to the end of the chain and signs them.
fn extend(
    transaction: &Transaction<'_>,
    seal: &Seal,
    head: &Head,
    lines: &[Line],
) -> rusqlite::Result<(Stretch, Known)> {
    let last = last(transaction)?;
    let (mut seq, mut link, first) = match last {
        None => (0, Link::FIRST, 1),
        // After the largest number there is no other: the insertion fails, and nothing runs.
        Some(Last { seq, link }) => (seq, link.unwrap_or(Link::FIRST), seq.saturating_add(1)),
    };
    let gap = gap(transaction, seal, head, last)?;
    let known = if gap.is_some() { Known::Replaced } else { Known::Follows };
    let at = i64::try_from(crate::sys::now().as_millis()).unwrap_or(i64::MAX);
    let mut rows = Vec::with_capacity(lines.len() + 1);
    for line in gap.iter().chain(lines) {
        let Line { call, kind, body } = line;
        seq = seq.saturating_add(1);
        link = link.then(Columns { seq, at, call, kind: kind.word(), body });
        rows.push((seq, line, link));
    }
    let stretch = Stretch { first, last: seq, link };
    let mut signature = Some((seq - first + 1, seal.sign(stretch)));
    let mut insert = transaction.prepare_cached(
        "INSERT INTO events (seq, at, call, kind, body, link, vouches, signature) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    )?;
    for (seq, Line { call, kind, body }, link) in rows {
        // The last one vouches for all of them.
        let (vouches, signature) = signature.take_if(|_| seq == stretch.last).unzip();
        let kind = kind.word();
        insert.execute(params![seq, at, call, kind, body, link.bytes(), vouches, signature])?;
    }
    Ok((stretch, known))
}

fn last(transaction: &Transaction<'_>) -> rusqlite::Result<Option<Last>> {
    transaction
        .prepare_cached("SELECT seq, link FROM events WHERE seq > 0 ORDER BY seq DESC LIMIT 1")?
        .query_row([], |row| Ok(Last { seq: row.get(0)?, link: link_of(row.get_ref(1)?) }))
        .optional()
}

/// A stored link; what is none is none.
pub(super) fn link_of(value: rusqlite::types::ValueRef<'_>) -> Option<Link> {
    value.as_blob_or_null().ok().flatten().and_then(Link::from_bytes)
}

/// Whether an empty head is one that lags: the first records were appended with its key, and those who did so may have
/// died before they brought it up to date.
fn lags(transaction: &Transaction<'_>, seal: &Seal) -> rusqlite::Result<bool> {
    let count = "SELECT count(*) FROM (SELECT 1 FROM events WHERE signature IS NOT NULL LIMIT ?1)";
    let appends: u32 = transaction.prepare_cached(count)?.query_row([LAG + 1], |row| row.get(0))?;
    let newest = "SELECT seq, link, vouches, signature FROM events ORDER BY seq DESC LIMIT 1";
    let signed = transaction.prepare_cached(newest)?.query_row([], |row| {
        let (last, vouched): (i64, Option<i64>) = (row.get(0)?, row.get(2)?);
        let signature: Option<Vec<u8>> = row.get(3)?;
        let link = link_of(row.get_ref(1)?);
        Ok(link.zip(vouched).zip(signature).is_some_and(|((link, vouched), signature)| {
            let first = last.saturating_sub(vouched).saturating_add(1);
            vouches(&seal.public(), Stretch { first, last, link }, &signature)
        }))
    })?;
    Ok(appends <= LAG && signed)
}

/// What is recorded if the head is none of this chain: work goes on, and `audit verify` never forgets it.
fn gap(
    transaction: &Transaction<'_>,
    seal: &Seal,
    head: &Head,
    last: Option<Last>,
) -> rusqlite::Result<Option<Line>> {
    let found = last.map_or(0, |last| last.seq);
    let body = match head {
        Head::Missing => json!({ "head": "missing", "found": found }),
        Head::Broken => json!({ "head": "broken", "found": found }),
        Head::Signed(_, public) if *public != seal.public() => {
            json!({ "head": "other_key", "key": hex(public), "found": found })
        }
        Head::Signed(stretch, _) => {
            let named = match last {
                // Most of the time no other process has appended in between.
                Some(last) if last.seq == stretch.last => last.link,
                None if stretch.last == 0 => return Ok(None),
                Some(_) if stretch.last == 0 => {
                    if lags(transaction, seal)? {
                        return Ok(None);
                    }
                    return Ok(Some(told(&json!({ "head": "empty", "found": found }))));
                }
                _ => transaction
                    .prepare_cached("SELECT link FROM events WHERE seq = ?1")?
                    .query_row([stretch.last], |row| Ok(link_of(row.get_ref(0)?)))
                    .optional()?
                    .flatten(),
            };
            if named == Some(stretch.link) {
                return Ok(None);
            }
            json!({ "head": stretch.last, "link": stretch.link, "found": found })
        }
    };
    Ok(Some(told(&body)))
}

fn told(body: &serde_json::Value) -> Line {
    Line { call: String::new(), kind: Kind::Gap, body: body.to_string() }
}

impl Event<'_> {
    fn line(&self, call: &CallId) -> Line {
        let (kind, body) = match self {
            Self::Start(body) => (Kind::Start, serde_json::to_string(body)),
            Self::Refused(body) => (Kind::Refused, serde_json::to_string(body)),
            Self::End(body) => (Kind::End, serde_json::to_string(body)),
            Self::Request(body) => (Kind::Request, serde_json::to_string(body)),
            Self::Approval(body) => (Kind::Approval, serde_json::to_string(body)),
        };
        // Plain data with text keys: writing it as JSON cannot fail.
        let body =
            body.unwrap_or_else(|error| format!("{{\"unwritable\":{:?}}}", error.to_string()));
        Line { call: call.to_string(), kind, body: harmless_json(body) }
    }
}
