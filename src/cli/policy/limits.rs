//! `runner policy limits`: the table of limits.

use runner_policy::limits::TABLE;
use serde_json::json;

use crate::cli::Error;
use crate::cli::printer::{Format, Printer};
use crate::cli::table::Table;
use crate::exit::Ending;

/// As typed.
#[derive(Debug, clap::Args)]
#[command(
    after_help = concat!(
        "Examples:\n",
        "  runner policy limits\n",
        "  runner policy limits --json | jq '.limits[] | select(.key == \"memory\")'",
    )
)]
pub struct Args {}

pub(super) fn run(_: &Args, printer: &mut Printer) -> Result<Ending, Error> {
    match printer.format() {
        Format::Json => {
            let rows: Vec<_> = TABLE
                .iter()
                .map(|row| {
                    json!({
                        "key": row.key,
                        "basic": row.unit.show(row.basic),
                        "strict": row.unit.show(row.strict),
                        "paranoid": row.unit.show(row.paranoid),
                        "ceiling": row.unit.show(row.ceiling),
                        "about": row.about,
                    })
                })
                .collect();
            printer.json(&json!({ "limits": rows }))?;
        }
        Format::Text => {
            let mut table =
                Table::new(["limit", "basic", "strict", "paranoid", "ceiling", "what it bounds"]);
            for row in &TABLE {
                let show = |figure| row.unit.show(figure);
                table.row([
                    row.key.to_owned(),
                    show(row.basic),
                    show(row.strict),
                    show(row.paranoid),
                    show(row.ceiling),
                    row.about.to_owned(),
                ]);
            }
            printer.data(&table)?;
        }
    }
    Ok(Ending::ok())
}
