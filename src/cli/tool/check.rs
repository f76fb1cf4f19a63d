//! `runner tool check`: everything that can be known about tools before they run.

use std::path::{Path, PathBuf};

use runner_policy::effective::Effective;
use runner_policy::finding::Finding;
use runner_policy::model::Verdict;
use serde::Serialize;

use super::place::{self, Place};
use crate::cli::findings::Shown;
use crate::cli::printer::{Format, Printer};
use crate::cli::table::Table;
use crate::cli::usage::UsageError;
use crate::error::{Error, Failure as _};
use crate::exit::{Ending, Kind};
use crate::policies::{Choice, Layer, Trust, load};
use crate::tool::{Asked, Library, Tool, ToolError, ToolName, asked};

/// As typed.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Without a name every tool that is found here is checked. What a tool asks for and the policy does\nnot allow is told, and is no error: another policy may.\n\nExamples:\n  runner tool check\n  runner tool check run_tests --policy develop\n  runner tool check ./scripts/probe.tool.ts\n\nExit codes: 0 all good, 125 any finding."
)]
pub struct Args {
    /// Tools by name, or files
    #[arg(value_name = "NAME|FILE")]
    what: Vec<String>,
    /// The policy to compare with: a name, or the path of a .yml file [default: readonly]
    #[arg(long, short = 'p', value_name = "POLICY")]
    policy: Option<Choice>,
    #[command(flatten)]
    place: place::Args,
}

/// What became of one tool.
#[derive(Debug, Default, Serialize)]
struct Row {
    tool: String,
    source: Option<Layer>,
    file: String,
    findings: Vec<Finding>,
    /// What cannot be told by a place in the file.
    errors: Vec<String>,
    /// What it asks for, and what the policy says.
    asks: Vec<Asked>,
}

pub(super) fn run(args: Args, printer: &mut Printer) -> Result<Ending, Error> {
    let place = args.place.resolve()?;
    let choice = args.policy.unwrap_or_default();
    let policy = load(&choice, &place.places, Trust::Required)?.policy;
    let rows = if args.what.is_empty() {
        all(&place, &policy)
    } else {
        let mut rows = Vec::new();
        for word in &args.what {
            rows.push(one(word, &place, &policy)?);
        }
        rows
    };
    let passed = rows.iter().all(|row| row.findings.is_empty() && row.errors.is_empty())
        && (!args.what.is_empty() || place.library.findings.is_empty());
    match printer.format() {
        Format::Json => printer.json(&serde_json::json!({
            "passed": passed, "policy": policy.name(), "tools": rows, "findings": place.library.findings,
        }))?,
        Format::Text => text(&rows, &place.library, policy.name(), printer)?,
    }
    Ok(if passed { Ending::ok() } else { Ending::of_kind(Kind::Broken, "tool_refused") })
}

fn text(rows: &[Row], library: &Library, policy: &str, printer: &mut Printer) -> Result<(), Error> {
    for finding in library.findings.iter().chain(rows.iter().flat_map(|row| &row.findings)) {
        printer.talk(Shown(finding));
    }
    for row in rows {
        for error in &row.errors {
            printer.talk(format_args!("{}: {}", row.tool, crate::cli::visible_block(error)));
        }
    }
    let mut table = Table::new(["tool", "source", "result", "file"]);
    for row in rows {
        let wrong = row.findings.len() + row.errors.len();
        let result = if wrong == 0 { "ok".to_owned() } else { format!("{wrong} finding(s)") };
        let source = row.source.map_or("", Layer::word).to_owned();
        table.row([row.tool.clone(), source, result, row.file.clone()]);
    }
    printer.data(&table)?;
    for row in rows {
        for Asked { kind, entry, decision, .. } in &row.asks {
            if decision.decision != Verdict::Allow {
                let word = match decision.decision {
                    Verdict::Ask => "asks before",
                    Verdict::Allow | Verdict::Deny => "does not allow",
                };
                let code = decision.code.word();
                printer.hint(&format!(
                    "{}: policy {policy} {word} `{kind} {entry}` [{code}]",
                    row.tool
                ));
            }
        }
    }
    Ok(())
}

/// Every tool that was found, and every file that is none.
fn all(place: &Place, policy: &Effective) -> Vec<Row> {
    let mut rows = Vec::new();
    for tool in &place.library.tools {
        let mut row = examine(tool, place, policy);
        if let Err(error @ ToolError::Twice { .. }) = place.library.tool(&tool.name) {
            row.errors.push(error.to_string());
        }
        rows.push(row);
    }
    rows.extend(broken(&place.library));
    rows
}

fn broken(library: &Library) -> impl Iterator<Item = Row> {
    library.broken.iter().map(|broken| Row {
        tool: broken.name.as_ref().map_or_else(|| "?".to_owned(), ToString::to_string),
        source: Some(broken.layer),
        file: broken.file.clone(),
        findings: broken.findings.clone(),
        ..Row::default()
    })
}

/// One tool, by name or by file.
fn one(word: &str, place: &Place, policy: &Effective) -> Result<Row, Error> {
    if !is_path(word) {
        let name: ToolName = word.parse().map_err(|error: crate::tool::NameError| {
            UsageError::Option { option: "NAME".to_owned(), why: error.to_string() }
        })?;
        return match place.library.tool(&name) {
            Ok(tool) => Ok(examine(tool, place, policy)),
            Err(error @ (ToolError::Unknown { .. } | ToolError::Twice { .. })) => Err(error.into()),
            Err(error) => Ok(Row {
                tool: name.to_string(),
                findings: error.findings().to_vec(),
                ..Row::default()
            }),
        };
    }
    let path = PathBuf::from(word);
    let library = Library::of_file(&path);
    let found = library.tools.first().map(|tool| examine(tool, place, policy));
    let none = || Row {
        tool: "?".to_owned(),
        file: word.to_owned(),
        findings: library.findings.clone(),
        ..Row::default()
    };
    Ok(found.or_else(|| broken(&library).next()).unwrap_or_else(none))
}

fn is_path(word: &str) -> bool {
    let tool = [".yml", ".yaml", ".ts", ".js"].iter().any(|ending| word.ends_with(ending));
    tool || word.contains('/') || Path::new(word).is_file()
}

fn examine(tool: &Tool, place: &Place, policy: &Effective) -> Row {
    let mut row = Row {
        tool: tool.name.to_string(),
        source: Some(tool.layer),
        file: tool.file.clone(),
        findings: tool.findings().to_vec(),
        ..Row::default()
    };
    if let Ok(Some(definition)) = tool.definition() {
        let workspace = place.workspace.to_string_lossy();
        let now = jiff::Timestamp::now();
        row.asks = asked(&definition.permissions, policy, &workspace, now);
    }
    row
}
