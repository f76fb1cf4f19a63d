//! `runner policy catalog`: which programs are known, and how deeply.

use runner_policy::catalog;
use runner_policy::finding::did_you_mean;
use runner_policy::grammar::{Command, Depth, Program};
use serde_json::{Value, json};

use super::grammar::Shown;
use crate::cli::Error;
use crate::cli::printer::{Format, Printer};
use crate::cli::table::Table;
use crate::cli::usage::UsageError;
use crate::exit::Ending;

/// As typed.
#[derive(Debug, clap::Args)]
#[command(
    after_help = concat!(
        "Examples:\n",
        "  runner policy catalog\n",
        "  runner policy catalog sort\n",
        "  runner policy catalog git log\n",
        "  runner policy catalog --stats",
    )
)]
pub struct Args {
    /// A program, and subcommands of it; without it all programs are listed
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Count instead of listing
    #[arg(long, conflicts_with = "names")]
    stats: bool,
}

pub(super) fn run(args: &Args, printer: &mut Printer) -> Result<Ending, Error> {
    match args.names.split_first() {
        Some((name, below)) => show(name, below, printer)?,
        None if args.stats => stats(printer)?,
        None => list(printer)?,
    }
    Ok(Ending::ok())
}

fn list(printer: &mut Printer) -> Result<(), Error> {
    match printer.format() {
        Format::Json => {
            let programs: Vec<_> = catalog::programs().map(summary).collect();
            printer.json(&json!({ "programs": programs }))?;
        }
        Format::Text => {
            let mut table = Table::new(["program", "depth", "about"]);
            for program in catalog::programs() {
                let names = [std::slice::from_ref(&program.name), &program.also].concat();
                table.row([
                    names.join(", "),
                    depth(program.depth).to_owned(),
                    program.about.clone(),
                ]);
            }
            printer.data(&table)?;
        }
    }
    Ok(())
}

fn show(name: &str, below: &[String], printer: &mut Printer) -> Result<(), Error> {
    let program = catalog::lookup(name).ok_or_else(|| UsageError::NotInCatalog {
        name: name.to_owned(),
        near: did_you_mean(name, catalog::names()).map(str::to_owned),
    })?;
    let mut command = &program.command;
    let mut path = program.name.clone();
    for word in below {
        let subcommand = command.subcommands.iter().find(|known| known.names.contains(word));
        let Some(subcommand) = subcommand else {
            let known = command.subcommands.iter().flat_map(|known| known.names.iter());
            return Err(UsageError::NotInCatalog {
                near: did_you_mean(word, known.map(String::as_str))
                    .map(|near| format!("{path} {near}")),
                name: format!("{path} {word}"),
            }
            .into());
        };
        path = format!("{path} {word}");
        command = &subcommand.command;
    }
    let shown = Shown { path: &path, program, command };
    match printer.format() {
        Format::Json => printer.json(&shown.json())?,
        Format::Text => printer.data(&shown)?,
    }
    Ok(())
}

fn stats(printer: &mut Printer) -> Result<(), Error> {
    let mut count = Count::default();
    for program in catalog::programs() {
        count.programs += 1;
        count.names += 1 + program.also.len();
        match program.depth {
            Depth::Full => count.full += 1,
            Depth::Subcommands => count.subcommand_depth += 1,
            Depth::Opaque => count.opaque += 1,
        }
        count.add(&program.command);
    }
    match printer.format() {
        Format::Json => printer.json(&count)?,
        Format::Text => {
            let mut table = Table::new(["counted", "number"]);
            for (what, number) in [
                ("programs", count.programs),
                ("names they are called by", count.names),
                ("read in full", count.full),
                ("read to their subcommands", count.subcommand_depth),
                ("opaque: always code", count.opaque),
                ("subcommands", count.subcommands),
                ("options", count.options),
            ] {
                table.row([what.to_owned(), number.to_string()]);
            }
            printer.data(&table)?;
        }
    }
    Ok(())
}

#[derive(Debug, Default, serde::Serialize)]
struct Count {
    programs: usize,
    names: usize,
    full: usize,
    subcommand_depth: usize,
    opaque: usize,
    subcommands: usize,
    options: usize,
}

impl Count {
    fn add(&mut self, command: &Command) {
        self.options += command.options.len();
        self.subcommands += command.subcommands.len();
        for subcommand in &command.subcommands {
            self.add(&subcommand.command);
        }
    }
}

fn summary(program: &Program) -> Value {
    json!({
        "program": program.name,
        "also": program.also,
        "about": program.about,
        "implementation": program.implementation,
        "versions": program.versions,
        "depth": program.depth,
    })
}

/// The word for a depth.
pub(super) fn depth(depth: Depth) -> &'static str {
    match depth {
        Depth::Full => "full",
        Depth::Subcommands => "subcommands",
        Depth::Opaque => "opaque",
    }
}
