//! Makes one waiting sandbox.
//!
//! A death or a failure on the way leaves a place that is free again, and names the container that may be there: who
//! looks at the pool next ends it, until it is really gone.

use std::path::Path;
use std::time::Duration;

use super::discard::discard;
use super::entry::{Entry, PoolError};
use super::held::{Held, Trace};
use super::order::Order;
use super::reserve::Published;
use crate::engine::{Engine, Hold, Labels, Purpose, Spec, guest};
use crate::ids::{CallId, Owner};
use crate::sandbox::identity::Expectation;
use crate::sandbox::outcome::RunError;
use crate::stage::folder::Stage;
use crate::sys::now;

/// How long a call may run that a waiting sandbox serves, at least; one that is made for longer calls serves those.
const LONGEST_CALL: Duration = Duration::from_secs(4 * 3600);

/// How much later a sweep takes it, claimed or not: being claimed and ended takes a moment.
const SLACK: Duration = Duration::from_secs(300);

/// What came of a refill.
#[derive(Debug)]
pub enum Refilled {
    /// One more waits.
    Made(Box<Entry>),
    /// There is no room, or no call would claim it any more: the pool was drained meanwhile, or what it shows has changed.
    NoRoom,
}

/// Makes a sandbox by order, and adds it to the pool. `program` is this program, for an engine that has a process of its
/// own hold the sandbox.
///
/// # Errors
/// The engine or the folder failed; nothing was added.
pub async fn refill(
    engine: &dyn Engine,
    order: &Order,
    program: &Path,
) -> Result<Refilled, RunError> {
    let local = |operation| move |source| RunError::Local { operation, source };
    let label = CallId::fresh().map_err(local("make an id"))?;
    let pool = order.pool();
    let made = now();
    let expires = made + order.bounds.own.ttl;
    let trace = Trace {
        label: label.to_string(),
        address: engine.address().clone(),
        cost: order.cost(),
        project: order.project.clone(),
        expires,
    };
    let reserved = pool.reserve(order, trace).map_err(failed)?;
    end_all(reserved.given_up).await;
    let Some(place) = reserved.place else { return Ok(Refilled::NoRoom) };
    let prepared = engine.prepare(&order.plan.image).await?;
    let labels = Labels {
        call: label.clone(),
        owner: Owner::this().map_err(local("find out who this process is"))?,
        deadline: expires.saturating_add(LONGEST_CALL.max(order.wall)).saturating_add(SLACK),
        purpose: Purpose::Waiting,
    };
    let arguments =
        guest::arguments(order.bounds.own.ttl, order.prestart.as_ref()).map_err(|error| {
            RunError::Local {
                operation: "write what a waiting sandbox starts",
                source: error.into(),
            }
        })?;
    let stage = Stage::of_plan(&order.state, &label, &order.plan).map_err(|error| {
        RunError::Local { operation: "make a stage", source: std::io::Error::other(error) }
    })?;
    let spec = Spec {
        plan: &order.plan,
        prepared: &prepared,
        labels: &labels,
        arguments: &arguments,
        stage: stage.as_ref().map(Stage::folder),
    };
    let id = engine.park(spec, Hold { program, wait: order.bounds.own.ttl }).await?;
    // The guest compares mounts when it is claimed; a runtime that shows numbers of its own cannot, so the
    // sources are looked at now, when they have just been mounted.
    let expectation = Expectation::of(&order.plan, label.as_str());
    if let Err(error) = expectation.check_sources() {
        let _ = engine.remove(&id).await;
        return Err(error);
    }
    let entry = Entry {
        sandbox: id.as_str().to_owned(),
        label: label.to_string(),
        address: engine.address().clone(),
        key: order.key.clone(),
        guess: order.guess.clone(),
        targets: expectation.targets(),
        lane: order.lane.clone(),
        class: order.class,
        policy: order.policy.clone(),
        within: order.within.clone(),
        policy_digest: order.policy_digest.clone(),
        recipe: order.recipe.clone(),
        project: order.project.clone(),
        cost: order.cost(),
        workspace: order.workspace.clone(),
        image_digest: prepared.digest,
        made,
        expires,
        deadline: labels.deadline,
    };
    match pool.publish(place, order, &entry) {
        Ok(Published { refused: None, given_up }) => {
            end_all(given_up).await;
            Ok(Refilled::Made(Box::new(entry)))
        }
        Ok(Published { refused: Some(place), .. }) => {
            engine.remove(&id).await?;
            place.over();
            Ok(Refilled::NoRoom)
        }
        Err(error) => {
            let _ = engine.remove(&id).await;
            Err(failed(error))
        }
    }
}

/// What cannot be ended now is put back, and ends itself.
async fn end_all(given_up: Vec<Held>) {
    for held in given_up {
        let _ = discard(held).await;
    }
}

fn failed(error: PoolError) -> RunError {
    RunError::Local { operation: "use the pool", source: std::io::Error::other(error) }
}
