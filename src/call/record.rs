//! One call's records: nothing runs whose start was not written, and what ran has an end.

use std::time::Instant;

use serde_json::{Value, json};

use super::error::CallError;
use crate::audit::{Ended, Event, Ledger, Started};
use crate::engine::{CallId, Owner};
use crate::error::Failure;
use crate::exit::Ending;
use crate::policies::Places;
use crate::store::Store;

/// The records of one call.
pub(crate) struct Record {
    ledger: Ledger,
    id: CallId,
    process: Owner,
    begun: Instant,
}

/// How a call ended.
pub(crate) struct End {
    /// For the process.
    pub ending: Ending,
    /// The stable code of what went wrong.
    pub code: Option<String>,
    /// What it cost, in millionths of a US dollar, if that is known.
    pub cost: Option<u64>,
    /// How it ran.
    pub detail: Value,
}

impl End {
    /// Of a call that broke.
    pub fn of_error(error: &CallError) -> Self {
        Self {
            ending: Ending::of_kind(error.kind(), error.code()),
            code: Some(error.code().to_owned()),
            cost: None,
            detail: Value::Null,
        }
    }
}

impl Record {
    /// A new call. What died earlier is found on the way.
    pub fn open(places: &Places) -> Result<Self, CallError> {
        let local = |what| move |error| CallError::Local(what, error);
        let store = Store::open(places.state.as_deref())?;
        let id = CallId::fresh().map_err(local("make an id"))?;
        let process = Owner::this().map_err(local("look at this process"))?;
        let ledger = Ledger::new(store);
        ledger.find_aborted()?;
        Ok(Self { ledger, id, process, begun: Instant::now() })
    }

    /// The call's id.
    pub fn id(&self) -> &CallId {
        &self.id
    }

    /// The store that it is kept in.
    pub fn store(&self) -> &Store {
        self.ledger.store()
    }

    /// It may not run.
    pub fn refused(&mut self, started: &Started) -> Result<(), CallError> {
        self.append(Event::Refused(started))
    }

    /// It starts now.
    pub fn start(&mut self, started: &Started) -> Result<(), CallError> {
        self.begun = Instant::now();
        self.append(Event::Start(started))
    }

    /// It has ended.
    pub fn end(&mut self, end: End) -> Result<(), CallError> {
        let ended = Ended {
            status: json!(end.ending.status),
            exit: end.ending.exit.get(),
            code: end.code,
            cost_microdollars: end.cost,
            duration_ms: u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX),
            detail: end.detail,
        };
        self.append(Event::End(&ended))
    }

    /// Something happened on the way.
    pub fn events(&self, events: &[Event<'_>]) -> Result<(), CallError> {
        Ok(self.ledger.append_all(&self.id, events)?)
    }

    fn append(&self, event: Event<'_>) -> Result<(), CallError> {
        Ok(self.ledger.append(&self.id, event, &self.process)?)
    }
}
