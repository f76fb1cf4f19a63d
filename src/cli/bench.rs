//! `runner bench`: what a call costs here, beside others.

use std::fmt;

use super::event_loop::in_event_loop;
use super::printer::{Format, Printer};
use super::style;
use super::visible::visible;
use crate::bench::{self, Extent, Machine, Report, Row, Unit};
use crate::call::Context;
use crate::cli::Error;
use crate::engine;
use crate::exit::{Ending, Kind};

/// As typed.
#[derive(Debug, clap::Args)]
#[command(
    after_help = concat!(
        "Without --engine, calls are measured on every engine that can be used, in turn with ",
        "those of `bwrap`, `docker run`, `docker exec` and bare `node` that are installed. ",
        "Nothing needs root or a daemon; the report says what was left out. If a measurement ",
        "fails it is named, and the others are printed.\n\n",
        "The measurements use a state, a configuration and a pool of their own, which are ",
        "removed afterwards. Run it on an idle machine. Ratios say more than times.\n\n",
        "Examples:\n",
        "  runner bench --quick\n",
        "  runner bench --engine embedded --json | jq '.rows[] | {name, median, unit, ",
        "ratios}'\n\n",
        "Exit codes: 0 everything was measured, 125 a measurement failed, or no engine can ",
        "be used.",
    )
)]
pub struct Args {
    /// Fewer rounds and no large workspaces: about three minutes instead of fifteen
    #[arg(long)]
    quick: bool,
    /// Measure calls on this engine alone; `auto` is the one that calls would use [default: every one]
    #[arg(long, value_name = "ENGINE", value_parser = super::engine::choice())]
    engine: Option<engine::Choice>,
}

/// Runs it.
pub(super) fn run(args: &Args, context: &Context, printer: &mut Printer) -> Result<Ending, Error> {
    let extent = if args.quick { Extent::Quick } else { Extent::Full };
    let variable = |name: &str| context.environment.get(name);
    let engines = in_event_loop(bench::find_engines(args.engine.as_ref(), &variable))??;
    let mut tell = |step: &str| printer.talk(format_args!("measuring: {step}"));
    let report = bench::run(extent, engines, context, &mut tell)?;
    match printer.format() {
        Format::Json => printer.json(&report)?,
        Format::Text => printer.data(View(&report))?,
    }
    let broken = report.failed.first();
    Ok(broken.map_or(Ending::ok(), |failed| Ending::of_kind(Kind::Broken, failed.code)))
}

/// The report for people.
struct View<'a>(&'a Report);

/// Columns of the longest bar.
const BAR: usize = 30;

impl fmt::Display for View<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { machine, rows, left_out, failed, notes } = self.0;
        let Machine { processors, kernel, engines, runner } = machine;
        writeln!(f, "{processors} processors, Linux {}, runner {runner}", visible(kernel))?;
        for engine in engines {
            writeln!(f, "engine {}: {}", engine.name, visible(&engine.version))?;
        }
        writeln!(f)?;
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
            writeln!(f, "left out: {}", visible(why))?;
        }
        let bad = style::BAD;
        for broken in failed {
            let (what, message) = (&broken.what, visible(&broken.message));
            writeln!(f, "{bad}failed{bad:#}: {what}: {message}  [{}]", broken.code)?;
            if let Some(hint) = &broken.hint {
                writeln!(f, "  {}", visible(hint))?;
            }
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
