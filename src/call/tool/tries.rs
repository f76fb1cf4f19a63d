//! The attempts of one call, one after the other.

use std::sync::Arc;
use std::time::{Duration, Instant};

use runner_policy::limits::Limit;

use super::attempts::{Attempt, Next, Plan, said_code, source};
use super::outcome::of_failure;
use super::prepare::Prepared;
use super::program::Program;
use super::recorded::Recorded;
use super::run::{Front, result, serve};
use super::server;
use crate::call::clock::Clock;
use crate::call::{CallError, CallResult};
use crate::error::Failure as _;
use crate::ids::CallId;
use crate::sandbox::cancel::Cancel;
use crate::tool::reported_cost;

/// What all attempts came to.
pub(super) struct Tried {
    /// The last one's result, which tells all of them.
    pub result: CallResult,
    /// What they cost, in millionths of a US dollar, where that is known.
    pub cost: Option<u64>,
}

/// Runs it until it goes well or nothing more can help; what each attempt came to is in the result.
pub(super) async fn attempts(
    id: &CallId,
    prepared: &Prepared,
    front: &Front,
    recorded: &Arc<Recorded>,
    total: Option<(Instant, Duration)>,
    cancel: &mut Cancel,
) -> Result<Tried, CallError> {
    let first = Instant::now();
    let estimate = prepared.definition.estimates().cost;
    let mut cost = None;
    let (deadline, total) = total.unzip();
    let policy = front.retry.as_ref().unwrap_or(&prepared.definition.retry);
    let plan = Plan { policy, longest: prepared.longest };
    let mut wall = prepared.scene.limits.get(Limit::Wall);
    let (mut seen, mut waited) = (Vec::new(), Duration::ZERO);
    for attempt in 1.. {
        let begun = Instant::now();
        let left = || deadline.map(|moment| moment.saturating_duration_since(Instant::now()));
        let bounded = left().map_or(wall, |left| wall.min(millis(left).max(1)));
        let clock = match total.filter(|_| bounded < wall) {
            Some(total) => Clock::Total(total),
            None if wall < prepared.longest => Clock::Tool,
            None => prepared.clock.clone(),
        };
        let result = one_attempt(id, prepared, front, recorded, (attempt, bounded), cancel).await;
        // A tool does not make itself cheaper than it was said to be. Each attempt costs.
        let reported = result.as_ref().ok().and_then(|(_, reported)| *reported);
        let added = estimate.max(reported);
        cost = cost.max(added.map(|added| added.saturating_add(cost.unwrap_or(0))));
        let result = result.map(|(mut result, _)| {
            clock.blame(&mut result, bounded);
            result
        });
        let (status, error) = match &result {
            Ok(result) => (result.status, result.error.clone()),
            Err(error) => (error.kind().status(), Some(of_failure(error).error).flatten()),
        };
        seen.push(Attempt {
            attempt,
            status,
            code: error.as_ref().map(|error| said_code(error).to_owned()),
            source: error.as_ref().and_then(source),
            message: error.as_ref().map(|error| error.message.clone()),
            waited_ms: millis(waited),
            duration_ms: millis(begun.elapsed()),
        });
        let next = plan.next(attempt, status, error.as_ref(), bounded, left(), chance()?);
        if let Next::Again { pause, wall: longer } = next
            && pausing(pause, cancel).await
        {
            (waited, wall) = (pause, longer);
            continue;
        }
        let mut result = result?;
        if seen.len() > 1 {
            let metadata = result.metadata.get_or_insert_default();
            metadata.attempts = Some(seen);
            metadata.took(first.elapsed());
        }
        return Ok(Tried { result, cost });
    }
    // The numbers of attempts do not end before the retries do.
    Err(CallError::Local("try again", std::io::ErrorKind::Other.into()))
}

/// Waits; `false` if the call was cancelled meanwhile.
async fn pausing(pause: Duration, cancel: &mut Cancel) -> bool {
    tokio::select! {
        () = tokio::time::sleep(pause) => true,
        _ = cancel.asked() => false,
    }
}

/// A number between 0 and 1.
fn chance() -> Result<f64, CallError> {
    let random = crate::sys::random::<4>();
    let random = random.map_err(|error| CallError::Local("draw a number", error))?;
    Ok(f64::from(u32::from_ne_bytes(random)) / f64::from(u32::MAX))
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// One attempt, in a sandbox of its own; and what the tool says that it cost.
async fn one_attempt(
    id: &CallId,
    prepared: &Prepared,
    front: &Front,
    recorded: &Arc<Recorded>,
    attempt: (u32, u64),
    cancel: &mut Cancel,
) -> Result<(CallResult, Option<u64>), CallError> {
    if let Program::Server { from, policy, .. } = &prepared.program {
        let result = server::attempt(id, prepared, front, (from, policy), attempt.1, cancel);
        return Ok((result.await?, None));
    }
    let streams = (front.streams)();
    let keep = streams.stdout.is_none().then_some(streams.keep);
    let (ran, place) = serve(id, prepared, front, recorded, streams, attempt, cancel).await?;
    let reported = ran.served.cost.as_ref().and_then(reported_cost);
    let mut result = result(id, prepared, ran, keep, &front.redactor);
    if let Some(metadata) = &mut result.metadata {
        metadata.queued(place.queued());
    }
    Ok((result, reported))
}
