//! `runner schema …`: the JSON Schemas of what this program writes.

use clap::Subcommand;
use serde_json::json;

use super::printer::{Format, OutputError, Printer};
use super::table::Table;
use crate::call;
use crate::cli::Error;
use crate::exit::Ending;

/// The subcommands of `schema`.
#[derive(Debug, Subcommand)]
#[command(
    after_help = concat!(
        "Without a subcommand, the schemas are listed.\n\n",
        "Examples:\n",
        "  runner schema\n",
        "  runner schema result > result.schema.json",
    )
)]
pub enum Command {
    /// Print the JSON Schema of every result: of commands, tools, denials, errors and wrong usage
    #[command(after_help = concat!(
        "Examples:\n",
        "  runner schema result > result.schema.json\n",
        "  runner schema result | jq '.properties | keys'",
    ))]
    Result,
}

/// What there is, and the command that prints it.
const ALL: [[&str; 3]; 2] = [
    ["result", "runner schema result", "what `exec`, `tool run` and every error print with --json"],
    ["config", "runner config schema", "a configuration file, for editors"],
];

/// Prints one, or lists them.
pub(super) fn run(command: Option<Command>, printer: &mut Printer) -> Result<Ending, Error> {
    match (command, printer.format()) {
        (Some(Command::Result), Format::Json) => printer.json(&call::schema())?,
        (Some(Command::Result), Format::Text) => {
            let text = serde_json::to_string_pretty(&call::schema()).map_err(OutputError::from)?;
            printer.data(format_args!("{text}\n"))?;
        }
        (None, Format::Json) => {
            let all = ALL.map(|[name, command, about]| {
                json!({ "name": name, "command": command, "about": about })
            });
            printer.json(&json!({ "schemas": all }))?;
        }
        (None, Format::Text) => {
            let mut table = Table::new(["SCHEMA", "PRINTED BY", "OF"]);
            for row in ALL {
                table.row(row.map(str::to_owned));
            }
            let width = printer.width();
            printer.data(table.fitting(width))?;
        }
    }
    Ok(Ending::ok())
}
