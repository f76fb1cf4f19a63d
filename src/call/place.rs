//! A call's place among those that run: which queue it stands in, and for how long at most.

use std::time::Duration;

use runner_policy::limits::{Limit, Limits};

use super::error::CallError;
use super::request::Decided;
use super::run::Output;
use crate::limits::{Figures, Place, Queue, Subject};
use crate::policies::Places;
use crate::sandbox::cancel::Cancel;
use crate::sandbox::streams::Sink;

/// A place for a command.
pub(super) async fn place_of_command(
    decided: &Decided,
    output: &mut Output,
    cancel: &mut Cancel,
) -> Result<Place, CallError> {
    let told = match output {
        Output::Streamed(streams) => &mut streams.stderr,
        Output::Kept(_) => &mut None,
    };
    place(&decided.places, Subject::Command, &decided.limits(), cancel, told).await
}

/// A place. A call waits no longer than it may run.
pub(super) async fn place(
    places: &Places,
    subject: Subject<'_>,
    limits: &Limits,
    cancel: &mut Cancel,
    told: &mut Sink,
) -> Result<Place, CallError> {
    let queue = Queue::of(places.state.as_deref(), subject, Figures::default())?;
    let most = Duration::from_millis(limits.get(Limit::Wall));
    Ok(queue.enter(most, cancel, told).await?)
}
