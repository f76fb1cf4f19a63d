//! Removes what earlier runs left behind: the backstop behind the guest's own end and the watchdog.

use super::error::EngineError;
use super::label::{Owner, is_left_over, now};
use super::traits::Engine;

/// Removes every sandbox of this user that is past its deadline or whose process is dead; how many.
///
/// # Errors
/// The engine cannot list them, or one cannot be removed.
pub async fn sweep(engine: &dyn Engine) -> Result<usize, EngineError> {
    let me = Owner::this().map_err(|source| EngineError::Local {
        operation: "find out who this process is",
        source,
    })?;
    let mut removed = 0;
    for found in engine.list(None).await? {
        if is_left_over(&found.labels, found.state, &me, now()) {
            engine.remove(&found.id).await?;
            removed += 1;
        }
    }
    Ok(removed)
}
