//! `runner audit verify`.

use serde_json::json;

use crate::audit::{Expected, Ledger, Report};
use crate::call::CallError;
use crate::cli::Error;
use crate::cli::printer::{Format, Printer};
use crate::cli::style;
use crate::cli::usage::UsageError;
use crate::cli::visible::visible;
use crate::codes::Code;
use crate::exit::{Ending, Kind};

/// Findings that are shown to people; `--json` has more.
const SHOWN: usize = 10;

/// As typed.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Also compare with this record and link, as an earlier `audit verify` printed them
    #[arg(long, value_name = "SEQ:LINK")]
    expect: Option<String>,
    /// Verify only the records after this one
    #[arg(long, value_name = "SEQ", default_value_t = 0, value_parser = clap::value_parser!(i64).range(0..))]
    after: i64,
}

pub(super) fn run(args: &Args, ledger: &Ledger, printer: &mut Printer) -> Result<Ending, Error> {
    let expected = args.expect.as_deref().map(expected).transpose()?;
    let report = ledger.verify(args.after, expected).map_err(CallError::from)?;
    let ending = match report.findings.is_empty() {
        true => Ending::ok(),
        false => Ending::of_kind(Kind::Tampered, Code::LedgerTampered),
    };
    match printer.format() {
        Format::Json => {
            let mut value = json!(report);
            value["ok"] = report.findings.is_empty().into();
            value["status"] = json!(ending.status);
            value["exit"] = json!(ending.exit);
            printer.json(&value)?;
        }
        Format::Text => text(&report, printer)?,
    }
    Ok(ending)
}

fn text(report: &Report, printer: &mut Printer) -> Result<(), Error> {
    let bad = style::BAD;
    for (at, finding) in report.findings.iter().take(SHOWN).enumerate() {
        let first = if at == 0 { "first bad record: " } else { "" };
        let call = finding.call.as_deref().map(|call| format!(" of call {call}"));
        printer.data(format_args!(
            "{bad}{}{bad:#}  {first}{}{}: {}\n",
            finding.problem.word(),
            finding.seq,
            visible(call.as_deref().unwrap_or_default()),
            visible(&finding.message)
        ))?;
    }
    let more = report.findings.len().saturating_sub(SHOWN) as u64 + report.untold;
    if more > 0 {
        printer.data(format_args!("and {more} more; --json has them\n"))?;
    }
    let Report { records, calls, aborted, lag, last, link, .. } = report;
    printer.data(format_args!("{records} record(s) of {calls} call(s), {aborted} aborted\n"))?;
    if *lag > 0 {
        let note = "which happens if a process dies at that moment";
        printer.data(format_args!("the head lags by {lag} append(s), {note}\n"))?;
    }
    if report.findings.is_empty() {
        let good = style::GOOD;
        printer.data(format_args!("{good}all as recorded{good:#}; head {last}:{link}\n"))?;
    }
    Ok(())
}

/// A record and its link, as typed.
fn expected(text: &str) -> Result<Expected, UsageError> {
    Expected::parse(text).ok_or_else(|| UsageError::Option {
        option: "--expect".to_owned(),
        why: format!("`{text}` is not SEQ:LINK; `runner audit verify` prints one as the head"),
    })
}
