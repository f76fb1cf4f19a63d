//! Whether the ledger is what was recorded: every link, every signature, the head, and every call's own end.
//!
//! | problem | what was found |
//! | --- | --- |
//! | `changed` | the bytes of a record are not those that were recorded |
//! | `removed` | records are missing between two others |
//! | `reordered` | a record stands in another's place |
//! | `added` | no signature covers the record, or its number is below 1, which is never used |
//! | `truncated` | the head names records that are not there |
//! | `head` | the head is missing, broken, of another key, or was put back |
//! | `unended` | a call neither ended, nor runs, nor was found aborted |
//! | `requests` | a call ended with more requests than are recorded |
//!
//! A head that lags by a few appends is no problem: a process may die between an append and the head.

use std::collections::HashMap;

use rusqlite::Row as SqlRow;
use serde::Serialize;
use serde_json::Value;

use super::Ledger;
use super::chain::{Columns, Link, Stretch, hex};
use super::event::Kind;
use super::ledger::link_of;
use super::seal::{self, Head, Public, Seal};
use crate::store::StoreError;
use crate::text::counted;

/// Appends that a head may lag by: as many processes must have died between an append and the head, with
/// no other process appending after them.
pub(super) const LAG: u32 = 16;
/// How far around a wrong record its right place is looked for.
const NEAR: usize = 64;
/// Findings that are told.
const TOLD: usize = 100;

/// What verification came to.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Records that were looked at.
    pub records: u64,
    /// Calls among them.
    pub calls: u64,
    /// Calls whose process died; the last requests of such a tool may not be recorded.
    pub aborted: u64,
    /// The newest record.
    pub last: i64,
    /// Its link: with it, noted elsewhere, the whole ledger up to there can be held to what it was.
    pub link: Link,
    /// The public key, if there is one.
    pub key: Option<String>,
    /// Appends that the head does not know of yet.
    pub lag: u64,
    /// What is wrong, in the order of records; the first is where it began.
    pub findings: Vec<Finding>,
    /// How much more is wrong than is told.
    pub untold: u64,
}

/// Something that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The record, or the place where it should be.
    pub seq: i64,
    /// The call that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// What.
    pub problem: Problem,
    /// In a sentence.
    pub message: String,
}

/// What can be wrong; see the module's table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Problem {
    /// Other bytes.
    Changed,
    /// Missing in between.
    Removed,
    /// In another's place.
    Reordered,
    /// Without the key.
    Added,
    /// Missing at the end.
    Truncated,
    /// No head of this ledger.
    Head,
    /// A call without an end.
    Unended,
    /// Requests that are not recorded.
    Requests,
    /// No key to hold signatures to.
    Key,
}

impl Problem {
    /// The word in JSON.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Changed => "changed",
            Self::Removed => "removed",
            Self::Reordered => "reordered",
            Self::Added => "added",
            Self::Truncated => "truncated",
            Self::Head => "head",
            Self::Unended => "unended",
            Self::Requests => "requests",
            Self::Key => "key",
        }
    }
}

/// A record and its link, noted from an earlier look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expected {
    seq: i64,
    link: Link,
}

impl Expected {
    /// `SEQ:LINK`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (seq, link) = text.split_once(':')?;
        Some(Self { seq: seq.parse().ok()?, link: Link::from_hex(link)? })
    }
}

/// A record as it is stored.
struct Stored {
    seq: i64,
    at: i64,
    call: String,
    kind: String,
    body: String,
    link: Option<Link>,
    vouches: Option<i64>,
    signature: Option<Vec<u8>>,
}

impl Stored {
    fn columns(&self) -> Columns<'_> {
        let Self { seq, at, call, kind, body, .. } = self;
        Columns { seq: *seq, at: *at, call, kind, body }
    }
}

/// What is known of a call while its records go by.
#[derive(Default)]
struct Called {
    started: Option<i64>,
    ended: bool,
    requests: u64,
}

