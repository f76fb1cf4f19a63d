//! Fills the pool by hand, before the first call wants a sandbox.

use std::path::Path;

use super::error::CallError;
use super::open_engine::open_engine_of;
use super::plan::make_plan;
use super::request::Decided;
use super::run::{inspection, setting};
use super::supply;
use crate::engine::{Engine, EngineName};
use crate::pool::{Entry, Refilled, Supply, refill};
use crate::sandbox::materials::Missing;

/// What came of filling the pool.
#[derive(Debug)]
pub enum Warmed {
    /// These were made; fewer than asked for where there was no more room.
    Made(Vec<Entry>),
    /// The command may not run, for this reason; nothing was made.
    Refused(String),
    /// The configuration has no pool.
    Off,
    /// Sandboxes for such calls do not wait on this engine: it makes one in the time that taking one would cost.
    MadeAtOnce(EngineName),
    /// A call of this tool needs no sandbox: it is a part of this program.
    Ourselves,
    /// A call of this tool runs this command, and takes a sandbox of commands.
    Command(String),
}

/// Makes sandboxes that wait for calls like this one. `made` is told of each.
///
/// # Errors
/// One could not be made; those before it wait.
pub async fn warm(
    decided: &Decided,
    count: usize,
    made: &mut dyn FnMut(&Entry),
) -> Result<Warmed, CallError> {
    if !decided.is_allowed() {
        return Ok(Warmed::Refused(format!(
            "`{}` would not run: {}",
            decided.request.shown(),
            decided.decision.message
        )));
    }
    let pool = supply::pool(decided.request.warmth, &decided.config);
    let engine = open_engine_of(decided).await?;
    let engine = engine.as_ref();
    let setting = setting(decided, &inspection(decided)?);
    if !supply::may_wait(engine, supply::class(&setting)) {
        return Ok(Warmed::MadeAtOnce(engine.address().engine()));
    }
    let plan = make_plan(&setting, engine, Missing::Make, None).await?.plan;
    let supply = supply::supply(&setting, &plan, engine, None, pool).await?;
    fill(engine, &supply, &setting.watchdog, count, made).await
}

/// Makes sandboxes of this supply.
pub(super) async fn fill(
    engine: &dyn Engine,
    supply: &Supply,
    program: &Path,
    count: usize,
    made: &mut dyn FnMut(&Entry),
) -> Result<Warmed, CallError> {
    let Supply::Pooled(order) = supply else { return Ok(Warmed::Off) };
    if order.bounds.is_off() {
        return Ok(Warmed::Off);
    }
    let mut entries = Vec::new();
    while entries.len() < count {
        match refill(engine, order, program).await? {
            Refilled::Made(entry) => {
                made(&entry);
                entries.push(*entry);
            }
            Refilled::NoRoom => break,
        }
    }
    Ok(Warmed::Made(entries))
}
