//! Which engines are measured: each that can be used here, or the one that was asked for.

use super::error::BenchError;
use crate::engine::{self, Choice, EngineError, EngineName, Facts, Life, Variable};

/// An engine that answers.
#[derive(Debug)]
pub struct Measured {
    /// Its name.
    pub name: EngineName,
    /// What it is.
    pub facts: Facts,
    /// Whether a sandbox of it may wait for a command.
    pub life: Life,
}

/// What was found.
#[derive(Debug)]
pub struct Engines {
    /// Those that are measured, at least one.
    pub usable: Vec<Measured>,
    /// Those that are not, and why.
    pub missing: Vec<(EngineName, EngineError)>,
}

/// Asks every engine; with a choice, the first of it that can be used.
///
/// # Errors
/// None can be used.
pub async fn find(choice: Option<&Choice>, variable: Variable<'_>) -> Result<Engines, BenchError> {
    if let Some(choice) = choice {
        let usable = vec![open(choice, variable).await?];
        return Ok(Engines { usable, missing: Vec::new() });
    }
    let (mut usable, mut missing) = (Vec::new(), Vec::new());
    for name in EngineName::ALL {
        match open(&name.into(), variable).await {
            Ok(engine) => usable.push(engine),
            Err(error) => missing.push((name, error)),
        }
    }
    if usable.is_empty() {
        let why = missing.drain(..).map(|(_, error)| error);
        let both =
            |first, last| EngineError::NoneUsable { first: Box::new(first), last: Box::new(last) };
        if let Some(error) = why.reduce(both) {
            return Err(error.into());
        }
    }
    Ok(Engines { usable, missing })
}

async fn open(choice: &Choice, variable: Variable<'_>) -> Result<Measured, EngineError> {
    let engine = engine::open(choice, variable).await?;
    let facts = engine.probe().await?;
    Ok(Measured { name: engine.address().engine(), facts, life: engine.life() })
}
