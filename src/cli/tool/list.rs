//! `runner tool list`: every tool that was found, usable or not.

use runner_policy::finding::Finding;
use serde::Serialize;

use super::place::{self, ToolScope};
use crate::call::Context;
use crate::call::tool::{Entry, Memory, State, entries};
use crate::cli::Error;
use crate::cli::findings::Shown;
use crate::cli::printer::{Format, Printer};
use crate::cli::style;
use crate::cli::table::{Cell, Table};
use crate::config::{Figure, Flag};
use crate::exit::Ending;
use crate::policy_files::Layer;
use crate::text::counted;
use crate::tool::{
    Auth, Broken, Category, Counts, Form, Library, Origin, Risk, Switch, Tier, Tokens, glimpse,
};

/// As typed.
#[derive(Debug, Default, clap::Args)]
#[command(
    after_help = concat!(
        "Sources, in order:\n",
        "  built-in  tools of runner itself; the examples among them are off until `runner ",
        "tool enable`\n",
        "  team      the folder that the managed configuration names\n",
        "  mcp       what the configured servers offered at the last `runner mcp refresh`\n",
        "  custom    .runner/tools of the workspace, runner/tools in your configuration ",
        "folder, --tools\n\n",
        "Examples:\n",
        "  runner tool list\n",
        "  runner tool list --tools ./scripts --json\n",
        "  runner tools list --json | jq -r '.tools[] | select(.state == \"ready\").name'",
    )
)]
pub struct Args {
    #[command(flatten)]
    place: place::Args,
}

/// One tool of the list.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Row<'l> {
    pub name: String,
    pub source: Origin,
    layer: Layer,
    form: Option<Form>,
    pub state: State,
    file: &'l str,
    /// For a module that was not loaded yet: the description that its source text seems to have.
    pub description: Option<String>,
    version: Option<&'l str>,
    category: Option<Category>,
    #[serde(rename = "securityTier")]
    pub tier: Option<Tier>,
    /// For a module that was not loaded yet: the tier that its source text seems to have.
    #[serde(skip)]
    seems: Option<Tier>,
    #[serde(rename = "riskLevel")]
    risk: Option<Risk>,
    pub token_cost: Option<u32>,
    token_cost_estimated: Option<bool>,
    /// What switched it off.
    #[serde(skip_serializing_if = "Option::is_none")]
    switch: Option<&'l Switch>,
    /// The credentials that it lacks.
    #[serde(skip_serializing_if = "Option::is_none")]
    lacks: Option<&'l Auth>,
    /// Whether an example that comes with runner has the same name and gives way.
    replaces_shipped: bool,
    findings: &'l [Finding],
}

pub(super) fn run(args: Args, context: &Context, printer: &mut Printer) -> Result<Ending, Error> {
    let place = args.place.resolve(context)?;
    let memory = Memory::open(&place.places);
    let entries = entries(&place.library, &context.environment, |tool| memory.remembered(tool));
    let counts = Counts::remembered(place.places.state.as_deref());
    let mut rows: Vec<Row<'_>> = entries.iter().map(|entry| row(entry, &counts)).collect();
    rows.extend(place.library.broken.iter().map(broken));
    match printer.format() {
        Format::Json => printer.json(&serde_json::json!({
            "tools": rows, "tokenCost": total(&rows), "findings": place.library.findings,
            "unasked": place.library.unasked.iter().map(|it| &it.finding).collect::<Vec<_>>(),
        }))?,
        Format::Text => text(&rows, &place, printer)?,
    }
    Ok(Ending::ok())
}

