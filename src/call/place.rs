//! A call's place among those that run: which queue it stands in, and for how long at most.

use std::time::Duration;

use runner_policy::limits::{Limit, Limits};

use super::error::CallError;
use super::request::Decided;
use super::run::Output;
use crate::config::Config;
use crate::policy_files::Places;
use crate::queue::{Figures, HeldSlot, Queue, Subject};
use crate::sandbox::cancel::Cancel;
use crate::sandbox::streams::Sink;

/// A place for a command.
pub(super) async fn place_of_command(
    decided: &Decided,
    output: &mut Output,
    cancel: &mut Cancel,
) -> Result<HeldSlot, CallError> {
    let told = match output {
        Output::Streamed(streams) | Output::Spoken(streams) => &mut streams.stderr,
        Output::Kept(..) => &mut None,
    };
    place((&decided.places, &decided.config), Subject::Command, &decided.limits(), cancel, told)
        .await
}

/// A place. A call waits no longer than it may run.
pub(super) async fn place(
    (places, config): (&Places, &Config),
    subject: Subject<'_>,
    limits: &Limits,
    cancel: &mut Cancel,
    told: &mut Sink,
) -> Result<HeldSlot, CallError> {
    let figures = match subject {
        Subject::Tool(name) => Figures::of(&config.limits(name)),
        // `tools.exec` in the configuration is about commands.
        Subject::Command => "exec"
            .parse()
            .map_or_else(|_| Figures::default(), |it| Figures::of(&config.limits(&it))),
    };
    let queue = Queue::of(places.state.as_deref(), subject, figures)?;
    let most = Duration::from_millis(limits.get(Limit::Wall));
    Ok(queue.enter(most, cancel, told).await?)
}
