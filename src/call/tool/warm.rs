//! Fills the pool by hand with sandboxes in which a tool's runtime waits.

use super::prepare::ToolRequest;
use super::program::Program;
use super::sandbox::{Ready, ready, setting};
use crate::call::open_engine::open_engine;
use crate::call::warm::fill;
use crate::call::{CallError, Context, Warmed, supply};
use crate::pool::Entry;
use crate::sandbox::cancel::Cancel;

/// Makes sandboxes that wait for calls of this tool, whatever their arguments. `made` is told of each.
///
/// # Errors
/// There is no such tool, or a call of it would not start; or a sandbox could not be made: those before it wait.
pub async fn warm(
    request: ToolRequest,
    count: usize,
    made: &mut dyn FnMut(&Entry),
    context: &Context,
    cancel: &mut Cancel,
) -> Result<Warmed, CallError> {
    let tool = request.find(context, cancel).await?;
    match &tool.program {
        Program::Module { .. } => {}
        Program::BuiltIn(_) => return Ok(Warmed::Ourselves),
        Program::Server { from, .. } => return Ok(Warmed::Command(from.command())),
    }
    let scene = &tool.scene;
    let engine =
        open_engine(scene.engine.as_ref(), &scene.config, &scene.policy, &scene.context).await?;
    let engine = engine.as_ref();
    let Ready { plan, prestart, .. } = ready(scene, engine).await?;
    let pool = supply::pool(scene.warmth, &scene.config);
    let supply = supply::supply(&setting(scene), &plan, engine, Some(&prestart), pool).await?;
    fill(engine, &supply, &scene.context.watchdog, count, made).await
}
