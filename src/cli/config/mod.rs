//! `runner config …`: what is set, by whom, and whether it can be used.

mod check;
mod path;
mod schema;
mod show;

use clap::Subcommand;

use crate::call::Context;
use crate::cli::Error;
use crate::cli::policy::place;
use crate::cli::printer::Printer;
use crate::exit::Ending;
use crate::policy_files::Places;

/// The subcommands of `config`.
#[derive(Debug, Subcommand)]
#[command(
    after_help = concat!(
        "Examples:\n",
        "  runner config show\n",
        "  runner config check",
    )
)]
pub enum Command {
    /// Show every value in force and where it was set
    Show(show::Args),
    /// Check configuration files
    Check(check::Args),
    /// Print the JSON Schema of a configuration file, for editors
    Schema(schema::Args),
    /// Show where configuration files are looked for
    Path(path::Args),
}

/// Runs one of them.
pub(super) fn run(
    command: Command,
    context: &Context,
    printer: &mut Printer,
) -> Result<Ending, Error> {
    match command {
        Command::Show(args) => show::run(&args, context, printer),
        Command::Check(args) => check::run(&args, context, printer),
        Command::Schema(args) => schema::run(&args, printer),
        Command::Path(args) => path::run(&args, context, printer),
    }
}

/// The caller's folders, for the current folder.
fn places(context: &Context) -> Result<Places, Error> {
    Ok(place::Args { policy: None, cwd: None }.resolve(context)?.places)
}
