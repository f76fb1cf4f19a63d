//! `runner policy …`: look into policies without running anything.

mod catalog;
mod check;
mod explain;
mod grammar;
mod limits;
mod list;
pub(in crate::cli) mod place;
mod show;
pub(in crate::cli) mod summary;
mod trust;
pub mod view;

pub use trust::TrustRefused;

use clap::Subcommand;

use crate::call::Context;
use crate::cli::Error;
use crate::cli::printer::Printer;
use crate::exit::Ending;

/// The subcommands of `policy`.
#[derive(Debug, Subcommand)]
#[command(
    after_help = concat!(
        "Examples:\n",
        "  runner policy explain -- git push\n",
        "  runner policy show develop",
    )
)]
pub enum Command {
    /// Show what a command does, what the policy decides, and why
    Explain(explain::Args),
    /// Load policies and run their examples and tests
    Check(check::Args),
    /// List the policies that can be chosen here
    List(list::Args),
    /// Show a policy after composition
    Show(show::Args),
    /// Trust a project's policy: show what it grants, and pin its digest
    Trust(trust::Args),
    /// Show the programs of the catalog, or one of them
    Catalog(catalog::Args),
    /// Show every limit: key, presets, ceiling
    Limits(limits::Args),
}

/// Runs one of them.
pub(super) fn run(
    command: Command,
    context: &Context,
    printer: &mut Printer,
) -> Result<Ending, Error> {
    match command {
        Command::Explain(args) => explain::run(args, context, printer),
        Command::Check(args) => check::run(&args, context, printer),
        Command::List(args) => list::run(&args, context, printer),
        Command::Show(args) => show::run(args, context, printer),
        Command::Trust(args) => trust::run(args, context, printer),
        Command::Catalog(args) => catalog::run(&args, printer),
        Command::Limits(args) => limits::run(&args, printer),
    }
}
