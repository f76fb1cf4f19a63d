//! Where a call's sandbox comes from: the pool, or made for it.

use std::path::PathBuf;

use runner_policy::Effective;
use runner_wire::Start;

use super::error::CallError;
use super::plan::{Setting, materials};
use crate::config::{self, Config};
use crate::engine::{CallId, Engine};
use crate::pool::{Class, Order, Supply, Wanted};
use crate::sandbox::claims;
use crate::sandbox::grants::Writes;
use crate::sandbox::plan::SandboxPlan;
use crate::sandbox::planner::View;
use crate::sandbox::run;
use crate::sandbox::watchdog::Watchdog;

/// Whether a call may use a sandbox that waits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Warmth {
    /// It may, and leaves one behind.
    #[default]
    Pool,
    /// It makes its own and leaves nothing.
    Cold,
}

/// The bounds of the pool for a call; `None` if it uses none.
pub(super) fn pool(warmth: Warmth, config: &Config) -> Option<config::Pool> {
    let settings = config.pool();
    (warmth == Warmth::Pool && settings.size > 0).then_some(settings)
}

/// What a setting's sandboxes are for.
fn class(setting: &Setting<'_>) -> Class {
    match (setting.view, setting.writes) {
        (View::Program(_), _) => Class::Tool,
        (View::Workspace, Writes::Some) => Class::Write,
        (View::Workspace, Writes::None) => Class::Read,
    }
}

/// A call's watchdog: started before a plan that makes folders, which must go with us; else when there is something
/// to watch.
pub(super) fn watchdog(
    id: &CallId,
    setting: &Setting<'_>,
    engine: &dyn Engine,
    pool: Option<config::Pool>,
) -> Result<Watchdog, CallError> {
    let ledger = keep(setting, pool)?;
    let program = run::this_program();
    let mut watchdog = Watchdog::later(&program, engine.endpoint(), id, Some(&ledger));
    if let Some(state) = &setting.places.state {
        watchdog.settle(state);
    }
    if class(setting) == Class::Write {
        watchdog.awake().map_err(|error| CallError::Local("start the watchdog", error))?;
    }
    Ok(watchdog)
}

/// Lets folders that the plan makes be put away where a sandbox may wait with them; the ledger that they stand in.
pub(super) fn keep(
    setting: &Setting<'_>,
    pool: Option<config::Pool>,
) -> Result<PathBuf, CallError> {
    let ledger = claims::ledger(&materials(setting.places)?, setting.workspace.identity());
    if pool.is_some() && class(setting) == Class::Write {
        claims::keep(&ledger).map_err(|error| CallError::Local("keep write folders", error))?;
    }
    Ok(ledger)
}

/// Where the sandbox of this plan comes from.
pub(super) async fn supply(
    setting: &Setting<'_>,
    plan: &SandboxPlan,
    engine: &dyn Engine,
    prestart: Option<&Start>,
    pool: Option<config::Pool>,
) -> Result<Supply, CallError> {
    let (Some(settings), Some(state)) = (pool, setting.places.state.as_deref()) else {
        return Ok(Supply::Fresh);
    };
    let within: Vec<&str> = setting.policy.within.iter().map(Effective::name).collect();
    let wanted = Wanted {
        plan,
        engine: &engine.probe().await?.id,
        policy: setting.policy.name(),
        within: &within,
        policy_digest: &setting.policy.digest.to_hex(),
        class: class(setting),
        prestart,
    };
    Ok(Order::new(&wanted, state, settings)
        .map_or(Supply::Fresh, |order| Supply::Pooled(Box::new(order))))
}