/// Tokens of all that can be used.
fn total(rows: &[Row<'_>]) -> u64 {
    let ready = rows.iter().filter(|row| row.state == State::Ready);
    ready.filter_map(|row| row.token_cost).map(u64::from).sum()
}

fn text(rows: &[Row<'_>], place: &ToolScope, printer: &mut Printer) -> Result<(), Error> {
    table(rows, place.config.is_on(Flag::ShowTokenCosts), printer)?;
    if place.config.is_on(Flag::ShowTokenCosts) {
        let (total, window) = (total(rows), place.config.figure(Figure::ContextWindow).value);
        let share = share(total, window);
        let strong = style::STRONG;
        printer.data(format_args!(
            "\nTotal in an agent's context: {strong}~{total} tokens{strong:#}, {share} of {window}\n"
        ))?;
    }
    hints(rows, &place.library, printer);
    Ok(())
}

/// The columns that can be left out.
const SOURCE: usize = 2;
const TOKENS: usize = 5;

/// The tools as a table.
pub(super) fn table(rows: &[Row<'_>], costs: bool, printer: &mut Printer) -> Result<(), Error> {
    let mut table = Table::new(["", "tool", "source", "state", "tier", "tokens", "what it does"])
        .sparing(&[SOURCE, TOKENS]);
    if !costs {
        table.hide(TOKENS);
    }
    for row in rows {
        let (mark, colour) = mark(row.state);
        let about = match (row.form, &row.description) {
            (_, Some(text)) => in_short(text),
            (Some(Form::Module), None) => "(a module; runner tool info shows it)".to_owned(),
            (_, None) => String::new(),
        };
        let tokens = match (row.token_cost, row.token_cost_estimated) {
            (Some(figure), Some(true)) => format!("~{figure}"),
            (Some(figure), _) => figure.to_string(),
            (None, _) => "?".to_owned(),
        };
        let name = if row.state == State::Ready { style::STRONG } else { style::FAINT };
        table.styled([
            Cell::new(mark, colour),
            Cell::new(&row.name, name),
            Cell::plain(row.source.badge()),
            Cell::new(row.state.words(), colour),
            Cell::plain(row.tier.map_or_else(|| seems(row.seems), |tier| tier.word().to_owned())),
            Cell::plain(format!("{tokens:>6}")),
            Cell::plain(about),
        ]);
    }
    let width = printer.width();
    printer.data(table.fitting(width))?;
    Ok(())
}

/// What a module's text seems to say of its tier.
fn seems(tier: Option<Tier>) -> String {
    tier.map_or_else(String::new, |tier| format!("{}?", tier.word()))
}

/// A part of a whole in parts of a hundred.
pub(super) fn share(part: u64, whole: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "shown with two figures")]
    let share = part as f64 * 100.0 / (whole.max(1)) as f64;
    format!("{share:.2}%")
}

fn mark(state: State) -> (&'static str, anstyle::Style) {
    match state {
        State::Ready => ("✓", style::GOOD),
        State::Unavailable => ("!", style::WARN),
        State::Off => ("✗", style::FAINT),
        State::NameTaken | State::Broken => ("✗", style::BAD),
    }
}

/// One line for each kind of thing to know: a list that is shown often must not repeat itself.
fn hints(rows: &[Row<'_>], library: &Library, printer: &mut Printer) {
    for finding in &library.findings {
        printer.talk(Shown(finding));
    }
    match &*library.unasked {
        [] => {}
        [one] => {
            let help = one.finding.help.as_deref().unwrap_or_default();
            printer.hint(&format!("{}; {help}", one.finding.message));
        }
        several => printer.hint(&format!(
            "{} MCP servers were not asked for their tools ({}); runner mcp list shows why",
            several.len(),
            in_a_row(several.iter().map(|it| it.server.to_string()))
        )),
    }
    let of = |wanted: &dyn Fn(&Row<'_>) -> bool| -> Vec<&Row<'_>> {
        rows.iter().filter(|row| wanted(row)).collect()
    };
    match &*of(&|row| row.state == State::NameTaken) {
        [] => {}
        [one] => printer.hint(&format!("{}: another tool has this name", one.file)),
        several => printer.hint(&format!(
            "{} tools have the name of another tool: {}",
            several.len(),
            in_a_row(several.iter().map(|row| row.file.to_owned()))
        )),
    }
    match &*of(&|row| row.state == State::Broken) {
        [] => {}
        [one] => {
            let count = counted(one.findings.len(), "finding");
            printer.hint(&format!("{}: {count}; see runner tool check", one.file));
        }
        several => {
            printer.hint(&format!("{} tools have findings; see runner tool check", several.len()));
        }
    }
    let unavailable = of(&|row| row.state == State::Unavailable);
    match &*unavailable {
        [] => {}
        [one] => {
            if let Some(auth) = one.lacks {
                printer.hint(&format!("{}: {}", one.name, lacking(auth)));
            }
        }
        several => printer.hint(&format!(
            "{} tools lack a credential: {}; runner tool info shows where to get it",
            several.len(),
            in_a_row(several.iter().map(|row| row.name.clone()))
        )),
    }
    let usable = |row: &Row<'_>| matches!(row.state, State::Ready | State::Off);
    match &*of(&|row| row.replaces_shipped && usable(row)) {
        [] => {}
        [one] => printer
            .hint(&format!("{} is used instead of the example that comes with runner", one.file)),
        several => printer.hint(&format!(
            "{} tools are used instead of examples that come with runner: {}",
            several.len(),
            in_a_row(several.iter().map(|row| row.name.clone()))
        )),
    }
    if let [first, ..] = &*of(&|row| matches!(row.switch, Some(Switch::Example))) {
        let count = rows.iter().filter(|row| matches!(row.switch, Some(Switch::Example))).count();
        printer.hint(&format!(
            "{} that come with runner are off; to use one: runner tool enable {}",
            counted(count, "example"),
            first.name
        ));
    }
}

/// Most names that one hint shows.
const NAMES: usize = 4;

/// Names with commas between them; what is too much is counted.
fn in_a_row(names: impl ExactSizeIterator<Item = String>) -> String {
    let more = names.len().saturating_sub(NAMES);
    let shown = names.take(NAMES).collect::<Vec<_>>().join(", ");
    if more == 0 { shown } else { format!("{shown} and {more} more") }
}

/// What is missing, and where to get it.
pub(super) fn lacking(auth: &Auth) -> String {
    let url = auth.setup_url.as_ref().map(|url| format!("; get it at {url}"));
    format!("{} is not set{}", auth.config_key, url.unwrap_or_default())
}

/// Characters of a description that a list shows.
const SHOWN: usize = 72;

/// The first sentence, or its beginning.
fn in_short(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let sentence = line.split_once(". ").map_or(line, |(first, _)| first);
    match sentence.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &sentence[..end]),
        None => sentence.to_owned(),
    }
}

fn broken(broken: &Broken) -> Row<'_> {
    Row {
        name: broken.name.as_ref().map_or_else(|| "?".to_owned(), ToString::to_string),
        source: broken.origin,
        layer: broken.layer,
        form: None,
        state: State::Broken,
        file: &broken.file,
        description: None,
        version: None,
        category: None,
        tier: None,
        seems: None,
        risk: None,
        token_cost: None,
        token_cost_estimated: None,
        switch: None,
        lacks: None,
        replaces_shipped: false,
        findings: &broken.findings,
    }
}

pub(super) fn row<'l>(entry: &'l Entry<'l>, counts: &Counts) -> Row<'l> {
    let (tool, definition) = (entry.tool, entry.definition());
    let tokens = definition.map(|it| counts.known(it));
    Row {
        name: tool.name.to_string(),
        source: tool.origin(),
        layer: tool.layer,
        form: Some(tool.form),
        state: entry.state,
        file: &tool.file,
        description: definition
            .map(|it| it.description.clone())
            .or_else(|| glimpse(&tool.text, "description")),
        version: definition.and_then(|it| it.version.as_deref()),
        category: definition.map(|it| it.category),
        tier: definition.map(|it| it.tier),
        seems: glimpse(&tool.text, "securityTier").and_then(|word| Tier::by_word(&word)),
        risk: definition.map(|it| it.risk),
        token_cost: tokens.map(Tokens::figure),
        token_cost_estimated: tokens.map(|it| matches!(it, Tokens::Estimated(_))),
        switch: Some(&tool.switch).filter(|switch| !matches!(switch, Switch::On)),
        lacks: entry.lacks(),
        replaces_shipped: tool.replaces_shipped,
        findings: tool.findings(),
    }
}
