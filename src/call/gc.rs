//! Sweeps whatever of ours is left: sandboxes without a process, records without an end.

use super::error::CallError;
use super::stage;
use crate::audit::Ledger;
use crate::config::Undo;
use crate::engine::{self, Choice, Engine, sweep};
use crate::environment::Environment;
use crate::pool::{Pool, discard};
use crate::sandbox::{certificates, covers, hidden_index};
use crate::stage::recover::Recovered;

/// What was swept.
#[derive(Debug)]
pub struct Swept {
    /// Calls that were found aborted.
    pub aborted: Vec<String>,
    /// How many sandboxes were removed.
    pub removed: usize,
    /// What came of stages whose process had died.
    pub recovered: Vec<Recovered>,
}

/// Records what was aborted, removes sandboxes without a live owner, and backups that nothing refers to.
///
/// # Errors
/// The records, the pool or the engine cannot be used; what was done before stays done.
pub async fn gc(
    ledger: &Ledger,
    choice: &Choice,
    environment: &Environment,
    undo: Undo,
) -> Result<Swept, CallError> {
    let aborted = ledger.find_aborted()?;
    let left_over = Pool::new(ledger.store().folder()).left_over();
    let left_over = left_over
        .map_err(|error| CallError::Local("use the pool", std::io::Error::other(error)))?;
    let mut removed = 0;
    let engines = engine::open_all(choice, &|name| environment.get(name)).await?;
    for engine in &engines {
        removed += sweep(engine.as_ref()).await?;
    }
    for held in left_over {
        removed += discard(held).await?;
    }
    let state = ledger.store().folder();
    let engines: Vec<&dyn Engine> = engines.iter().map(AsRef::as_ref).collect();
    let recovered = stage::sweep(&engines, state, undo).await?;
    let _ = covers::forget(state);
    hidden_index::forget(state);
    certificates::forget(state);
    crate::undo::sweep(ledger.store())?;
    ledger.store().settle()?;
    Ok(Swept { aborted, removed, recovered })
}
