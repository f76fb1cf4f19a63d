//! The ledger: every call and decision, one row an event, only ever added to.
//!
//! ```text
//! decided --deny, ask--> refused
//!    | allow
//!    v
//!  start --(runs)--> end          the caller's process died in between: aborted, found by a later one
//! ```
//!
//! Duty: append, list, show, and find what was aborted. Nothing runs before its `start` is written: if it
//! cannot be, the call fails. What looks like a secret is masked ([`Redactor`]) before it is written. Text in a record is JSON, so one event is one line whatever it holds.

mod actor;
mod answers;
mod chain;
mod event;
mod ledger;
mod read;
mod redact;
mod seal;
mod stats;
mod verify;

pub use actor::Actor;
pub use event::{Answered, Ended, Event, Kind, Requested, Started, ToolRef};
pub use ledger::Ledger;
pub use read::{Filter, Outcome, Row, Sealed, Summary};
pub use redact::{MASK, Prints, Redactor, SHORTEST, Scrubber};
pub use stats::{Stats, Times};
pub use verify::{Expected, Finding, Problem, Report};
