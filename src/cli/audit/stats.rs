//! `runner audit stats`.

use std::fmt::Write as _;

use super::which::Which;
use crate::audit::{Ledger, Stats};
use crate::call::CallError;
use crate::cli::Error;
use crate::cli::printer::{Format, Printer};
use crate::cli::style;
use crate::cli::visible::visible;
use crate::exit::Ending;

/// As typed.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    which: Which,
}

pub(super) fn run(args: &Args, ledger: &Ledger, printer: &mut Printer) -> Result<Ending, Error> {
    let stats = ledger.stats(&args.which.filter()?).map_err(CallError::from)?;
    match printer.format() {
        Format::Json => printer.json(&stats)?,
        Format::Text => printer.data(shown(&stats))?,
    }
    Ok(Ending::ok())
}

fn shown(stats: &Stats) -> String {
    let strong = style::STRONG;
    let mut text = format!("{strong}calls{strong:#}      {}\n", stats.calls);
    // Writing to a String cannot fail.
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "{strong}{name:<9}{strong:#}  {value}");
    };
    if let Some(rate) = stats.success {
        line("success", format!("{:.1} % of those that ran", rate * 100.0));
    }
    for (status, count) in &stats.statuses {
        line("", format!("{count:>6}  {}", visible(status)));
    }
    if let Some(time) = &stats.duration_ms {
        let (mean, median, p95) = (time.mean, time.median, time.p95);
        line("time", format!("mean {mean:.0} ms, median {median} ms, 95 % within {p95} ms"));
    }
    for (at, it) in stats.tools.iter().enumerate() {
        let mut text = format!("{:>6}  {}", it.calls, visible(&it.tool));
        if let Some(rate) = it.success {
            let _ = write!(text, "  {:.1} % success", rate * 100.0);
        }
        if let Some(time) = &it.duration_ms {
            let _ = write!(text, "  mean {:.0} ms, 95 % within {} ms", time.mean, time.p95);
        }
        line(if at == 0 { "tools" } else { "" }, text);
    }
    for (title, counts) in [
        ("denials", &stats.denials),
        ("no rule", &stats.denials_without_rule),
        ("held", &stats.held),
        ("requests", &stats.requests),
    ] {
        for (at, (name, count)) in counts.iter().enumerate() {
            line(if at == 0 { title } else { "" }, format!("{count:>6}  {}", visible(name)));
        }
    }
    for (at, (day, cost)) in stats.cost_by_day.iter().enumerate() {
        line(if at == 0 { "cost" } else { "" }, format!("{day}  ${cost:.4}"));
    }
    text
}
