//! `runner bench`: what a call costs here, beside others.

use std::fmt;

use super::event_loop::in_event_loop;
use super::printer::{Format, Printer};
use super::style;
use crate::bench::{self, BenchError, Extent, Report, Row, Unit};
use crate::call::Context;
use crate::cli::Error;
use crate::engine::{self, Choice, EngineError};
use crate::exit::Ending;

/// As typed.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Measures with a state, a configuration and a pool of its own, which are gone afterwards. Run it on a machine that does nothing else: ratios say more than times."
)]
pub struct Args {
    /// Fewer rounds and no large workspaces: two or three minutes instead of twelve
    #[arg(long)]
    quick: bool,
}

/// Runs it.
pub(super) fn run(args: &Args, context: &Context, printer: &mut Printer) -> Result<Ending, Error> {
    let extent = if args.quick { Extent::Quick } else { Extent::Full };
    let (name, facts) = in_event_loop(async {
        let engine =
            engine::open(&Choice::default(), &|name| context.environment.get(name)).await?;
        Ok::<_, EngineError>((engine.name(), engine.probe().await?))
    })?
    .map_err(BenchError::from)?;
    let mut tell = |step: &str| printer.talk(format_args!("measuring: {step}"));
    let report = bench::run(extent, name, &facts, context, &mut tell)?;
    match printer.format() {
        Format::Json => printer.json(&report)?,
        Format::Text => printer.data(View(&report))?,
    }
    Ok(Ending::ok())
}

/// The report for people.
struct View<'a>(&'a Report);

/// Columns of the longest bar.
const BAR: usize = 30;

impl fmt::Display for View<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { machine, rows, left_out, notes } = self.0;
        let text = |name: &str| machine[name].as_str().unwrap_or_default().to_owned();
        writeln!(
            f,
            "{} processors, Linux {}, {}, runner {}\n",
            machine["processors"],
            text("kernel"),
            text("engine"),
            text("runner")
        )?;
        let width = rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0);
        for (unit, title) in [
            (Unit::Milliseconds, "time (ms)"),
            (Unit::PerSecond, "calls a second"),
            (Unit::MiB, "memory (MiB)"),
        ] {
            let of_unit: Vec<&Row> = rows.iter().filter(|row| row.unit == unit).collect();
            if of_unit.is_empty() {
                continue;
            }
            let (strong, faint) = (style::STRONG, style::FAINT);
            writeln!(f, "{strong}{title:<width$}    median       p95{strong:#}")?;
            let most = of_unit.iter().map(|row| row.median).fold(0.0, f64::max);
            for row in of_unit {
                let p95 = row.p95.map_or_else(String::new, |p95| format!("{p95:.2}"));
                let bar = bar(row.median, most);
                writeln!(f, "{:<width$}  {:>8.2}  {p95:>8}  {bar}", row.name, row.median)?;
                for (peer, ratio) in &row.ratios {
                    writeln!(f, "{:width$}  {faint}{ratio:>8.2} x {peer}{faint:#}", "")?;
                }
            }
            writeln!(f)?;
        }
        for why in left_out {
            writeln!(f, "left out: {why}")?;
        }
        for note in notes {
            writeln!(f, "note: {note}")?;
        }
        Ok(())
    }
}

/// A bar of eighths of a column.
fn bar(figure: f64, most: f64) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let share = if most > 0.0 { (figure / most).clamp(0.0, 1.0) } else { 0.0 };
    // The figure is within the bar's length: nothing is cut off.
    let eighths = (share * (BAR * 8) as f64).round() as usize;
    let mut bar = "█".repeat(eighths / 8);
    bar.push_str(EIGHTHS[eighths % 8]);
    if bar.is_empty() {
        bar.push_str(EIGHTHS[1]);
    }
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_long_as_its_share() {
        assert_eq!(bar(10.0, 10.0).chars().count(), BAR);
        assert_eq!(bar(5.0, 10.0).chars().count(), BAR / 2);
        assert_eq!(bar(0.0, 10.0), "▏");
        assert_eq!(bar(0.0, 0.0), "▏");
    }
}
