//! `runner policy list`: every policy that could be chosen here.

use std::collections::BTreeMap;

use runner_policy::finding::Finding;
use serde::Serialize;

use super::place;
use crate::call::Context;
use crate::cli::Error;
use crate::cli::printer::{Format, Printer};
use crate::cli::table::Table;
use crate::exit::Ending;
use crate::policy_files::{Layer, Library, Places, PolicyError, Text, check_trust, load_all};

/// As typed.
#[derive(Debug, clap::Args)]
#[command(
    after_help = concat!(
        "Examples:\n",
        "  runner policy list\n",
        "  runner policy list --json | jq -r '.policies[].name'",
    )
)]
pub struct Args {}

/// One policy of the list.
#[derive(Debug, Serialize)]
struct Row {
    name: String,
    layer: Layer,
    state: State,
    file: String,
    owner: Option<String>,
    description: Option<String>,
}

/// Whether it can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Ready,
    Untrusted,
    Broken,
}

pub(super) fn run(_: &Args, context: &Context, printer: &mut Printer) -> Result<Ending, Error> {
    let place = place::Args { policy: None, cwd: None }.resolve(context)?;
    let mut library = load_all(&place.places);
    // What is broken is shown as broken; it must not hide the rest of the list.
    let findings = std::mem::take(&mut library.findings);
    let mut broken: BTreeMap<String, usize> = BTreeMap::new();
    for Finding { file, .. } in &findings {
        *broken.entry(file.clone()).or_default() += 1;
    }
    let mut rows: Vec<Row> = library
        .texts
        .iter()
        .map(|text| row(text, &library, broken.contains_key(&text.file), &place.places))
        .collect();
    rows.sort_by(|a, b| (a.layer, &a.name).cmp(&(b.layer, &b.name)));
    match printer.format() {
        Format::Json => {
            printer.json(&serde_json::json!({ "policies": rows, "findings": findings }))?
        }
        Format::Text => {
            let mut table = Table::new(["policy", "layer", "state", "what it is for"]);
            for row in rows {
                let state = match row.state {
                    State::Ready => "ready",
                    State::Untrusted => "untrusted",
                    State::Broken => "broken",
                };
                let about = row.description.unwrap_or_default();
                table.row([row.name, row.layer.word().to_owned(), state.to_owned(), about]);
            }
            printer.data(&table)?;
            for (file, count) in broken {
                printer.hint(&format!("{file}: {count} finding(s); see runner policy check"));
            }
        }
    }
    Ok(Ending::ok())
}

fn row(text: &Text, library: &Library, broken: bool, places: &Places) -> Row {
    let policy = library.set.get(&text.name);
    let state = if broken {
        State::Broken
    } else {
        match library.policy(&text.name) {
            Ok(loaded) if loaded.layer != Layer::Project => State::Ready,
            Ok(loaded) => match check_trust(&loaded, places) {
                Ok(()) => State::Ready,
                Err(PolicyError::Untrusted { .. }) => State::Untrusted,
                Err(_) => State::Broken,
            },
            Err(_) => State::Broken,
        }
    };
    Row {
        name: text.name.clone(),
        layer: text.layer,
        state,
        file: text.file.clone(),
        owner: policy.and_then(|policy| policy.owner.clone()),
        description: policy.and_then(|policy| policy.description.clone()),
    }
}
