//! `runner tool tokens`: what each tool costs in an agent's context, counted.

use serde::Serialize;
use serde_json::json;

use super::asking::{Asking, Under};
use super::list::share;
use super::place;
use crate::call::Context;
use crate::call::tool::{State, entries};
use crate::cli::Error;
use crate::cli::printer::{Format, Printer};
use crate::cli::style;
use crate::config::Figure;
use crate::exit::Ending;
use crate::tool::{Counts, Origin, Tokens};

/// As typed.
#[derive(Debug, clap::Args)]
#[command(
    after_help = concat!(
        "Tokens are counted with the tokenizer of current models (o200k). A `tokenCost` that ",
        "a tool declares is taken as it is. `context.window` of the configuration is the ",
        "size of the context window.\n\n",
        "Examples:\n",
        "  runner tool tokens\n",
        "  runner tool tokens --all\n",
        "  runner tool tokens --json | jq .total",
    )
)]
pub struct Args {
    /// Also tools that cannot be used now
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    under: Under,
    #[command(flatten)]
    place: place::Args,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    name: String,
    source: Origin,
    state: State,
    tokens: u32,
    /// Whether it was counted or its author says so.
    by: &'static str,
    /// Parts of a hundred of the window.
    share: String,
}

pub(super) fn run(args: Args, context: &Context, printer: &mut Printer) -> Result<Ending, Error> {
    let cwd = args.place.cwd.clone();
    let place = args.place.resolve(context)?;
    let window = place.config.figure(Figure::ContextWindow).value;
    let mut asking = Asking::new(cwd, args.under.policy());
    let shown = |state: State| args.all || matches!(state, State::Ready | State::Unavailable);
    let mut said = asking.ask_all(&place.library, context, |_| args.all)?;
    let entries = entries(&place.library, &context.environment, |tool| said.take(tool));
    let mut counts = Counts::remembered(place.places.state.as_deref());
    let mut rows = Vec::new();
    for entry in entries.iter().filter(|entry| shown(entry.state)) {
        let Some(definition) = entry.definition() else { continue };
        let (tokens, by) = match counts.count(definition) {
            Tokens::Said(figure) => (figure, "tokenCost"),
            Tokens::Counted(figure) | Tokens::Estimated(figure) => (figure, "counted"),
        };
        rows.push(Row {
            name: entry.tool.name.to_string(),
            source: entry.tool.origin(),
            state: entry.state,
            tokens,
            by,
            share: share(tokens.into(), window),
        });
    }
    counts.remember();
    rows.sort_by(|a, b| b.tokens.cmp(&a.tokens).then_with(|| a.name.cmp(&b.name)));
    let total: u64 = rows.iter().map(|row| u64::from(row.tokens)).sum();
    match printer.format() {
        Format::Json => printer.json(&json!({
            "tools": rows, "total": total, "window": window, "share": share(total, window),
            "unknown": asking.failed(),
        }))?,
        Format::Text => {
            printer.data(chart(&rows))?;
            let strong = style::STRONG;
            let share = share(total, window);
            printer.data(format_args!(
                "\nTotal: {strong}{total} tokens{strong:#}, {share} of a window of {window}\n"
            ))?;
            asking.hints(printer);
        }
    }
    Ok(Ending::ok())
}

/// Characters of the longest bar.
const BAR: u64 = 40;

fn chart(rows: &[Row]) -> String {
    let widest = rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0);
    let largest = rows.iter().map(|row| row.tokens).max().unwrap_or(0).max(1);
    let (note, faint) = (style::NOTE, style::FAINT);
    let mut text = String::new();
    for row in rows {
        let filled = (u64::from(row.tokens) * BAR).div_ceil(u64::from(largest)).min(BAR);
        let (full, rest) = (repeated('█', filled), repeated('░', BAR - filled));
        text.push_str(&format!(
            "{:<widest$}  {note}{full}{note:#}{faint}{rest}{faint:#}  {:>6}  {:>6}\n",
            row.name, row.tokens, row.share
        ));
    }
    text
}

fn repeated(c: char, count: u64) -> String {
    std::iter::repeat_n(c, usize::try_from(count).unwrap_or(0)).collect()
}