impl Ledger {
    /// Looks at every record after `after`; 0 is all of them. Records with numbers below 1 are always looked at: lists
    /// show them, and their numbers do not say when they were added. `expected` is what one of them must be.
    ///
    /// # Errors
    /// The store refused.
    pub fn verify(&self, after: i64, expected: Option<Expected>) -> Result<Report, StoreError> {
        let fail = |error| self.store.failed("read", error);
        let connection = self.store.connection();
        // One look at everything: what is appended meanwhile is not seen. The head is read first, for the same reason.
        let head = seal::head(self.store.folder())?;
        let public = Seal::open(self.store.folder())?.map(|seal| seal.public());
        let transaction = connection.unchecked_transaction().map_err(fail)?;
        let mut walk = Walk::new(after, public);
        let read = |walk: &mut Walk| {
            let mut before =
                connection.prepare("SELECT seq, link FROM events WHERE seq = ?1 AND seq > 0")?;
            let mut before = before.query([after])?;
            if let Some(row) = before.next()? {
                walk.link = link_of(row.get_ref(1)?).unwrap_or(Link::FIRST);
            }
            let mut below = connection.prepare(
                "SELECT seq, at, call, kind, body, link, vouches, signature FROM events WHERE seq < 1 ORDER BY seq",
            )?;
            let mut below = below.query([])?;
            while let Some(row) = below.next()? {
                walk.unnumbered(&stored(row)?);
            }
            let mut statement = connection.prepare(
                "SELECT seq, at, call, kind, body, link, vouches, signature FROM events WHERE seq > ?1 ORDER BY seq",
            )?;
            let mut rows = statement.query([after])?;
            while let Some(row) = rows.next()? {
                let stored = stored(row)?;
                walk.record(&stored, &head, |from, to| self.around(from, to))?;
            }
            let mut running = connection.prepare("SELECT call FROM running")?;
            let running = running
                .query_map([], |row| row.get(0))?
                .collect::<rusqlite::Result<Vec<String>>>()?;
            if let Some(Expected { seq, link }) = expected {
                let mut there = connection.prepare("SELECT link FROM events WHERE seq = ?1")?;
                let mut there = there.query([seq])?;
                let found = match there.next()? {
                    Some(row) => link_of(row.get_ref(0)?),
                    None => None,
                };
                if found != Some(link) {
                    let message = format!("record {seq} is not the one that you noted");
                    walk.find(seq, "", Problem::Changed, message);
                }
            }
            Ok(running)
        };
        let running = read(&mut walk).map_err(fail)?;
        transaction.finish().map_err(fail)?;
        Ok(walk.finish(&head, &running))
    }

    fn around(&self, from: i64, to: i64) -> rusqlite::Result<Vec<Stored>> {
        self.store
            .connection()
            .prepare_cached(
                "SELECT seq, at, call, kind, body, link, vouches, signature FROM events WHERE seq BETWEEN ?1 AND ?2",
            )?
            .query_map([from, to], stored)?
            .collect()
    }
}

/// What is known on the way through the ledger.
struct Walk {
    public: Option<Public>,
    after: i64,
    seq: i64,
    link: Link,
    /// The first record that no signature was seen for.
    open: Option<(i64, String)>,
    /// The link of the record that the head names.
    named: Option<Link>,
    /// Appends after the one that the head names.
    lag: u64,
    /// Signatures that no key is there for.
    unheld: u64,
    records: u64,
    aborted: u64,
    calls: HashMap<String, Called>,
    findings: Vec<Finding>,
    untold: u64,
}

impl Walk {
    fn new(after: i64, public: Option<Public>) -> Self {
        Self {
            public,
            after,
            seq: after,
            link: Link::FIRST,
            open: None,
            named: None,
            lag: 0,
            unheld: 0,
            records: 0,
            aborted: 0,
            calls: HashMap::new(),
            findings: Vec::new(),
            untold: 0,
        }
    }

    fn find(&mut self, seq: i64, call: &str, problem: Problem, message: String) {
        if self.findings.len() >= TOLD {
            self.untold += 1;
            return;
        }
        let call = (!call.is_empty()).then(|| call.to_owned());
        self.findings.push(Finding { seq, call, problem, message });
    }

    /// A record whose number is never given.
    fn unnumbered(&mut self, row: &Stored) {
        self.records += 1;
        let message = format!(
            "record {} was added by hand: numbers begin at 1, so it is in no chain",
            row.seq
        );
        self.find(row.seq, &row.call, Problem::Added, message);
    }

