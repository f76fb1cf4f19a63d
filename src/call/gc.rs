//! Sweeps whatever of ours is left: sandboxes without a process, records without an end.

use super::error::CallError;
use crate::audit::Ledger;
use crate::engine::{self, Choice, sweep};
use crate::environment::Environment;
use crate::pool::{Pool, discard};

/// What was swept.
#[derive(Debug, Clone)]
pub struct Swept {
    /// Calls that were found aborted.
    pub aborted: Vec<String>,
    /// How many sandboxes were removed.
    pub removed: usize,
}

/// Records what was aborted, removes sandboxes that nobody has any more, and backups that nothing refers to.
///
/// # Errors
/// The records, the pool or the engine cannot be used; what was done before stays done.
pub async fn gc(
    ledger: &Ledger,
    choice: &Choice,
    environment: &Environment,
) -> Result<Swept, CallError> {
    let aborted = ledger.find_aborted()?;
    let left_over = Pool::new(ledger.store().folder()).left_over();
    let left_over = left_over
        .map_err(|error| CallError::Local("use the pool", std::io::Error::other(error)))?;
    let engine = engine::open(choice, &|name| environment.get(name)).await?;
    let mut removed = sweep(engine.as_ref()).await?;
    for held in left_over {
        removed += discard(held).await?;
    }
    crate::undo::sweep(ledger.store())?;
    ledger.store().settle()?;
    Ok(Swept { aborted, removed })
}
