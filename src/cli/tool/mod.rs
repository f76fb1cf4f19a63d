//! `runner tool …`: run, find, look at, make and check tools.

mod asking;
mod check;
mod export;
mod info;
mod list;
mod live;
mod new;
mod place;
mod run;
mod search;
pub(in crate::cli) mod shared_stderr;
mod switch;
mod tokens;
mod view;

use clap::Subcommand;

use crate::call::Context;
use crate::cli::Error;
use crate::cli::printer::Printer;
use crate::exit::Ending;

/// The subcommands of `tool`.
#[derive(Debug, Subcommand)]
#[command(
    after_help = concat!(
        "Without a subcommand, the tools are listed.\n\n",
        "Examples:\n",
        "  runner tool\n",
        "  runner tool run file_search --arg operation=grep --arg pattern=TODO\n",
        "  runner tool new count_words",
    )
)]
pub enum Command {
    /// Run a tool: each of its requests is decided by the policy
    Run(Box<run::Args>),
    /// List the tools that can be used here
    List(list::Args),
    /// Show all about a tool: arguments, result, permissions
    Info(info::Args),
    /// Find tools by words: name, tags, category, capabilities, description
    Search(search::Args),
    /// Switch tools on
    Enable(switch::Enable),
    /// Switch tools off
    Disable(switch::Disable),
    /// Show what each tool costs in an agent's context
    Tokens(tokens::Args),
    /// Export tools in the format of a model's API
    Export(export::Args),
    /// Write a new tool from a template
    New(new::Args),
    /// Check tools: definition, schema, permissions, code
    Check(check::Args),
}

/// Without a subcommand, tools are listed.
impl Default for Command {
    fn default() -> Self {
        Self::List(list::Args::default())
    }
}

/// Runs one of them.
pub(super) fn run(
    command: Command,
    context: &Context,
    printer: &mut Printer,
) -> Result<Ending, Error> {
    match command {
        Command::Run(args) => run::run(*args, context, printer),
        Command::List(args) => list::run(args, context, printer),
        Command::Info(args) => info::run(args, context, printer),
        Command::Search(args) => search::run(args, context, printer),
        Command::Enable(args) => switch::enable(args, context, printer),
        Command::Disable(args) => switch::disable(args, context, printer),
        Command::Tokens(args) => tokens::run(args, context, printer),
        Command::Export(args) => export::run(args, context, printer),
        Command::New(args) => new::run(args, context, printer),
        Command::Check(args) => check::run(args, context, printer),
    }
}
