//! Takes a hook out again.

use std::path::Path;

use super::edits::without_ours;
use super::files::{digest, put, text_of};
use crate::agent::error::AgentError;
use crate::agent::kind::{Agent, Layer};
use crate::agent::pin::{self, Edited, Pin};
use crate::agent::place::Place;

/// Removes what was installed in a layer; the files that were changed.
///
/// # Errors
/// Nothing is installed there, or a file cannot be read or written. The pin goes last, so that it can be tried again.
pub fn uninstall(
    place: &Place,
    agent: Agent,
    layer: Layer,
    workspace: Option<&Path>,
) -> Result<Vec<Edited>, AgentError> {
    let mut pins = pin::read(place, agent, layer)?;
    let is = |pin: &Pin| pin.layer == layer && pin.workspace.as_deref() == workspace;
    let at = pins.iter().position(is).ok_or(AgentError::NotInstalled(agent))?;
    let pin = pins.remove(at);
    for edited in &pin.files {
        take_out(agent, &pin, edited)?;
    }
    pin::write(place, agent, layer, pins)?;
    Ok(pin.files)
}

/// Puts a file back as it was, or takes our entries out of what it has become.
fn take_out(agent: Agent, pin: &Pin, edited: &Edited) -> Result<(), AgentError> {
    let Some(text) = text_of(&edited.path)? else { return Ok(()) };
    if digest(&text) == edited.after {
        return put_back(edited);
    }
    match without_ours(agent, pin, edited, &text)? {
        Some(left) => put(&edited.path, &left),
        None => Ok(()),
    }
}

/// Puts a file back as it was.
pub(super) fn put_back(edited: &Edited) -> Result<(), AgentError> {
    match &edited.before {
        Some(before) => put(&edited.path, before),
        None => std::fs::remove_file(&edited.path)
            .map_err(|source| AgentError::Io { path: edited.path.clone(), source }),
    }
}

/// What became of our entries in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Intact {
    /// The file is as it was written.
    Intact,
    /// It changed, and our hook is still in it.
    Changed,
    /// Our hook is not in it any more.
    Gone,
}

/// Looks at a file.
#[must_use]
pub fn intact(agent: Agent, pin: &Pin, edited: &Edited) -> Intact {
    let Ok(Some(text)) = text_of(&edited.path) else { return Intact::Gone };
    if digest(&text) == edited.after {
        return Intact::Intact;
    }
    let command = super::edits::hook_command(&pin.program, agent);
    let written = [command.clone(), serde_json::Value::from(command).to_string()];
    let names = written.iter().any(|form| text.contains(form.trim_matches('"')));
    // OpenCode's plugin names the program alone.
    let named = names || text.contains(&*pin.program.to_string_lossy());
    if named { Intact::Changed } else { Intact::Gone }
}
