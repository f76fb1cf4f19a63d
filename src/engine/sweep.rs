//! Removes what earlier runs left behind: the backstop behind the guest's own end and the watchdog.

use super::error::EngineError;
use super::label::{Labels, is_left_over};
use super::traits::Engine;
use crate::ids::{CallId, Owner};
use crate::sys::now;

/// Removes every sandbox of this user that is past its deadline or whose process is dead; how many.
///
/// # Errors
/// The engine cannot list them, or one cannot be removed; the others are gone all the same, and the next sweep tries
/// that one again.
pub async fn sweep(engine: &dyn Engine) -> Result<usize, EngineError> {
    let me = this()?;
    let (mut removed, mut failed) = (0, None);
    for found in engine.list(None).await? {
        if is_left_over(&found.labels, found.state, &me, now()) {
            match engine.remove(&found.id).await {
                Ok(()) => removed += 1,
                Err(error) => failed = Some(error),
            }
        }
    }
    failed.map_or(Ok(removed), Err)
}

/// Removes this user's sandboxes of one label; how many there were. Whoever names a sandbox may be wrong about it, or
/// lie: what counts is what it says of itself.
///
/// # Errors
/// The engine cannot list them, or one cannot be removed.
pub async fn remove_labelled(engine: &dyn Engine, label: &CallId) -> Result<usize, EngineError> {
    let uid = this()?.uid.to_string();
    let says = |found: &super::Found, name, value: &str| {
        found.labels.get(&Labels::key(name)).is_some_and(|said| said == value)
    };
    let mut removed = 0;
    for found in engine.list(Some(label)).await? {
        if says(&found, "call", label.as_str()) && says(&found, "owner", &uid) {
            engine.remove(&found.id).await?;
            removed += 1;
        }
    }
    Ok(removed)
}

fn this() -> Result<Owner, EngineError> {
    Owner::this()
        .map_err(|source| EngineError::Local { operation: "find out who this process is", source })
}
