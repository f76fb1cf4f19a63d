//! `runner policy …`: look into policies without running anything.

mod catalog;
mod grammar;
mod limits;
pub mod view;

use clap::Subcommand;

use crate::cli::printer::Printer;
use crate::error::Error;
use crate::exit::Ending;

/// The subcommands of `policy`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show the programs whose arguments can be read, or one of them
    Catalog(catalog::Args),
    /// Show every limit: its key, its presets, its ceiling
    Limits(limits::Args),
}

/// Runs one of them.
pub(super) fn run(command: Command, printer: &mut Printer) -> Result<Ending, Error> {
    match command {
        Command::Catalog(args) => catalog::run(&args, printer),
        Command::Limits(args) => limits::run(&args, printer),
    }
}
