//! Ends sandboxes that nobody shall claim any more.

use super::entry::Entry;
use crate::engine::{Docker, EngineError, remove_labelled};

/// Ends the sandbox of an entry that was taken out of the pool, by its label and through its own engine: an entry is
/// only a file, and never ends a container that does not say itself that it is ours.
///
/// # Errors
/// The engine cannot be reached, or does not remove it. It ends itself when its time is over.
pub async fn discard(entry: &Entry) -> Result<(), EngineError> {
    let Some(label) = entry.id() else { return Ok(()) };
    let engine = Docker::connect_to(&entry.endpoint).await?;
    remove_labelled(&engine, &label).await.map(drop)
}
