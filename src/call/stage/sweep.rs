//! Ends what died: applies that were not finished, and stages whose sandbox is gone.
//!
//! A stage is left alone while a process holds it, while its sandbox exists or waits in the pool, and
//! while it is kept for a person, until its time is over.

use std::path::Path;

use crate::config::Undo;
use crate::engine::{Engine, EngineError, Labels};
use crate::ids::CallId;
use crate::pool::Pool;
use crate::stage::apply::Sync;
use crate::stage::folder::{self, Stage, StageState};
use crate::stage::recover::{Recovered, recover};
use crate::stage::turn;
use crate::sys::now;

/// Ends what is left of stages with these labels, whose sandboxes are gone. What cannot be ended now is
/// by the next sweep.
pub(crate) fn clear(state: &Path, labels: &[CallId]) {
    let _ = recover(state, Sync::Never, &|label| !labels.contains(label));
}

/// Ends what processes left that were killed, where sandboxes live no longer than the process that made them: no watchdog
/// does it there. What cannot be ended now is by the next call.
pub(crate) fn clear_dead(state: &Path) {
    let pool = Pool::new(state);
    let _ = recover(state, Sync::Never, &|label| pool.waits(label.as_str()));
}

/// Ends what is left of all stages, but for those of sandboxes that one of these engines has; what came of each.
///
/// # Errors
/// An engine cannot be asked, or the stages cannot be listed.
pub(crate) async fn sweep(
    engines: &[&dyn Engine],
    state: &Path,
    bounds: Undo,
) -> Result<Vec<Recovered>, EngineError> {
    let local = |source| EngineError::Local { operation: "list stages", source };
    turn::sweep(state);
    let listed = folder::list(state).map_err(local)?;
    if listed.is_empty() {
        return Ok(Vec::new());
    }
    let mut sandboxes = Vec::new();
    for engine in engines {
        sandboxes.extend(engine.list(None).await?);
    }
    let key = Labels::key("call");
    let exists = |label: &CallId| {
        sandboxes.iter().any(|found| found.labels.get(&key).is_some_and(|it| it == label.as_str()))
    };
    let pool = Pool::new(state);
    let spared = |label: &CallId| exists(label) || pool.waits(label.as_str());
    for stage in listed.iter().filter(|stage| stage.state == StageState::Kept) {
        let over = stage.kept_at.is_some_and(|at| now().saturating_sub(at) > bounds.age);
        if over && !spared(&stage.label) {
            // What cannot be discarded now is by the next sweep.
            let _ = Stage::open(state, &stage.label).and_then(Stage::discard);
        }
    }
    recover(state, Sync::Never, &spared).map_err(local)
}