    fn record(
        &mut self,
        row: &Stored,
        head: &Head,
        around: impl Fn(i64, i64) -> rusqlite::Result<Vec<Stored>>,
    ) -> rusqlite::Result<()> {
        self.records += 1;
        let due = self.seq.saturating_add(1);
        if row.seq != due {
            let message = match row.seq - 1 {
                last if last == due => format!("record {due} is missing"),
                last => format!("records {due} to {last} are missing"),
            };
            self.find(due, "", Problem::Removed, message);
        }
        let right = row.link == Some(self.link.then(row.columns()));
        if !right && row.seq == due {
            let near = NEAR as i64;
            let neighbours = around(row.seq.saturating_sub(near), row.seq.saturating_add(near))?;
            let (problem, message) = match place_of(row, &neighbours) {
                Some(place) => (
                    Problem::Reordered,
                    format!("record {} holds what was recorded as {place}", row.seq),
                ),
                None if row.link.is_none() => {
                    (Problem::Added, format!("record {} was never linked to the chain", row.seq))
                }
                None => (
                    Problem::Changed,
                    format!("record {} is not what was recorded, or what came before it", row.seq),
                ),
            };
            self.find(row.seq, &row.call, problem, message);
        }
        self.vouched(row);
        if let Head::Signed(stretch, _) = head {
            if stretch.last == row.seq {
                self.named = row.link;
            } else if row.seq > stretch.last && row.signature.is_some() {
                self.lag += 1;
            }
        }
        self.follow(row);
        self.seq = row.seq;
        self.link = row.link.unwrap_or(self.link);
        Ok(())
    }

    /// Holds a record to the signature that vouches for it.
    fn vouched(&mut self, row: &Stored) {
        let open = self.open.get_or_insert_with(|| (row.seq, row.call.clone())).clone();
        let (Some(signature), Some(vouches), Some(link)) = (&row.signature, row.vouches, row.link)
        else {
            return;
        };
        self.open = None;
        let first = row.seq.saturating_sub(vouches).saturating_add(1);
        let stretch = Stretch { first, last: row.seq, link };
        let Some(public) = self.public else {
            self.unheld += 1;
            return;
        };
        if !seal::vouches(&public, stretch, signature) {
            let message = format!("the signature of record {} was not made with the key", row.seq);
            self.find(row.seq, &row.call, Problem::Added, message);
        } else if first > open.0 {
            let message = format!("no signature covers record {}", open.0);
            self.find(open.0, &open.1, Problem::Added, message);
        }
    }

    /// What the record means for its call.
    fn follow(&mut self, row: &Stored) {
        let body: Value = serde_json::from_str(&row.body).unwrap_or(Value::Null);
        let call = self.calls.entry(row.call.clone()).or_default();
        match Kind::by_word(&row.kind) {
            Some(Kind::Start) => call.started = Some(row.seq),
            Some(Kind::Request) => call.requests += 1,
            Some(Kind::Aborted) => {
                call.ended = true;
                self.aborted += 1;
            }
            Some(Kind::End) => {
                call.ended = true;
                let (known, told) =
                    (call.requests, body["detail"]["broker"]["usage"]["recorded"].as_u64());
                if let Some(told) = told.filter(|told| *told != known) {
                    let message =
                        format!("the call made {told} requests, but {known} of them are recorded");
                    self.find(row.seq, &row.call, Problem::Requests, message);
                }
            }
            Some(Kind::Gap) => {
                self.calls.remove(&row.call);
                let (problem, message) = gap(&body, row.seq);
                self.find(row.seq, "", problem, message);
            }
            Some(Kind::Refused | Kind::Approval) => {}
            None => {
                let message = format!("record {} is of an unknown kind", row.seq);
                self.find(row.seq, &row.call, Problem::Changed, message);
            }
        }
    }

