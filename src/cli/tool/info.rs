//! `runner tool info`: one tool, whole.

use super::asking::Under;
use super::place;
use super::view::View;
use crate::call::CallError;
use crate::call::Context;
use crate::call::tool::{Looker, lacks};
use crate::cli::Error;
use crate::cli::event_loop::cancellable;
use crate::cli::printer::{Format, Printer};
use crate::environment::Environment;
use crate::exit::Ending;
use crate::ids::ToolName;
use crate::queue::{Gate, Standing};
use crate::store::Store;
use crate::tool::{Counts, Definition, Tokens, Tool};

/// As typed.
#[derive(Debug, clap::Args)]
#[command(
    after_help = concat!(
        "A module is asked for its description when it is loaded: once for each content, in ",
        "a sandbox, with no permissions.\n\n",
        "Examples:\n",
        "  runner tool info run_tests\n",
        "  runner tool info run_tests --json | jq .schema",
    )
)]
pub struct Args {
    /// The tool, by name
    #[arg(value_name = "NAME")]
    name: ToolName,
    #[command(flatten)]
    under: Under,
    #[command(flatten)]
    place: place::Args,
}

pub(super) fn run(args: Args, context: &Context, printer: &mut Printer) -> Result<Ending, Error> {
    let cwd = args.place.cwd.clone();
    let place = args.place.resolve(context)?;
    let tool = place.library.tool(&args.name)?;
    let counts = Counts::remembered(place.places.state.as_deref());
    let circuit = circuit(&place, &args.name)?;
    if let Some(definition) = tool.definition()? {
        show(tool, definition, &counts, circuit, &context.environment, printer)?;
    } else {
        let looker = Looker::new(cwd.as_deref(), &args.under.policy(), context)?;
        if let Some(definition) = cancellable(async |cancel| Ok(looker.look(tool, cancel).await?))?
        {
            show(tool, &definition, &counts, circuit, &context.environment, printer)?;
        }
    }
    Ok(Ending::ok())
}

/// Whether it is called, or failed too often for that. Who was never called has no records.
fn circuit(place: &place::ToolScope, name: &ToolName) -> Result<Option<Standing>, Error> {
    let state = place.places.state.as_deref();
    let Some(store) = Store::existing(state).map_err(CallError::from)? else {
        return Ok(None);
    };
    let limits = place.config.limits(name);
    Ok(Some(Gate::new(&store, name, limits).standing(crate::sys::now()).map_err(CallError::from)?))
}

fn show(
    tool: &Tool,
    definition: &Definition,
    counts: &Counts,
    circuit: Option<Standing>,
    environment: &Environment,
    printer: &mut Printer,
) -> Result<(), Error> {
    let tokens = counts.known(definition);
    let lacks = lacks(definition, environment);
    match printer.format() {
        Format::Json => {
            let mut record = definition.record();
            if let Some(record) = record.as_object_mut() {
                record.insert("source".to_owned(), serde_json::json!(tool.origin()));
                record.insert("layer".to_owned(), serde_json::json!(tool.layer));
                record.insert("switch".to_owned(), serde_json::json!(tool.switch));
                record.insert("lacks".to_owned(), serde_json::json!(lacks));
                record.insert("tokenCost".to_owned(), tokens.figure().into());
                let estimated = matches!(tokens, Tokens::Estimated(_));
                record.insert("tokenCostEstimated".to_owned(), estimated.into());
                record.insert("form".to_owned(), serde_json::json!(tool.form));
                record.insert("file".to_owned(), tool.file.clone().into());
                record.insert("digest".to_owned(), tool.digest.to_hex().to_string().into());
                record.insert("circuit".to_owned(), serde_json::json!(circuit));
                record.insert("replacesShipped".to_owned(), tool.replaces_shipped.into());
            }
            printer.json(&record)?;
        }
        Format::Text => printer.data(View { tool, definition, tokens, lacks, circuit })?,
    }
    Ok(())
}
