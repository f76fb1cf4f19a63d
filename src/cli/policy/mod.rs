//! `runner policy …`: look into policies without running anything.

mod limits;
mod view;

use clap::Subcommand;

use crate::cli::printer::Printer;
use crate::error::Error;
use crate::exit::Ending;

/// The subcommands of `policy`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show every limit: its key, its presets, its ceiling
    Limits(limits::Args),
}

/// Runs one of them.
pub(super) fn run(command: Command, printer: &mut Printer) -> Result<Ending, Error> {
    match command {
        Command::Limits(args) => limits::run(&args, printer),
    }
}
