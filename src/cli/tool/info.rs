//! `runner tool info`: one tool, whole.

use super::place;
use super::view::View;
use crate::cli::printer::{Format, Printer};
use crate::error::Error;
use crate::exit::Ending;
use crate::tool::{Definition, Tool, ToolName};

/// As typed.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  runner tool info run_tests\n  runner tool info run_tests --json | jq .schema"
)]
pub struct Args {
    /// The tool, by name
    #[arg(value_name = "NAME")]
    name: ToolName,
    #[command(flatten)]
    place: place::Args,
}

pub(super) fn run(args: Args, printer: &mut Printer) -> Result<Ending, Error> {
    let place = args.place.resolve()?;
    let tool = place.library.tool(&args.name)?;
    match tool.definition()? {
        Some(definition) => show(tool, definition, printer)?,
        None => known(tool, printer)?,
    }
    Ok(Ending::ok())
}

fn show(tool: &Tool, definition: &Definition, printer: &mut Printer) -> Result<(), Error> {
    match printer.format() {
        Format::Json => {
            let mut record = definition.record();
            if let Some(record) = record.as_object_mut() {
                record.insert("source".to_owned(), serde_json::json!(tool.layer));
                record.insert("form".to_owned(), serde_json::json!(tool.form));
                record.insert("file".to_owned(), tool.file.clone().into());
                record.insert("digest".to_owned(), tool.digest.to_hex().to_string().into());
                record.insert("replacesShipped".to_owned(), tool.replaces_shipped.into());
            }
            printer.json(&record)?;
        }
        Format::Text => printer.data(View { tool, definition })?,
    }
    Ok(())
}

/// What is known of a module before it runs.
fn known(tool: &Tool, printer: &mut Printer) -> Result<(), Error> {
    match printer.format() {
        Format::Json => printer.json(&serde_json::json!({
            "name": tool.name, "source": tool.layer, "form": tool.form, "file": tool.file,
            "digest": tool.digest.to_hex().to_string(), "replacesShipped": tool.replaces_shipped,
        }))?,
        Format::Text => {
            printer.data(format_args!(
                "{}\n  source      {}  {}\n",
                tool.name,
                tool.layer.word(),
                crate::cli::visible(&tool.file)
            ))?;
        }
    }
    Ok(())
}
