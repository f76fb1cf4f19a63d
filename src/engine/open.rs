//! Finds an engine. Only here implementations are named.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use super::address::Address;
use super::choice::{Choice, EngineName};
use super::docker::Docker;
use super::embedded::Embedded;
use super::error::EngineError;
use super::traits::Engine;

/// Looks up a variable of the caller's environment.
pub type Variable<'a> = &'a (dyn Fn(&str) -> Option<OsString> + Send + Sync);

/// The first engine of a choice that is there.
///
/// # Errors
/// None of them is there, or one that is there cannot be used.
pub async fn open(choice: &Choice, variable: Variable<'_>) -> Result<Arc<dyn Engine>, EngineError> {
    let mut opened = open_one(choice.first(), variable).await;
    for name in choice.others() {
        let error = match opened {
            Err(error) if error.is_out_of_reach() => error,
            _ => break,
        };
        opened = open_one(name, variable).await.map_err(|last| EngineError::NoneUsable {
            first: Box::new(error),
            last: Box::new(last),
        });
    }
    opened
}

/// Every engine of a choice that is there.
///
/// # Errors
/// None of them is there, or one that is there cannot be used.
pub async fn open_all(
    choice: &Choice,
    variable: Variable<'_>,
) -> Result<Vec<Arc<dyn Engine>>, EngineError> {
    let mut opened = Vec::new();
    let mut missing = None;
    for name in std::iter::once(choice.first()).chain(choice.others()) {
        match open_one(name, variable).await {
            Ok(engine) => opened.push(engine),
            Err(error) if error.is_out_of_reach() => missing = missing.or(Some(error)),
            Err(error) => return Err(error),
        }
    }
    match missing {
        Some(error) if opened.is_empty() => Err(error),
        _ => Ok(opened),
    }
}

async fn open_one(
    name: EngineName,
    variable: Variable<'_>,
) -> Result<Arc<dyn Engine>, EngineError> {
    Ok(match name {
        EngineName::Docker => Arc::new(Docker::connect(variable).await?),
        EngineName::Embedded => Arc::new(Embedded::open(variable).await?),
    })
}

/// The engine at an address that another process has written down. `cache` is the folder where engines keep what they have
/// learned ([`cache_folder`]); without one the engine is asked again, which is enough to end sandboxes.
///
/// # Errors
/// It is not there any more, or cannot be used.
pub async fn at(address: &Address, cache: Option<PathBuf>) -> Result<Arc<dyn Engine>, EngineError> {
    Ok(match address.engine() {
        EngineName::Docker => Arc::new(Docker::connect_to(address.place(), cache).await?),
        EngineName::Embedded => Arc::new(Embedded::at(address.place(), cache)),
    })
}

/// Where engines keep what they have learned and may lose: below `XDG_CACHE_HOME`, else below `~/.cache`.
#[must_use]
pub fn cache_folder(variable: Variable<'_>) -> Option<PathBuf> {
    let absolute = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    Some(base.join("runner").join("engine"))
}
