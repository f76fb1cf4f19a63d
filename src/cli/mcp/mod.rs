//! `runner mcp …`: servers whose tools can be used.

mod list;
mod refresh;

use clap::Subcommand;

use crate::call::Context;
use crate::cli::Error;
use crate::cli::printer::Printer;
use crate::exit::Ending;

/// The subcommands of `mcp`.
#[derive(Debug, Subcommand)]
#[command(
    after_help = concat!(
        "Examples:\n",
        "  runner mcp list\n",
        "  runner mcp refresh files",
    )
)]
pub enum Command {
    /// List the configured servers
    List(list::Args),
    /// Ask servers for their tools, and remember the answers
    Refresh(refresh::Args),
}

/// Runs one of them.
pub(super) fn run(
    command: Command,
    context: &Context,
    printer: &mut Printer,
) -> Result<Ending, Error> {
    match command {
        Command::List(args) => list::run(&args, context, printer),
        Command::Refresh(args) => refresh::run(args, context, printer),
    }
}
