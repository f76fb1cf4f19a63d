//! `runner audit list`.

use super::one_line::{command_line, moment};
use super::which::Which;
use crate::audit::{Filter, Ledger};
use crate::call::CallError;
use crate::cli::Error;
use crate::cli::printer::{Format, Printer};
use crate::cli::table::Table;
use crate::exit::Ending;

/// Calls that are listed by default.
const MOST: usize = 50;

impl Default for Args {
    fn default() -> Self {
        Self { which: Which::default(), most: MOST, net: false }
    }
}

/// As typed.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    which: Which,
    /// At most this many
    #[arg(long, short = 'n', value_name = "N", default_value_t = MOST)]
    most: usize,
    /// Connections of commands instead of calls; of the filters, the times count
    #[arg(long)]
    net: bool,
}

/// The columns that can be left out: the status tells most of what they do.
const EXIT: usize = 3;
const RULE: usize = 4;

pub(super) fn run(args: &Args, ledger: &Ledger, printer: &mut Printer) -> Result<Ending, Error> {
    let filter = Filter { most: Some(args.most), ..args.which.filter()? };
    if args.net {
        return connections(&filter, ledger, printer);
    }
    let calls = ledger.list(&filter).map_err(CallError::from)?;
    match printer.format() {
        Format::Json => printer.json(&serde_json::json!({ "calls": calls }))?,
        Format::Text => {
            let mut table = Table::new(["CALL", "WHEN", "STATUS", "EXIT", "RULE", "COMMAND"])
                .sparing(&[RULE, EXIT]);
            for call in calls {
                table.row([
                    call.call,
                    moment(call.at),
                    call.status,
                    call.exit.map(|exit| exit.to_string()).unwrap_or_default(),
                    call.rule.or(call.error).unwrap_or(call.code),
                    command_line(&call.command, &call.args),
                ]);
            }
            let width = printer.width();
            printer.data(table.fitting(width))?;
        }
    }
    Ok(Ending::ok())
}

fn connections(filter: &Filter, ledger: &Ledger, printer: &mut Printer) -> Result<Ending, Error> {
    let rows = ledger.connections(filter).map_err(CallError::from)?;
    match printer.format() {
        Format::Json => {
            let all: Vec<_> = rows
                .into_iter()
                .map(|row| serde_json::json!({ "call": row.call, "at": row.at, "connection": row.body }))
                .collect();
            printer.json(&serde_json::json!({ "connections": all }))?;
        }
        Format::Text => {
            let heads =
                ["CALL", "WHEN", "NAME", "ADDRESS", "SENT", "RECEIVED", "MS", "RULE", "RESULT"];
            let mut table = Table::new(heads);
            for row in rows {
                let text = |key: &str| row.body[key].as_str().unwrap_or_default().to_owned();
                let number = |key: &str| row.body[key].as_u64().unwrap_or_default();
                let result = row.body["code"].as_str().unwrap_or("ok").to_owned();
                table.row([
                    row.call.clone(),
                    moment(row.at),
                    text("object"),
                    text("address"),
                    number("bytes_in").to_string(),
                    number("bytes_out").to_string(),
                    (number("us") / 1_000).to_string(),
                    text("rule"),
                    result,
                ]);
            }
            let width = printer.width();
            printer.data(table.fitting(width))?;
        }
    }
    Ok(Ending::ok())
}
