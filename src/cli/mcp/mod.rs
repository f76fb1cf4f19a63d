//! `runner mcp …`: servers whose tools can be used, and the server that runner is itself.

mod install;
mod list;
mod refresh;
mod serve;
mod token;

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
        "  runner mcp refresh files\n",
        "  runner mcp serve --policy develop",
    )
)]
pub enum Command {
    /// List the configured servers
    List(list::Args),
    /// Ask servers for their tools, and remember the answers
    Refresh(refresh::Args),
    /// Serve MCP clients: commands and tools under one policy
    Serve(serve::Args),
    /// Make, list and revoke tokens of clients that connect over TCP
    #[command(subcommand)]
    Token(token::Command),
    /// Write the entry of `mcp serve` into the configuration of a client
    Install(install::Args),
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
        Command::Serve(args) => serve::run(args, context, printer),
        Command::Token(command) => token::run(command, context, printer),
        Command::Install(args) => install::run(args, context, printer),
    }
}
