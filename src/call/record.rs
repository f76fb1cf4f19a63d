//! One call's records, as types that consume each other: nothing runs whose start was not written, what was refused never
//! starts, and what ran has one end.
//!
//! ```text
//! Unrecorded --open--> Opened --refuse--> over
//!     |                   |
//!     |                   +----start----> Record --end--> over
//!     +--start--> Starting --finish-------^
//! ```

use std::path::PathBuf;
use std::time::Instant;

use serde_json::Value;

use super::context::Context;
use super::error::CallError;
use crate::audit::{Ended, Event, Ledger, Requested, Started};
use crate::codes::Code;
use crate::error::Failure;
use crate::exit::Ending;
use crate::ids::{CallId, Owner};
use crate::latency::{Early, Helper, Opening};
use crate::policy_files::Places;
use crate::store::{Store, StoreError};

/// The records of a call that has started.
pub(crate) struct Record {
    opened: Opened,
    begun: Instant,
}

/// A call of which nothing is recorded yet, and the place for its records.
pub(crate) struct Opened {
    ledger: Ledger,
    id: CallId,
    process: Owner,
}

/// A call of which nothing is recorded yet.
pub(crate) struct Unrecorded {
    id: CallId,
    state: Option<PathBuf>,
    early: Early,
}

/// A call whose start is to be written: in a moment when something else is waited for, as soon as another thread has
/// opened the store. Nothing may run before [`written`](Self::written), and no call waits for long before
/// [`write`](Self::write).
pub(crate) struct Starting {
    id: CallId,
    begun: Instant,
    unwritten: Option<(Unrecorded, Started, Opening)>,
    helper: Option<Helper>,
    /// Connections of the command, which are recorded with its end.
    requests: Vec<Requested>,
    written: Result<Option<Record>, CallError>,
}

/// How a call ended.
pub(crate) struct End {
    /// For the process.
    pub ending: Ending,
    /// The stable code of what went wrong.
    pub code: Option<Code>,
    /// `policy/id` of the rule that ended it, if one did.
    pub rule: Option<String>,
    /// What it cost, in millionths of a US dollar, if that is known.
    pub cost: Option<u64>,
    /// How it ran.
    pub detail: Value,
    /// Requests of a tool that are not recorded yet.
    pub requests: Vec<Requested>,
}

impl End {
    /// Of a call that broke.
    pub fn of_error(error: &CallError) -> Self {
        Self {
            ending: Ending::of_kind(error.kind(), error.code()),
            code: Some(error.code()),
            rule: None,
            cost: None,
            detail: Value::Null,
            requests: Vec::new(),
        }
    }
}

impl Unrecorded {
    /// A new call.
    pub fn new(places: &Places, context: &Context) -> Result<Self, CallError> {
        let id = CallId::fresh().map_err(|error| CallError::Local("make an id", error))?;
        Ok(Self { id, state: places.state.clone(), early: context.early.clone() })
    }

    /// The call's id.
    pub fn id(&self) -> &CallId {
        &self.id
    }

    /// Opens its records. What died earlier is found on the way.
    pub fn open(self) -> Result<Opened, CallError> {
        let opened = Store::open_early(self.state.as_deref(), &self.early);
        self.open_in(opened)
    }

    fn open_in(self, store: Result<Store, StoreError>) -> Result<Opened, CallError> {
        let ledger = Ledger::new(store?);
        ledger.find_aborted()?;
        let process =
            Owner::this().map_err(|error| CallError::Local("look at this process", error))?;
        Ok(Opened { ledger, id: self.id, process })
    }

    /// It starts now, unless that cannot be recorded.
    pub fn start(self, started: Started) -> Starting {
        let (opening, helper) = Store::open_beside(self.state.as_deref(), &self.early);
        let id = self.id.clone();
        let (begun, unwritten) = (Instant::now(), Some((self, started, opening)));
        Starting { id, begun, unwritten, helper, requests: Vec::new(), written: Ok(None) }
    }
}

impl Starting {
    /// The call's id.
    pub fn id(&self) -> &CallId {
        &self.id
    }

    /// The thread that opens the store, for what comes next.
    pub fn take_helper(&mut self) -> Option<Helper> {
        self.helper.take()
    }

    /// Keeps what is recorded with the end.
    pub fn requests(&mut self, requests: Vec<Requested>) {
        self.requests = requests;
    }

    /// What is recorded with the end.
    pub fn take_requests(&mut self) -> Vec<Requested> {
        std::mem::take(&mut self.requests)
    }

    /// Writes the start, if it is not written yet. What goes wrong is told by [`written`](Self::written).
    pub fn write(&mut self) {
        if let Some((call, started, opening)) = self.unwritten.take() {
            let opened = call.open_in(opening.join());
            let written = opened.and_then(|opened| opened.start(&started));
            self.written = written.map(|record| Some(Record { begun: self.begun, ..record }));
        }
    }

    /// Sees to it that the start is written. An error is told once.
    pub fn written(&mut self) -> Result<(), CallError> {
        self.write();
        let record = std::mem::replace(&mut self.written, Ok(None))?;
        self.written = Ok(record);
        Ok(())
    }

    /// The records, for the end; `None` if the start could not be written, which was told.
    pub fn finish(mut self) -> Result<Option<Record>, CallError> {
        self.written()?;
        self.written
    }
}

impl Opened {
    /// The call's id.
    pub fn id(&self) -> &CallId {
        &self.id
    }

    /// The store that its records are kept in.
    pub fn store(&self) -> &Store {
        self.ledger.store()
    }

    /// It may not run, and ends so for its caller.
    pub fn refuse(self, started: Started, ending: &Ending) -> Result<(), CallError> {
        self.append(&[Event::Refused(&started.ending(ending))])
    }

    /// It starts now.
    pub fn start(self, started: &Started) -> Result<Record, CallError> {
        let begun = Instant::now();
        self.append(&[Event::Start(started)])?;
        Ok(Record { opened: self, begun })
    }

    fn append(&self, events: &[Event<'_>]) -> Result<(), CallError> {
        Ok(self.ledger.append(&self.id, events, &self.process)?)
    }
}

impl Record {
    /// The call's id.
    pub fn id(&self) -> &CallId {
        &self.opened.id
    }

    /// The store that it is kept in.
    pub fn store(&self) -> &Store {
        self.opened.store()
    }

    /// The ledger that it is kept in.
    pub fn ledger(&self) -> &Ledger {
        &self.opened.ledger
    }

    /// Something happened on the way.
    pub fn events(&self, events: &[Event<'_>]) -> Result<(), CallError> {
        Ok(self.opened.ledger.append_all(self.id(), events)?)
    }

    /// It has ended.
    pub fn end(self, end: End) -> Result<(), CallError> {
        let ended = Ended {
            status: end.ending.status,
            exit: end.ending.exit,
            code: end.code,
            rule: end.rule,
            cost_microdollars: end.cost,
            duration_ms: u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX),
            detail: end.detail,
        };
        let requests = end.requests.iter().map(Event::Request);
        self.opened.append(&requests.chain([Event::End(&ended)]).collect::<Vec<_>>())
    }
}
