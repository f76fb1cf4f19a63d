//! The engine of a call: one that was chosen, and that configuration and policy allow.

use std::sync::Arc;

use runner_policy::Effective;

use super::Context;
use super::error::CallError;
use super::request::Decided;
use crate::config::Config;
use crate::engine::{self, Choice, Engine, EngineName};
use crate::environment::Environment;

/// The file in the engines' cache that has the name of the engine that was found last where several may be used.
const LAST: &str = "last-found";

/// Opens the first engine that is there, of those that the caller wants, the configuration sets and the policy allows.
/// A caller who lets several be tried is told when another one is found than the last time.
///
/// # Errors
/// None of them may be used, or none answers.
pub(super) async fn open_engine(
    wanted: Option<&Choice>,
    config: &Config,
    policy: &Effective,
    context: &Context,
) -> Result<Arc<dyn Engine>, CallError> {
    let choice = config
        .engines(wanted)
        .ok_or_else(|| CallError::EngineNotSet { set: config.engine().cloned().map(Box::new) })?;
    let allowed = policy.engines();
    let Some(choice) = choice.among(&allowed) else {
        return Err(CallError::NoEngine {
            policy: policy.name().to_owned(),
            engines: allowed.iter().map(ToString::to_string).collect(),
            choice,
        });
    };
    let variable = |name: &str| context.environment.get(name);
    let engine = engine::open(&choice, &variable).await?;
    if choice.others().next().is_some() {
        let name = engine.address().engine();
        if is_another(&context.environment, name) {
            context.notices.say(name.found_now().to_owned());
        }
    }
    Ok(engine)
}

/// The same for a decided call.
pub(super) async fn open_engine_of(decided: &Decided) -> Result<Arc<dyn Engine>, CallError> {
    let Decided { request, config, policy, context, .. } = decided;
    open_engine(request.engine.as_ref(), config, policy, context).await
}

/// Whether another engine was found the last time, and remembers this one. Without any word of it, that was the
/// one that is tried first.
fn is_another(environment: &Environment, name: EngineName) -> bool {
    let Some(cache) = engine::cache_folder(&|name| environment.get(name)) else { return false };
    let file = cache.join(LAST);
    let last = std::fs::read_to_string(&file).unwrap_or_default();
    let last = EngineName::named(&last).unwrap_or(Choice::default().first());
    if last == name {
        return false;
    }
    // If it cannot be kept, it is said again.
    let _ = std::fs::create_dir_all(&cache).and_then(|()| std::fs::write(file, name.as_str()));
    true
}
