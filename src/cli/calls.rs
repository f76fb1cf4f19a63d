//! `runner ps`, `runner cancel`, `runner gc`: calls that run, and what is left of those that do not.

use serde_json::json;

use super::audit::{moment, open};
use super::printer::{Format, Printer};
use super::table::Table;
use super::usage::UsageError;
use crate::audit::{Kind, Ledger};
use crate::call::CallError;
use crate::engine::{Docker, EngineError, sweep};
use crate::error::Error;
use crate::exit::Ending;
use crate::pool::{Pool, discard};

/// As typed.
#[derive(Debug, clap::Args)]
pub struct Cancel {
    /// The call's id, as `runner ps` shows it, or the beginning of it
    id: String,
}

/// Shows calls that run.
pub(super) fn ps(printer: &mut Printer) -> Result<Ending, Error> {
    let ledger = Ledger::new(open()?);
    ledger.find_aborted().map_err(CallError::from)?;
    let running = ledger.running().map_err(CallError::from)?;
    let mut calls = Vec::new();
    for (id, pid) in running {
        // The records of this call alone: a ledger grows for years, and few calls run at once.
        let records = ledger.show(&id).map_err(CallError::from)?;
        let start = records.into_iter().find(|record| record.kind == Kind::Start);
        calls.extend(start.map(|start| (start, pid)));
    }
    match printer.format() {
        Format::Json => {
            let rows: Vec<_> = calls
                .iter()
                .map(|(start, pid)| {
                    let (command, workspace) = (&start.body["command"], &start.body["workspace"]);
                    json!({ "call": start.call, "pid": pid, "at": start.at, "command": command, "workspace": workspace })
                })
                .collect();
            printer.json(&json!({ "calls": rows }))?;
        }
        Format::Text => {
            let mut table = Table::new(["CALL", "SINCE", "PID", "COMMAND"]);
            for (start, pid) in calls {
                let command = start.body["command"].as_str().unwrap_or_default().to_owned();
                table.row([start.call, moment(start.at), pid.to_string(), command]);
            }
            printer.data(table)?;
        }
    }
    Ok(Ending::ok())
}

/// Ends a call: its process is asked to, and ends its sandbox.
pub(super) fn cancel(args: &Cancel, printer: &mut Printer) -> Result<Ending, Error> {
    let ledger = Ledger::new(open()?);
    ledger.find_aborted().map_err(CallError::from)?;
    let running = ledger.running().map_err(CallError::from)?;
    let mut found = running.iter().filter(|(id, _)| id.starts_with(&args.id));
    let wrong = |why: String| UsageError::Option { option: "ID".to_owned(), why };
    let Some((id, pid)) = found.next() else {
        return Err(wrong(format!(
            "no running call `{}`; `runner ps` shows those there are",
            args.id
        ))
        .into());
    };
    if found.next().is_some() {
        return Err(wrong(format!(
            "`{}` is the beginning of several calls; write more of it",
            args.id
        ))
        .into());
    }
    // Found a moment ago as the process that was recorded, by number and start time.
    let asked = i32::try_from(*pid)
        .ok()
        .and_then(rustix::process::Pid::from_raw)
        .ok_or(rustix::io::Errno::SRCH)
        .and_then(|pid| rustix::process::kill_process(pid, rustix::process::Signal::TERM));
    asked.map_err(|error| CallError::Local("ask the call's process to end", error.into()))?;
    match printer.format() {
        Format::Json => printer.json(&json!({ "call": id, "cancelled": true }))?,
        Format::Text => printer.data(format_args!("asked {id} to end\n"))?,
    }
    Ok(Ending::ok())
}

/// Sweeps whatever of ours is left: sandboxes without a process, records without an end.
pub(super) fn gc(printer: &mut Printer) -> Result<Ending, Error> {
    let ledger = Ledger::new(open()?);
    let aborted = ledger.find_aborted().map_err(CallError::from)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| CallError::Local("start the event loop", error))?;
    let left_over = Pool::new(ledger.store().folder()).left_over();
    let left_over = left_over
        .map_err(|error| CallError::Local("use the pool", std::io::Error::other(error)))?;
    let removed = runtime
        .block_on(async {
            let mut removed = sweep(&Docker::connect().await?).await?;
            for held in left_over {
                removed += discard(held).await?;
            }
            Ok(removed)
        })
        .map_err(|error: EngineError| CallError::from(error))?;
    crate::undo::sweep(ledger.store()).map_err(CallError::from)?;
    ledger.store().settle().map_err(CallError::from)?;
    match printer.format() {
        Format::Json => printer.json(&json!({
            "aborted": aborted,
            "removed": removed,
        }))?,
        Format::Text => printer.data(format_args!(
            "{} call(s) found aborted, {} sandbox(es) removed\n",
            aborted.len(),
            removed
        ))?,
    }
    Ok(Ending::ok())
}