    fn finish(mut self, head: &Head, running: &[String]) -> Report {
        if let Some((seq, call)) = self.open.take() {
            let message = format!("no signature covers record {seq}");
            self.find(seq, &call, Problem::Added, message);
        }
        if self.unheld > 0 {
            let message = format!(
                "the key is missing: {} of this ledger cannot be checked, so nothing shows who wrote them",
                counted(usize::try_from(self.unheld).unwrap_or(usize::MAX), "signature")
            );
            self.find(self.after + 1, "", Problem::Key, message);
        }
        self.hold_to(head);
        let unended: Vec<(i64, String)> = self
            .calls
            .iter()
            .filter(|(id, call)| !call.ended && !running.contains(id))
            .filter_map(|(id, call)| Some((call.started?, id.clone())))
            .collect();
        for (seq, call) in unended {
            let message = "the call started, and neither ended nor was found aborted".to_owned();
            self.find(seq, &call, Problem::Unended, message);
        }
        self.findings.sort_by_key(|finding| finding.seq);
        Report {
            records: self.records,
            calls: self.calls.len() as u64,
            aborted: self.aborted,
            last: self.seq,
            link: self.link,
            key: self.public.map(|public| hex(&public)),
            lag: self.lag,
            findings: self.findings,
            untold: self.untold,
        }
    }

    /// Holds the end of the chain to the head.
    fn hold_to(&mut self, head: &Head) {
        let end = self.seq.saturating_add(1);
        let stretch = match head {
            // Nothing was ever recorded, or nothing since there is a chain.
            Head::Missing if self.public.is_none() && self.records == 0 => return,
            Head::Missing => {
                let message = "the head is missing: records may have been taken from the end";
                return self.find(end, "", Problem::Head, message.to_owned());
            }
            Head::Broken => {
                let message = "the head was not written by this program";
                return self.find(end, "", Problem::Head, message.to_owned());
            }
            // That the key is missing is told, once.
            Head::Signed(..) if self.unheld > 0 => return,
            Head::Signed(_, public) if Some(*public) != self.public => {
                let message = "the head was signed with another key";
                return self.find(end, "", Problem::Head, message.to_owned());
            }
            Head::Signed(stretch, _) => stretch,
        };
        if stretch.last > self.seq {
            let count = stretch.last - self.seq;
            let message = format!(
                "the head names record {}, and {count} of the last are not there; a power cut can do this too",
                stretch.last
            );
            self.find(end, "", Problem::Truncated, message);
        } else if stretch.last > self.after && self.named != Some(stretch.link) {
            let message =
                format!("record {} is not the one that the head was signed for", stretch.last);
            self.find(stretch.last, "", Problem::Head, message);
        } else if self.lag > u64::from(LAG) {
            let message = format!(
                "the head is {} appends old, which no death explains: an older one was put back",
                self.lag
            );
            self.find(stretch.last, "", Problem::Head, message);
        }
    }
}

/// What a recorded gap tells.
fn gap(body: &Value, seq: i64) -> (Problem, String) {
    let found = body["found"].as_i64().unwrap_or(0);
    match &body["head"] {
        Value::Number(last) => (
            Problem::Truncated,
            format!(
                "before record {seq} was written the head named record {last}, which was not in the ledger; the last one found was {found}"
            ),
        ),
        how => (
            Problem::Head,
            format!(
                "before record {seq} was written the head was {}",
                how.as_str().unwrap_or("broken").replace('_', " ")
            ),
        ),
    }
}

/// Where a record was recorded that stands in a wrong place: the place among its neighbours whose number and
/// predecessor make its link, or that of a neighbour, come out.
fn place_of(row: &Stored, neighbours: &[Stored]) -> Option<i64> {
    let links: Vec<Link> =
        neighbours.iter().filter_map(|other| other.link).chain([Link::FIRST]).collect();
    neighbours.iter().map(|other| other.seq).filter(|seq| *seq != row.seq).find(|seq| {
        let moved = Columns { seq: *seq, ..row.columns() };
        links.iter().any(|before| links.contains(&before.then(moved)))
    })
}

fn stored(row: &SqlRow<'_>) -> rusqlite::Result<Stored> {
    let text = |at| {
        row.get_ref(at).map(|value| match value.as_bytes_or_null() {
            Ok(Some(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
            Ok(None) | Err(_) => String::new(),
        })
    };
    Ok(Stored {
        seq: row.get(0)?,
        at: row.get(1)?,
        call: text(2)?,
        kind: text(3)?,
        body: text(4)?,
        link: link_of(row.get_ref(5)?),
        vouches: row.get(6)?,
        signature: row.get(7)?,
    })
}
