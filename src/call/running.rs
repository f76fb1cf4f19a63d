//! Calls that run now, and asking one of them to end.

use rustix::process::{Pid, Signal, kill_process};

use super::error::CallError;
use crate::audit::{Kind, Ledger};

/// A call that runs.
#[derive(Debug, Clone)]
pub struct Running {
    /// The call.
    pub call: String,
    /// The process that runs it.
    pub pid: u32,
    /// When it started, in milliseconds since 1970.
    pub at: i64,
    /// What it runs.
    pub command: Option<String>,
    /// Where.
    pub workspace: Option<String>,
}

/// What came of asking a call to end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cancelled {
    /// This call was asked.
    Asked(String),
    /// No running call has this id.
    Unknown,
    /// Several running calls have ids that begin so; none was asked.
    Several,
}

/// The calls that run. Those whose process has died are recorded as aborted first.
///
/// # Errors
/// The records cannot be read or written.
pub fn running(ledger: &Ledger) -> Result<Vec<Running>, CallError> {
    ledger.find_aborted()?;
    let mut calls = Vec::new();
    for (id, pid) in ledger.running()? {
        // The records of this call alone: a ledger grows for years, and few calls run at once.
        let start = ledger.show(&id)?.into_iter().find(|record| record.kind == Kind::Start);
        calls.extend(start.map(|start| {
            let text = |key: &str| start.body[key].as_str().map(str::to_owned);
            let (command, workspace) = (text("command"), text("workspace"));
            Running { call: start.call, pid, at: start.at, command, workspace }
        }));
    }
    Ok(calls)
}

/// Asks the process of a call to end. It ends the call's sandbox. `id` is the call's id or the beginning of it.
///
/// # Errors
/// The records cannot be read or written, or the process cannot be asked.
pub fn cancel(ledger: &Ledger, id: &str) -> Result<Cancelled, CallError> {
    ledger.find_aborted()?;
    let running = ledger.running()?;
    let mut found = running.into_iter().filter(|(call, _)| call.starts_with(id));
    let Some((call, pid)) = found.next() else { return Ok(Cancelled::Unknown) };
    if found.next().is_some() {
        return Ok(Cancelled::Several);
    }
    // Found a moment ago as the process that was recorded, by number and start time.
    let asked = i32::try_from(pid)
        .ok()
        .and_then(Pid::from_raw)
        .ok_or(rustix::io::Errno::SRCH)
        .and_then(|pid| kill_process(pid, Signal::TERM));
    asked.map_err(|error| CallError::Local("ask the call's process to end", error.into()))?;
    Ok(Cancelled::Asked(call))
}
