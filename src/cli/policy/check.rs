//! `runner policy check`: loads policies and runs their own examples and tests.

use std::path::PathBuf;

use runner_policy::decide::NO_NETWORK;
use runner_policy::finding::Finding;
use runner_policy::model::Policy;
use serde::Serialize;

use super::place;
use crate::call::Context;
use crate::cli::Error;
use crate::cli::findings::Shown;
use crate::cli::printer::{Format, Printer};
use crate::cli::table::Table;
use crate::cli::visible::visible;
use crate::codes::Code;
use crate::exit::{Ending, Kind};
use crate::policy_files::{Layer, Library, Text, load_all, load_files};

/// As typed.
#[derive(Debug, clap::Args)]
#[command(
    after_help = concat!(
        "Without a path, every policy that can be chosen here is checked.\n\n",
        "Examples:\n",
        "  runner policy check\n",
        "  runner policy check .runner/policies/project.yml\n",
        "  runner policy check policies/\n\n",
        "Exit codes: 0 no findings, 125 any finding.",
    )
)]
pub struct Args {
    /// Policy files, or folders of them
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
}

/// What became of one policy.
#[derive(Debug, Serialize)]
struct Row {
    policy: String,
    layer: Layer,
    file: String,
    /// How many rules it has of its own.
    rules: usize,
    /// How many of its examples and tests ran.
    ran: usize,
    /// How many findings it has.
    findings: usize,
    /// What its author should know.
    notes: Vec<String>,
}

pub(super) fn run(args: &Args, context: &Context, printer: &mut Printer) -> Result<Ending, Error> {
    let place = place::Args { policy: None, cwd: None }.resolve(context)?;
    let library = if args.paths.is_empty() {
        load_all(&place.places)
    } else {
        load_files(&args.paths, &place.places)
    };
    let (rows, findings) = check(&library, &args.paths);
    match printer.format() {
        Format::Json => {
            let passed = findings.is_empty();
            printer.json(
                &serde_json::json!({ "passed": passed, "policies": rows, "findings": findings }),
            )?;
        }
        Format::Text => {
            for finding in &findings {
                printer.talk(Shown(finding));
            }
            for note in rows.iter().flat_map(|row| &row.notes) {
                printer.talk(format_args!("note: {}", visible(note)));
            }
            let mut table =
                Table::new(["policy", "layer", "rules", "examples and tests", "result"]);
            for row in rows {
                let result = if row.findings == 0 {
                    "ok".to_owned()
                } else {
                    format!("{} finding(s)", row.findings)
                };
                table.row([
                    row.policy,
                    row.layer.word().to_owned(),
                    row.rules.to_string(),
                    row.ran.to_string(),
                    result,
                ]);
            }
            printer.data(&table)?;
        }
    }
    Ok(if findings.is_empty() {
        Ending::ok()
    } else {
        Ending::of_kind(Kind::Broken, Code::PolicyRefused)
    })
}

/// Checks each policy by itself, so that one broken file does not hide what is wrong in the others.
fn check(library: &Library, paths: &[PathBuf]) -> (Vec<Row>, Vec<Finding>) {
    let mut findings = library.findings.clone();
    let mut rows = Vec::new();
    // With paths, what was named is checked; the rest only takes part.
    let asked = |text: &&Text| paths.is_empty() || text.layer == Layer::Given;
    for text in library.texts.iter().filter(asked) {
        let (ran, found) = library.check(text, jiff::Timestamp::now());
        findings.extend(found);
        rows.push(Row {
            policy: text.name.clone(),
            layer: text.layer,
            file: text.file.clone(),
            rules: library
                .set
                .get(&text.name)
                .map_or(0, |policy| policy.commands.len() + policy.net.len()),
            ran,
            findings: findings.iter().filter(|finding| finding.file == text.file).count(),
            notes: library
                .set
                .get(&text.name)
                .and_then(|policy| about_net(policy))
                .into_iter()
                .collect(),
        });
    }
    (rows, findings)
}

/// A `net` rule looks as if it were for commands too.
fn about_net(policy: &Policy) -> Option<String> {
    let first = policy.net.first()?;
    Some(format!("{}:{}: {NO_NETWORK}", policy.file, first.at.line))
}
