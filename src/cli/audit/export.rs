//! `runner audit export`: records for other systems, a line of JSON each.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::ocsf;
use super::which::Which;
use crate::audit::{Kind, Ledger};
use crate::call::CallError;
use crate::cli::Error;
use crate::cli::printer::Printer;
use crate::exit::Ending;

/// Records that are read at once.
const PAGE: usize = 1_000;

/// As typed.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// jsonl: records as they are, with links and signatures; ocsf: events of the Open Cybersecurity Schema Framework 1.6.0
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    format: Form,
    #[command(flatten)]
    which: Which,
}

/// The forms.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
enum Form {
    /// Records as they are
    #[default]
    Jsonl,
    /// OCSF 1.6.0
    Ocsf,
}

pub(super) fn run(args: &Args, ledger: &Ledger, printer: &mut Printer) -> Result<Ending, Error> {
    let filter = args.which.filter()?;
    let chosen: Option<HashSet<String>> = if filter.is_everything() {
        None
    } else {
        let calls = ledger.list(&filter).map_err(CallError::from)?;
        Some(calls.into_iter().map(|call| call.call).collect())
    };
    // What a call began with says who and what all its other records are about.
    let mut begun: HashMap<String, Value> = HashMap::new();
    let mut seen = 0;
    loop {
        let rows = ledger.sealed_after(seen, PAGE).map_err(CallError::from)?;
        let Some(last) = rows.last() else { return Ok(Ending::ok()) };
        seen = last.row.seq;
        for sealed in rows {
            let row = &sealed.row;
            if chosen.as_ref().is_some_and(|chosen| !chosen.contains(&row.call)) {
                continue;
            }
            match args.format {
                Form::Jsonl => printer.json(&sealed)?,
                Form::Ocsf => {
                    if matches!(row.kind, Kind::Start | Kind::Refused) {
                        begun.insert(row.call.clone(), row.body.clone());
                    }
                    let first = begun.get(&row.call).unwrap_or(&Value::Null);
                    printer.json(&ocsf::event(row, first))?;
                    if matches!(row.kind, Kind::End | Kind::Aborted | Kind::Refused) {
                        begun.remove(&row.call);
                    }
                }
            }
        }
        if printer.is_closed() {
            return Ok(Ending::ok());
        }
    }
}
