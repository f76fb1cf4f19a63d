//! Where a call's sandbox comes from: the pool, or made for it.

use runner_policy::Effective;
use runner_wire::Start;

use super::error::CallError;
use super::plan::Setting;
use crate::call::launch::ahead::Ahead;
use crate::call::launch::run;
use crate::call::launch::watchdog::Watchdog;
use crate::config::Config;
use crate::engine::plan::SandboxPlan;
use crate::engine::{Engine, Life, Waits};
use crate::ids::CallId;
use crate::pool::{Bounds, Claimed, Class, Guess, GuessFacts, Order, Pool, Supply, Wanted};
use crate::sandbox::planner::View;
use crate::workspace::grants::Writes;

/// Whether a call may use a sandbox that waits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Warmth {
    /// It may, and leaves one behind.
    #[default]
    Pool,
    /// It makes its own and leaves nothing.
    Cold,
}

/// The bounds of the pool for a call; `None` if it has nothing to do with it.
pub(super) fn pool(warmth: Warmth, config: &Config) -> Option<Bounds> {
    (warmth == Warmth::Pool).then(|| Bounds::of(config))
}

/// What a setting's sandboxes are for.
pub(super) fn class(setting: &Setting) -> Class {
    match (setting.view, setting.writes) {
        (View::Program(_), _) => Class::Tool,
        (View::Workspace, Writes::Some) => Class::Write,
        (View::Workspace, Writes::None) => Class::Read,
    }
}

/// Whether sandboxes of this engine for such calls may wait.
pub(super) fn may_wait(engine: &dyn Engine, class: Class) -> bool {
    match (engine.waits(), class) {
        (Waits::All, _) | (Waits::Started, Class::Tool) => true,
        (Waits::Started, Class::Read | Class::Write) | (Waits::None, _) => false,
    }
}

/// What a call has before its plan. Its watchdog is started when there is something to watch.
pub(super) fn ahead(
    id: &CallId,
    setting: &Setting,
    engine: &dyn Engine,
) -> Result<Ahead, CallError> {
    // A sandbox that ends with this process needs no watchdog; only a refill in the background does.
    if engine.life() == Life::Ours && !may_wait(engine, class(setting)) {
        return Ok(Ahead::new(Watchdog::none()));
    }
    let local = |error| CallError::Local("start the watchdog", error);
    let environment = &setting.places.environment;
    let mut watchdog =
        Watchdog::later(&setting.watchdog, engine.address(), id, environment).map_err(local)?;
    if let Some(state) = &setting.places.state {
        watchdog.settle(state);
    }
    Ok(Ahead::new(watchdog))
}

/// A sandbox that was made for a call like this one: more often than not it is the one that is planned meanwhile.
pub(super) fn claim(
    setting: &Setting,
    engine: &dyn Engine,
    pool: Option<Bounds>,
) -> Option<Claimed> {
    if pool.is_none_or(|bounds| bounds.is_off()) || !may_wait(engine, class(setting)) {
        return None;
    }
    let pool = Pool::new(setting.places.state.as_deref()?);
    pool.claim_guessed(&guess(setting, engine)?, run::life(&setting.limits))
}

/// What is known of a call's sandbox before it is planned.
fn guess(setting: &Setting, engine: &dyn Engine) -> Option<Guess> {
    Guess::of(&GuessFacts {
        address: engine.address(),
        recipe: engine.recipe(),
        project: setting.workspace.root(),
        policy_digest: &setting.policy.digest.to_hex(),
        class: class(setting),
        image: setting.image(),
        runtime: setting.policy.runtime(),
        limits: &setting.limits,
        home: setting.places.environment.get("HOME"),
        path: setting.places.environment.get("PATH"),
    })
}

/// Where the sandbox of this plan comes from.
pub(super) async fn supply(
    setting: &Setting,
    plan: &SandboxPlan,
    engine: &dyn Engine,
    prestart: Option<&Start>,
    pool: Option<Bounds>,
) -> Result<Supply, CallError> {
    let (Some(bounds), Some(state)) = (pool, setting.places.state.as_deref()) else {
        return Ok(Supply::Fresh);
    };
    if !plan.may_wait() || !may_wait(engine, class(setting)) {
        return Ok(Supply::Fresh);
    }
    // With the pool off, an order is there to give up what still waits.
    if bounds.is_off() && Pool::new(state).is_empty() {
        return Ok(Supply::Fresh);
    }
    let within: Vec<&str> = setting.policy.within.iter().map(Effective::name).collect();
    let Some(guess) = guess(setting, engine) else { return Ok(Supply::Fresh) };
    let wanted = Wanted {
        plan,
        guess: &guess,
        address: engine.address(),
        recipe: engine.recipe(),
        engine: &engine.probe().await?.id,
        policy: setting.policy.name(),
        within: &within,
        policy_digest: &setting.policy.digest.to_hex(),
        project: setting.workspace.root(),
        class: class(setting),
        prestart,
    };
    Ok(Order::new(&wanted, state, bounds)
        .map_or(Supply::Fresh, |order| Supply::Pooled(Box::new(order))))
}
