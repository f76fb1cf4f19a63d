//! `runner tool info`: one tool, whole.

use super::place;
use super::view::View;
use crate::call::CallError;
use crate::call::tool::Looker;
use crate::cli::printer::{Format, Printer};
use crate::config;
use crate::error::Error;
use crate::exit::Ending;
use crate::limits::{Gate, Standing};
use crate::policies::{Choice, Places};
use crate::store::Store;
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
    let place::Place { library, places, .. } = args.place.resolve()?;
    let tool = library.tool(&args.name)?;
    let circuit = circuit(&places, &args.name)?;
    if let Some(definition) = tool.definition()? {
        show(tool, definition, circuit, printer)?;
    } else {
        let looker = Looker::new(cwd.as_deref(), &args.policy.unwrap_or_default())?;
        if let Some(definition) = looker.look(tool)? {
            show(tool, &definition, circuit, printer)?;
        }
    }
    Ok(Ending::ok())
}

/// Whether it is called, or failed too often for that. Who was never called has no records.
fn circuit(places: &Places, name: &ToolName) -> Result<Option<Standing>, Error> {
    let Some(state) = places.state.as_deref().filter(|it| it.join("store.db").exists()) else {
        return Ok(None);
    };
    let store = Store::open(Some(state)).map_err(CallError::from)?;
    let limits = config::load(places)?.limits(name);
    Ok(Some(Gate::new(&store, name, limits).standing().map_err(CallError::from)?))
}

fn show(
    tool: &Tool,
    definition: &Definition,
    circuit: Option<Standing>,
    printer: &mut Printer,
) -> Result<(), Error> {
    match printer.format() {
        Format::Json => {
            let mut record = definition.record();
            if let Some(record) = record.as_object_mut() {
                record.insert("source".to_owned(), serde_json::json!(tool.layer));
                record.insert("form".to_owned(), serde_json::json!(tool.form));
                record.insert("file".to_owned(), tool.file.clone().into());
                record.insert("digest".to_owned(), tool.digest.to_hex().to_string().into());
                record.insert("circuit".to_owned(), serde_json::json!(circuit));
                record.insert("replacesShipped".to_owned(), tool.replaces_shipped.into());
            }
            printer.json(&record)?;
        }
        Format::Text => printer.data(View { tool, definition, circuit })?,
    }
    Ok(())
}
