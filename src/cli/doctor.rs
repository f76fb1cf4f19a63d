//! `runner doctor`: proves by trying that every protection holds on this machine.

use super::event_loop::cancellable;
use super::printer::{Format, Printer};
use super::style;
use super::table::{Cell, Table};
use super::visible::visible;
use crate::call::Context;
use crate::cli::Error;
use crate::doctor::{self, Examined, Outcome, Report, Row};
use crate::engine::EngineName;
use crate::exit::Ending;
use crate::text::counted;

/// As typed.
#[derive(Debug, clap::Args)]
#[command(
    after_help = concat!(
        "On each engine that can be used, a program tries from inside a sandbox what no ",
        "sandbox may allow, beside a control that must work: network, mounts, capabilities, ",
        "system calls, processes, memory, disk, output, links, signals, covers, staged ",
        "writes, processes left behind. It takes about ten seconds an engine. It changes ",
        "nothing but what `runner gc` removes. Its result is recorded in the audit ledger.\n\n",
        "Results:\n",
        "  holds      the protection works\n",
        "  partly     it works with an exception, which is shown\n",
        "  absent     it is not promised on this engine\n",
        "  not tried  it could not be tried here\n",
        "  note       for your information\n",
        "  unproved   the trial itself failed\n",
        "  FAILS      the protection does not work\n\n",
        "Examples:\n",
        "  runner doctor\n",
        "  runner doctor --engine embedded --json | jq '.engines[].rows[] | select(.result ",
        "!= \"holds\")'\n\n",
        "Exit codes: 0 every promised protection holds, 125 one fails or is unproved, or no ",
        "engine can be used.",
    )
)]
pub struct Args {
    /// Try this engine alone [default: every one]
    #[arg(long, value_name = "ENGINE", value_parser = one)]
    engine: Option<EngineName>,
    /// Be the process that the doctor kills
    #[arg(long, value_name = "WORD", hide = true, requires = "engine")]
    stand_in: Option<String>,
}

/// Reads the name of one engine.
fn one(word: &str) -> Result<EngineName, String> {
    EngineName::named(word).ok_or_else(|| {
        let names: Vec<_> = EngineName::ALL.iter().map(|name| name.as_str()).collect();
        format!("use {}", names.join(" or "))
    })
}

/// Runs it.
pub(super) fn run(args: &Args, context: &Context, printer: &mut Printer) -> Result<Ending, Error> {
    if let (Some(word), Some(engine)) = (&args.stand_in, args.engine) {
        let result =
            cancellable(async |cancel| Ok(doctor::stand_in(engine, word, context, cancel).await?))?;
        return Ok(result.ending);
    }
    let engines = args.engine.map_or_else(|| EngineName::ALL.to_vec(), |engine| vec![engine]);
    let quiet = printer.format() == Format::Json;
    let (report, ending) = {
        let mut tell = |step: &str| {
            if !quiet {
                printer.talk(format_args!("trying: {step}"));
            }
        };
        cancellable(async |cancel| {
            Ok(doctor::recorded(&engines, context, cancel, &mut tell).await?)
        })?
    };
    match printer.format() {
        Format::Json => printer.json(&report)?,
        Format::Text => show(&report, printer)?,
    }
    Ok(ending)
}

/// The report for people.
fn show(report: &Report, printer: &mut Printer) -> Result<(), Error> {
    let strong = style::STRONG;
    for examined in &report.engines {
        let version = examined.version.as_deref().unwrap_or_default();
        let parts = examined.parts.iter().map(|part| format!("{} {}", part.name, part.version));
        let parts: Vec<String> = parts.collect();
        let about = [version.to_owned(), parts.join(", ")];
        let about: Vec<String> = about.into_iter().filter(|it| !it.is_empty()).collect();
        let about = visible(&about.join("; ")).into_owned();
        printer.data(format_args!("{strong}engine {}{strong:#}  {about}\n", examined.engine))?;
        match &examined.unusable {
            Some(why) => {
                printer.data(format_args!(
                    "  cannot be used: {}  [{}]\n",
                    visible(&why.message),
                    why.code
                ))?;
                if let Some(change) = &why.change {
                    let note = style::NOTE;
                    printer
                        .data(format_args!("  {note}change{note:#}  {}\n", lines(change, 10)))?;
                }
            }
            None => table(&examined.rows, printer)?,
        }
        printer.data("\n")?;
    }
    printer.data(format_args!(
        "{strong}this machine{strong:#}  Linux {}, runner {}\n",
        visible(&report.kernel),
        report.runner
    ))?;
    table(&report.machine, printer)?;
    printer.data("\n")?;
    let usable = report.engines.iter().filter(|it| it.unusable.is_none());
    let names: Vec<&str> = usable.clone().map(|it| it.engine.as_str()).collect();
    let held: usize = usable.map(holding).sum();
    let (bad, good) = (style::BAD, style::GOOD);
    match (report.passed, names.is_empty()) {
        (true, _) => printer.data(format_args!(
            "{good}all that is promised holds{good:#}: {} on {}\n",
            counted(held, "protection"),
            names.join(" and ")
        ))?,
        (false, true) => printer.data(format_args!("{bad}no engine can be used{bad:#}\n"))?,
        (false, false) => printer.data(format_args!(
            "{bad}{} not as it should be{bad:#}\n",
            counted(report.wrong(), "row")
        ))?,
    }
    Ok(())
}

fn holding(examined: &Examined) -> usize {
    let holds = |row: &&Row| matches!(row.result, Outcome::Holds | Outcome::Partly);
    examined.rows.iter().filter(holds).count()
}

fn table(rows: &[Row], printer: &mut Printer) -> Result<(), Error> {
    let mut table = Table::new(["PROTECTION", "RESULT", "TRIED", "ENFORCED BY"]).sparing(&[2]);
    for row in rows {
        let style = match row.result {
            Outcome::Holds => style::GOOD,
            Outcome::Partly | Outcome::Note | Outcome::Unproved => style::WARN,
            Outcome::Absent | Outcome::NotTried => style::FAINT,
            Outcome::Fails => style::BAD,
        };
        table.styled([
            Cell::plain(&row.name),
            Cell::new(row.result.word(), style),
            Cell::plain(tried(&row.tried)),
            Cell::plain(&row.mechanism),
        ]);
    }
    printer.data(table.fitting(printer.width()))?;
    for row in rows {
        if let Some(found) = &row.found {
            printer.data(format_args!("  {}: {}\n", row.name, visible(found)))?;
        }
        if let Some(change) = &row.change {
            let note = style::NOTE;
            printer.data(format_args!("    {note}change{note:#}  {}\n", lines(change, 12)))?;
        }
    }
    Ok(())
}

/// What was tried, in few words.
fn tried(all: &[String]) -> String {
    match all {
        [] => String::new(),
        [one] => one.clone(),
        [first, rest @ ..] => format!("{first}, {} more", rest.len()),
    }
}

/// A text of several lines, each after the first indented this far.
fn lines(text: &str, indent: usize) -> String {
    let lines: Vec<_> = text.lines().map(visible).collect();
    lines.join(&format!("\n{:indent$}", ""))
}
