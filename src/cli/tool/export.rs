//! `runner tool export`: the tools that can be used, in the words of a model's interface.

use super::asking::{Asking, Under};
use super::place;
use crate::call::Context;
use crate::call::tool::{State, entries};
use crate::cli::Error;
use crate::cli::printer::{Format, OutputError, Printer};
use crate::exit::Ending;
use crate::ids::ToolName;
use crate::tool::{Counts, ExportFormat, Switch, Tokens, export};

/// As typed.
#[derive(Debug, clap::Args)]
#[command(
    after_help = concat!(
        "Without names, every tool that is ready is exported.\n\n",
        "Examples:\n",
        "  runner tool export --format anthropic > tools.json\n",
        "  runner tool export run_tests todo_finder --format openai",
    )
)]
pub struct Args {
    /// Tools by name
    #[arg(value_name = "NAME")]
    names: Vec<ToolName>,
    /// For whom
    #[arg(long, short = 'f', value_name = "FORMAT", value_enum, default_value = "json")]
    format: ExportFormat,
    #[command(flatten)]
    under: Under,
    #[command(flatten)]
    place: place::Args,
}

pub(super) fn run(args: Args, context: &Context, printer: &mut Printer) -> Result<Ending, Error> {
    let cwd = args.place.cwd.clone();
    let place = args.place.resolve(context)?;
    for name in &args.names {
        place.library.tool(name)?;
    }
    let mut asking = Asking::new(cwd, args.under.policy());
    let named = |name: &ToolName| args.names.contains(name);
    let mut said = asking.ask_all(&place.library, context, |tool| named(&tool.name))?;
    let entries = entries(&place.library, &context.environment, |tool| said.take(tool));
    let wanted = entries.iter().filter(|entry| match args.names.is_empty() {
        true => entry.state == State::Ready,
        false => named(&entry.tool.name),
    });
    let (wanted, tools): (Vec<_>, Vec<_>) =
        wanted.filter_map(|entry| Some((entry, entry.definition()?))).unzip();
    let mut value = export(&tools, args.format);
    if args.format == ExportFormat::Json {
        // What a tool says of itself is not all that is known here.
        let counts = Counts::remembered(place.places.state.as_deref());
        for (at, (entry, definition)) in wanted.iter().zip(&tools).enumerate() {
            let tokens = counts.known(definition);
            let record = &mut value["tools"][at];
            record["enabled"] = (definition.enabled && entry.tool.switch == Switch::On).into();
            record["tokenCost"] = tokens.figure().into();
            record["tokenCostEstimated"] = matches!(tokens, Tokens::Estimated(_)).into();
        }
    }
    match printer.format() {
        Format::Json => printer.json(&value)?,
        Format::Text => {
            let text = serde_json::to_string_pretty(&value).map_err(OutputError::from)?;
            printer.data(format_args!("{}\n", crate::text::harmless_json(text)))?;
        }
    }
    asking.hints(printer);
    Ok(Ending::ok())
}
