//! `runner config schema`: the JSON Schema of a configuration file.

use crate::cli::Error;
use crate::cli::printer::{Format, OutputError, Printer};
use crate::config;
use crate::exit::Ending;

/// As typed.
#[derive(Debug, clap::Args)]
#[command(
    after_help = concat!(
        "Editors with a YAML language server use it if the first line of a file is\n",
        "  # yaml-language-server: $schema=config.schema.json\n\n",
        "Examples:\n",
        "  runner config schema > config.schema.json\n",
        "  runner config schema | jq '.properties | keys'",
    )
)]
pub struct Args {}

pub(super) fn run(_: &Args, printer: &mut Printer) -> Result<Ending, Error> {
    let schema = config::schema();
    match printer.format() {
        Format::Json => printer.json(&schema)?,
        Format::Text => {
            let text = serde_json::to_string_pretty(&schema).map_err(OutputError::from)?;
            printer.data(format_args!("{text}\n"))?;
        }
    }
    Ok(Ending::ok())
}
