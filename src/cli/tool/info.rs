//! `runner tool info`: one tool, whole.

use super::place;
use super::view::View;
use crate::call::tool::Looker;
use crate::cli::printer::{Format, Printer};
use crate::error::Error;
use crate::exit::Ending;
use crate::policies::Choice;
use crate::tool::{Definition, Tool, ToolName};

/// As typed.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  runner tool info run_tests\n  runner tool info run_tests --json | jq .schema\n\nA module says what it is when it is loaded: once for each content, in a sandbox, where it may ask for\nnothing."
)]
pub struct Args {
    /// The tool, by name
    #[arg(value_name = "NAME")]
    name: ToolName,
    /// The policy under which a module is asked what it is [default: readonly]
    #[arg(long, short = 'p', value_name = "POLICY")]
    policy: Option<Choice>,
    #[command(flatten)]
    place: place::Args,
}

pub(super) fn run(args: Args, printer: &mut Printer) -> Result<Ending, Error> {
    let cwd = args.place.cwd.clone();
    let library = args.place.resolve()?.library;
    let tool = library.tool(&args.name)?;
    if let Some(definition) = tool.definition()? {
        show(tool, definition, printer)?;
    } else {
        let looker = Looker::new(cwd.as_deref(), &args.policy.unwrap_or_default())?;
        if let Some(definition) = looker.look(tool)? {
            show(tool, &definition, printer)?;
        }
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
