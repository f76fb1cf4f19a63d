//! The engine of a call: one that was chosen, and that the policy allows.

use std::sync::Arc;

use runner_policy::Effective;

use super::error::CallError;
use crate::engine::{self, Choice, Engine};
use crate::environment::Environment;

/// Opens the first engine of a choice that is there, of those that the policy allows. Nothing falls back to another.
///
/// # Errors
/// The policy allows none of them, or none answers.
pub(super) async fn open_engine(
    choice: &Choice,
    policy: &Effective,
    environment: &Environment,
) -> Result<Arc<dyn Engine>, CallError> {
    let allowed = policy.engines();
    let Some(choice) = choice.among(&allowed) else {
        return Err(CallError::NoEngine {
            policy: policy.name().to_owned(),
            engines: allowed.iter().map(ToString::to_string).collect(),
            choice: choice.clone(),
        });
    };
    Ok(engine::open(&choice, &|name| environment.get(name)).await?)
}
