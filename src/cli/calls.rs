//! `runner ps`, `runner cancel`, `runner gc`: calls that run, and what is left of those that do not.

use serde_json::json;

use super::audit::{moment, open};
use super::event_loop::in_event_loop;
use super::printer::{Format, Printer};
use super::table::Table;
use super::usage::UsageError;
use crate::audit::Ledger;
use crate::call::Context;
use crate::call::{self, Cancelled};
use crate::cli::Error;
use crate::engine;
use crate::exit::Ending;

/// As typed.
#[derive(Debug, clap::Args)]
pub struct Cancel {
    /// The call's id, as `runner ps` shows it, or the beginning of it
    id: String,
}

/// As typed.
#[derive(Debug, clap::Args)]
pub struct Gc {
    /// The engine whose sandboxes are swept [default: auto]
    #[arg(long, value_name = "ENGINE", value_parser = super::engine::choice())]
    engine: Option<engine::Choice>,
}

/// Shows calls that run.
pub(super) fn ps(context: &Context, printer: &mut Printer) -> Result<Ending, Error> {
    let calls = call::running(&Ledger::new(open(context)?))?;
    match printer.format() {
        Format::Json => {
            let rows: Vec<_> = calls
                .iter()
                .map(|it| {
                    let (command, workspace) = (&it.command, &it.workspace);
                    json!({ "call": it.call, "pid": it.pid, "at": it.at, "command": command, "workspace": workspace })
                })
                .collect();
            printer.json(&json!({ "calls": rows }))?;
        }
        Format::Text => {
            let mut table = Table::new(["CALL", "SINCE", "PID", "COMMAND"]);
            for it in calls {
                let command = it.command.unwrap_or_default();
                table.row([it.call, moment(it.at), it.pid.to_string(), command]);
            }
            printer.data(table)?;
        }
    }
    Ok(Ending::ok())
}

/// Ends a call: its process is asked to, and ends its sandbox.
pub(super) fn cancel(
    args: &Cancel,
    context: &Context,
    printer: &mut Printer,
) -> Result<Ending, Error> {
    let wrong = |why: String| UsageError::Option { option: "ID".to_owned(), why };
    let id = match call::cancel(&Ledger::new(open(context)?), &args.id)? {
        Cancelled::Asked(id) => id,
        Cancelled::Unknown => {
            let why = format!("no running call `{}`; `runner ps` shows those there are", args.id);
            return Err(wrong(why).into());
        }
        Cancelled::Several => {
            let why = format!("`{}` is the beginning of several calls; write more of it", args.id);
            return Err(wrong(why).into());
        }
    };
    match printer.format() {
        Format::Json => printer.json(&json!({ "call": id, "cancelled": true }))?,
        Format::Text => printer.data(format_args!("asked {id} to end\n"))?,
    }
    Ok(Ending::ok())
}

/// Sweeps whatever of ours is left: sandboxes without a process, records without an end.
pub(super) fn gc(args: Gc, context: &Context, printer: &mut Printer) -> Result<Ending, Error> {
    let ledger = Ledger::new(open(context)?);
    let choice = args.engine.unwrap_or_default();
    let swept = in_event_loop(call::gc(&ledger, &choice, &context.environment))??;
    match printer.format() {
        Format::Json => printer.json(&json!({
            "aborted": swept.aborted,
            "removed": swept.removed,
        }))?,
        Format::Text => printer.data(format_args!(
            "{} call(s) found aborted, {} sandbox(es) removed\n",
            swept.aborted.len(),
            swept.removed
        ))?,
    }
    Ok(Ending::ok())
}
