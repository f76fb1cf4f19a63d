//! `runner tool search`: tools by words, the best first.

use serde_json::json;

use super::list::{row, table};
use super::place;
use crate::call::Context;
use crate::call::tool::{Entry, Memory, entries};
use crate::cli::Error;
use crate::cli::printer::{Format, Printer};
use crate::config::Flag;
use crate::exit::Ending;
use crate::tool::{Counts, Question, glimpse};

/// As typed.
#[derive(Debug, clap::Args)]
#[command(
    after_help = concat!(
        "A tool is found if every word is in its name, a tag, its category, a capability or ",
        "its description.\n\n",
        "Examples:\n",
        "  runner tool search tests\n",
        "  runner tool search http status\n",
        "  runner tool search api --json | jq -r '.tools[0].name'",
    )
)]
pub struct Args {
    /// What it should be about
    #[arg(value_name = "TEXT", required = true)]
    text: Vec<String>,
    #[command(flatten)]
    place: place::Args,
}

pub(super) fn run(args: Args, context: &Context, printer: &mut Printer) -> Result<Ending, Error> {
    let place = args.place.resolve(context)?;
    let memory = Memory::open(&place.places);
    let entries = entries(&place.library, &context.environment, |tool| memory.remembered(tool));
    let question = Question::new(&args.text.join(" "));
    let score = |entry: &Entry<'_>| {
        let tool = entry.tool;
        question.score(
            &tool.name,
            entry.definition(),
            glimpse(&tool.text, "description").as_deref(),
        )
    };
    let mut found: Vec<_> = entries.iter().map(|entry| (score(entry), entry)).collect();
    found.retain(|(score, _)| *score > 0);
    found.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.tool.name.cmp(&b.1.tool.name)));
    let counts = Counts::remembered(place.places.state.as_deref());
    let rows: Vec<_> = found.iter().map(|(_, entry)| row(entry, &counts)).collect();
    match printer.format() {
        Format::Json => {
            let scores: Vec<u32> = found.iter().map(|(score, _)| *score).collect();
            printer.json(&json!({ "tools": rows, "scores": scores }))?;
        }
        Format::Text if rows.is_empty() => {
            printer.hint("no tool is about this; runner tool list shows all");
        }
        Format::Text => table(&rows, place.config.is_on(Flag::ShowTokenCosts), printer)?,
    }
    Ok(Ending::ok())
}
