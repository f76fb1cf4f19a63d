//! `runner audit show`.

use super::one_line::moment;
use crate::audit::Ledger;
use crate::call::CallError;
use crate::cli::Error;
use crate::cli::printer::{Format, Printer};
use crate::cli::usage::UsageError;
use crate::cli::visible::visible;
use crate::exit::Ending;

/// As typed.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The call's id, or the beginning of it
    id: String,
}

pub(super) fn run(args: &Args, ledger: &Ledger, printer: &mut Printer) -> Result<Ending, Error> {
    let call = one(ledger, &args.id)?;
    let rows = ledger.show(&call).map_err(CallError::from)?;
    match printer.format() {
        Format::Json => printer.json(&serde_json::json!({ "events": rows }))?,
        Format::Text => {
            for row in rows {
                printer.data(format_args!(
                    "{}  {}  {}\n",
                    moment(row.at),
                    row.kind.word(),
                    visible(&row.call)
                ))?;
                let text = serde_json::to_string_pretty(&row.body).unwrap_or_default();
                for line in text.lines() {
                    printer.data(format_args!("  {}\n", visible(line)))?;
                }
            }
        }
    }
    Ok(Ending::ok())
}

/// The one call whose id begins so.
pub(in crate::cli) fn one(ledger: &Ledger, id: &str) -> Result<String, Error> {
    let wrong = |why: String| UsageError::Option { option: "ID".to_owned(), why };
    // Nothing is the beginning of every call, and names none. A cut id of a narrow list ends in a mark.
    let start = id.strip_suffix('…').unwrap_or(id);
    let found = match start {
        "" => Vec::new(),
        start => ledger.beginning(start).map_err(CallError::from)?,
    };
    match found.as_slice() {
        [one] => Ok(one.clone()),
        [] => {
            let why = format!("there is no call `{id}`; `runner audit list` shows all");
            Err(wrong(why).into())
        }
        _ => {
            let why = format!("`{id}` is the beginning of several calls; write more of it");
            Err(wrong(why).into())
        }
    }
}
