//! `runner audit list`.

use super::told::moment;
use super::which::Which;
use crate::audit::{Filter, Ledger};
use crate::call::CallError;
use crate::cli::printer::{Format, Printer};
use crate::cli::table::Table;
use crate::error::Error;
use crate::exit::Ending;

/// As typed.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    which: Which,
    /// At most this many
    #[arg(long, short = 'n', value_name = "N", default_value_t = 50)]
    most: usize,
}

pub(super) fn run(args: &Args, ledger: &Ledger, printer: &mut Printer) -> Result<Ending, Error> {
    let filter = Filter { most: Some(args.most), ..args.which.filter()? };
    let calls = ledger.list(&filter).map_err(CallError::from)?;
    match printer.format() {
        Format::Json => printer.json(&serde_json::json!({ "calls": calls }))?,
        Format::Text => {
            let mut table = Table::new(["CALL", "WHEN", "STATUS", "EXIT", "RULE", "COMMAND"]);
            for call in calls {
                table.row([
                    call.call,
                    moment(call.at),
                    call.status,
                    call.exit.map(|exit| exit.to_string()).unwrap_or_default(),
                    call.rule.or(call.error).unwrap_or(call.code),
                    call.command,
                ]);
            }
            let width = printer.width();
            printer.data(table.fitting(width))?;
        }
    }
    Ok(Ending::ok())
}
