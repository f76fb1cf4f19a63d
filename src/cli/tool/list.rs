//! `runner tool list`: every tool that was found, usable or not.

use runner_policy::finding::Finding;
use serde::Serialize;

use super::place;
use crate::cli::findings::Shown;
use crate::cli::printer::{Format, Printer};
use crate::cli::table::Table;
use crate::error::Error;
use crate::exit::Ending;
use crate::policies::Layer;
use crate::text::counted;
use crate::tool::{Category, Definition, Form, Library, Risk, Tier, Tool, glimpse};

/// As typed.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Tools are found in .runner/tools of the workspace, in the user's configuration folder\n(runner/tools), in the folders of --tools, and among those that come with runner.\n\nExamples:\n  runner tool list\n  runner tool list --tools ./scripts --json"
)]
pub struct Args {
    #[command(flatten)]
    place: place::Args,
}

/// One tool of the list.
#[derive(Debug, Serialize)]
struct Row<'l> {
    name: String,
    source: Layer,
    form: Option<Form>,
    state: State,
    file: &'l str,
    /// Of a module, what its text seems to say; it is asked by `tool info`.
    description: Option<String>,
    version: Option<&'l str>,
    category: Option<Category>,
    #[serde(rename = "securityTier")]
    tier: Option<Tier>,
    #[serde(rename = "riskLevel")]
    risk: Option<Risk>,
    #[serde(rename = "tokenCost")]
    tokens: Option<u32>,
    /// Whether one that comes with runner has the same name and gives way.
    #[serde(rename = "replacesShipped")]
    replaces_shipped: bool,
    findings: &'l [Finding],
}

/// Whether it can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    Ready,
    Off,
    NameTaken,
    Broken,
}

pub(super) fn run(args: Args, printer: &mut Printer) -> Result<Ending, Error> {
    let library = args.place.resolve()?.library;
    let rows = rows(&library);
    let ready = |row: &&Row<'_>| row.state == State::Ready;
    let tokens: u64 = rows.iter().filter(ready).filter_map(|row| row.tokens).map(u64::from).sum();
    match printer.format() {
        Format::Json => printer.json(&serde_json::json!({
            "tools": rows, "tokenCost": tokens, "findings": library.findings,
        }))?,
        Format::Text => text(&rows, &library, printer)?,
    }
    Ok(Ending::ok())
}

fn text(rows: &[Row<'_>], library: &Library, printer: &mut Printer) -> Result<(), Error> {
    let mut table = Table::new(["tool", "source", "state", "tier", "tokens", "what it does"]);
    for row in rows {
        let state = match row.state {
            State::Ready => "ready",
            State::Off => "off",
            State::NameTaken => "name taken",
            State::Broken => "broken",
        };
        let about = match (row.form, &row.description) {
            (_, Some(text)) => in_short(text),
            (Some(Form::Module), None) => "(a module; runner tool info shows it)".to_owned(),
            (_, None) => String::new(),
        };
        table.row([
            row.name.clone(),
            row.source.word().to_owned(),
            state.to_owned(),
            row.tier.map_or("", Tier::word).to_owned(),
            row.tokens.map_or_else(String::new, |figure| format!("~{figure}")),
            about,
        ]);
    }
    printer.data(&table)?;
    for finding in &library.findings {
        printer.talk(Shown(finding));
    }
    for row in rows {
        match row.state {
            State::NameTaken => {
                printer.hint(&format!("{}: another tool has this name", row.file));
            }
            State::Broken => {
                let count = counted(row.findings.len(), "finding");
                printer.hint(&format!("{}: {count}; see runner tool check", row.file));
            }
            State::Ready | State::Off if row.replaces_shipped => {
                printer.hint(&format!(
                    "{} is used instead of the one that comes with runner",
                    row.file
                ));
            }
            State::Ready | State::Off => {}
        }
    }
    Ok(())
}

/// Characters of a description that a list shows.
const SHOWN: usize = 90;

/// The first sentence, or its beginning.
fn in_short(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let sentence = line.split_once(". ").map_or(line, |(first, _)| first);
    match sentence.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &sentence[..end]),
        None => sentence.to_owned(),
    }
}

fn rows(library: &Library) -> Vec<Row<'_>> {
    let mut rows: Vec<Row<'_>> = library.tools.iter().map(|tool| row(tool, library)).collect();
    rows.extend(library.broken.iter().map(|broken| Row {
        name: broken.name.as_ref().map_or_else(|| "?".to_owned(), ToString::to_string),
        source: broken.layer,
        form: None,
        state: State::Broken,
        file: &broken.file,
        description: None,
        version: None,
        category: None,
        tier: None,
        risk: None,
        tokens: None,
        replaces_shipped: false,
        findings: &broken.findings,
    }));
    rows
}

fn row<'l>(tool: &'l Tool, library: &Library) -> Row<'l> {
    let definition: Option<&Definition> = tool.definition().ok().flatten();
    let state = if library.is_twice(&tool.name) {
        State::NameTaken
    } else if !tool.findings().is_empty() {
        State::Broken
    } else if definition.is_some_and(|definition| !definition.enabled) {
        State::Off
    } else {
        State::Ready
    };
    Row {
        name: tool.name.to_string(),
        source: tool.layer,
        form: Some(tool.form),
        state,
        file: &tool.file,
        description: definition.map(|it| it.description.clone()).or_else(|| glimpse(&tool.text)),
        version: definition.and_then(|it| it.version.as_deref()),
        category: definition.map(|it| it.category),
        tier: definition.map(|it| it.tier),
        risk: definition.map(|it| it.risk),
        tokens: definition.map(|it| it.tokens.figure()),
        replaces_shipped: tool.replaces_shipped,
        findings: tool.findings(),
    }
}
