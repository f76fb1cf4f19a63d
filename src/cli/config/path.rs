//! `runner config path`: where configuration files are looked for.

use serde_json::json;

use super::places;
use crate::call::Context;
use crate::cli::Error;
use crate::cli::printer::{Format, Printer};
use crate::cli::table::Table;
use crate::config::{self, Layer};
use crate::exit::Ending;

/// As typed.
#[derive(Debug, clap::Args)]
#[command(
    after_help = concat!(
        "The managed file wins over the user's file, and the user's over the project's.\n\n",
        "Examples:\n",
        "  runner config path\n",
        "  runner config path --json | jq -r '.files[] | select(.layer == \"user\").file'",
    )
)]
pub struct Args {}

pub(super) fn run(_: &Args, context: &Context, printer: &mut Printer) -> Result<Ending, Error> {
    let places = places(context)?;
    let files = Layer::FILES
        .into_iter()
        .filter_map(|layer| Some((layer, config::path(layer, &places)?)))
        .map(|(layer, path)| (layer, path.symlink_metadata().is_ok(), path.display().to_string()));
    match printer.format() {
        Format::Json => {
            let rows: Vec<_> = files
                .map(
                    |(layer, there, file)| json!({ "layer": layer, "file": file, "exists": there }),
                )
                .collect();
            printer.json(&json!({ "files": rows }))?;
        }
        Format::Text => {
            let mut table = Table::new(["layer", "state", "file"]);
            for (layer, there, file) in files {
                let state = if there { "there" } else { "not there" };
                table.row([layer.word().to_owned(), state.to_owned(), file]);
            }
            printer.data(&table)?;
        }
    }
    Ok(Ending::ok())
}
