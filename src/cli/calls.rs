//! `runner ps`, `runner cancel`, `runner gc`: calls that run, and what is left of those that do not.

use serde_json::json;

use super::audit::{moment, open};
use super::event_loop::in_event_loop;
use super::printer::{Format, Printer};
use super::table::Table;
use super::usage::UsageError;
use super::visible::visible;
use crate::audit::Ledger;
use crate::call::Context;
use crate::call::{self, Cancelled};
use crate::cli::Error;
use crate::config;
use crate::engine;
use crate::exit::Ending;
use crate::policy_files::Places;
use crate::stage::recover::Recovered;

/// As typed.
#[derive(Debug, clap::Args)]
#[command(
    after_help = concat!(
        "Examples:\n",
        "  runner cancel 019a2b\n",
        "  runner cancel 019a2b --json",
    )
)]
pub struct Cancel {
    /// The call's id, as `runner ps` shows it, or the beginning of it
    id: String,
}

/// As typed.
#[derive(Debug, clap::Args)]
#[command(
    after_help = concat!(
        "Removes sandboxes whose process was killed, marks their calls as aborted in the ",
        "ledger, and finishes or undoes interrupted writes.\n\n",
        "Examples:\n",
        "  runner gc\n",
        "  runner gc --engine embedded",
    )
)]
pub struct Gc {
    /// The engine whose sandboxes are removed [default: auto]
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
            let why = format!("no running call `{}`; `runner ps` lists the running calls", args.id);
            return Err(wrong(why).into());
        }
        Cancelled::Several => {
            let why = format!("`{}` is the beginning of several calls; write more of it", args.id);
            return Err(wrong(why).into());
        }
    };
    match printer.format() {
        Format::Json => printer.json(&json!({ "call": id, "cancelled": true }))?,
        Format::Text => printer.data(format_args!("cancel requested for {id}\n"))?,
    }
    Ok(Ending::ok())
}

/// Sweeps whatever of ours is left: sandboxes without a process, records without an end.
pub(super) fn gc(args: Gc, context: &Context, printer: &mut Printer) -> Result<Ending, Error> {
    let ledger = Ledger::new(open(context)?);
    let choice = args.engine.unwrap_or_default();
    let undo = config::load(&Places::of(&context.environment, None))?.undo();
    let swept = in_event_loop(call::gc(&ledger, &choice, &context.environment, undo))??;
    let applies: Vec<_> = swept.recovered.iter().filter_map(recovered).collect();
    match printer.format() {
        Format::Json => printer.json(&json!({
            "aborted": swept.aborted,
            "removed": swept.removed,
            "applies": applies,
        }))?,
        Format::Text => {
            printer.data(format_args!(
                "{} aborted call(s) found, {} sandbox(es) removed\n",
                swept.aborted.len(),
                swept.removed
            ))?;
            for apply in &applies {
                printer.data(format_args!("{}: {}\n", apply.call, visible(&apply.outcome)))?;
            }
        }
    }
    Ok(Ending::ok())
}

/// An apply that a death had interrupted.
#[derive(serde::Serialize)]
struct RecoveredApply {
    call: String,
    outcome: String,
}

fn recovered(recovered: &Recovered) -> Option<RecoveredApply> {
    let (call, outcome) = match recovered {
        Recovered::Finished(call, _) => (call, "its changes are applied now".to_owned()),
        Recovered::TakenBack(call, error) => {
            (call, format!("its changes could not be applied ({error}); nothing of them was"))
        }
        Recovered::Failed(call, error) => (call, error.to_string()),
        Recovered::Removed(_) => return None,
    };
    Some(RecoveredApply { call: call.to_string(), outcome })
}
