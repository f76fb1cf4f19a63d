//! `runner undo`: takes back what a call changed.

use serde_json::json;

use super::audit::{moment, one, open};
use super::printer::{Format, Printer};
use super::style;
use super::table::Table;
use super::usage::UsageError;
use super::visible::visible;
use crate::audit::Ledger;
use crate::call::CallError;
use crate::call::Context;
use crate::call::undo::{self, UndoError, UndoMode, Undone};
use crate::cli::Error;
use crate::config;
use crate::exit::Ending;
use crate::policy_files::Places;

/// As typed.
#[derive(Debug, clap::Args)]
#[command(
    after_help = concat!(
        "If anything has changed since the call, nothing is restored. An undo is recorded ",
        "like a call, and can be undone.\n\n",
        "Examples:\n",
        "  runner undo --list\n",
        "  runner undo 019a2b --dry-run\n",
        "  runner undo 019a2b",
    )
)]
pub struct Args {
    /// The call's id, or the beginning of it
    #[arg(required_unless_present = "list", conflicts_with = "list")]
    call: Option<String>,
    /// Show the calls that can be undone
    #[arg(long)]
    list: bool,
    /// Show what would be restored, and restore nothing
    #[arg(long, conflicts_with = "list")]
    dry_run: bool,
}

/// The columns that can be left out.
const CHANGES: usize = 2;
const BYTES: usize = 3;

/// Runs it.
pub(super) fn run(args: &Args, context: &Context, printer: &mut Printer) -> Result<Ending, Error> {
    // An undo has no project: what is kept is a matter of the user's and the managed file.
    let places = Places::of(&context.environment, None);
    let bounds = config::load(&places)?.undo();
    let ledger = Ledger::new(open(context)?);
    ledger.find_aborted().map_err(CallError::from)?;
    match &args.call {
        None if args.list => list(&ledger, bounds, printer),
        None => {
            let why = "name a call; `runner undo --list` shows those there are".to_owned();
            Err(UsageError::Option { option: "CALL".to_owned(), why }.into())
        }
        Some(call) => {
            let mode = if args.dry_run { UndoMode::Look } else { UndoMode::Restore };
            let call = one(&ledger, call)?;
            let undone = undo::run(&ledger, (&places, bounds), &call, mode, context)?;
            tell(&undone, printer)
        }
    }
}

fn list(ledger: &Ledger, bounds: config::Undo, printer: &mut Printer) -> Result<Ending, Error> {
    let calls = crate::undo::list(ledger.store(), bounds).map_err(UndoError::from)?;
    match printer.format() {
        Format::Json => printer.json(&json!({ "calls": calls }))?,
        Format::Text => {
            let mut table = Table::new(["CALL", "WHEN", "CHANGES", "BYTES", "UNDONE", "COMMAND"])
                .sparing(&[BYTES, CHANGES]);
            for call in calls {
                table.row([
                    call.call,
                    moment(call.at),
                    call.changes.to_string(),
                    call.bytes.to_string(),
                    if call.undone.is_some() { "yes" } else { "" }.to_owned(),
                    call.command,
                ]);
            }
            let width = printer.width();
            printer.data(table.fitting(width))?;
        }
    }
    Ok(Ending::ok())
}

fn tell(undone: &Undone, printer: &mut Printer) -> Result<Ending, Error> {
    match printer.format() {
        Format::Json => printer.json(undone)?,
        Format::Text => {
            for step in &undone.steps {
                printer.data(format_args!(
                    "{}  {}\n",
                    visible(&step.path),
                    visible(&step.action)
                ))?;
            }
            let strong = style::STRONG;
            match (undone.steps.len(), &undone.call) {
                (0, _) => printer.data("everything is as it was before\n")?,
                (count, None) => printer.data(format_args!(
                    "{strong}{count}{strong:#} step(s) would be done; nothing was\n"
                ))?,
                (count, Some(own)) => printer.data(format_args!(
                    "{strong}{count}{strong:#} step(s) done; `runner undo {own}` takes them back\n"
                ))?,
            }
        }
    }
    Ok(Ending::ok())
}
