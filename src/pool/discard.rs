//! Removes sandboxes that must not be claimed any more.

use super::held::{Held, Trace};
use crate::engine::{self, EngineError, remove_labelled};

/// Removes a sandbox owned by this process; returns how many there were. One that cannot be ended is put back.
///
/// # Errors
/// The engine cannot be reached, or does not remove it.
pub async fn discard(held: Held) -> Result<usize, EngineError> {
    let ended = end(held.trace()).await;
    match &ended {
        Ok(_) => held.over(),
        Err(_) => held.put_back(),
    }
    ended
}

/// By its label and through its own engine: a file only names a container, and never ends one that does not say itself
/// that it is ours.
async fn end(trace: &Trace) -> Result<usize, EngineError> {
    let Some(label) = trace.id() else { return Ok(0) };
    let engine = engine::at(&trace.address, None).await?;
    remove_labelled(engine.as_ref(), &label).await
}
