//! `runner audit`: what was asked, what was decided, how it ended; and whether that is what was recorded.

mod export;
mod list;
mod ocsf;
mod one_line;
mod show;
mod stats;
mod tail;
mod verify;
mod which;

use super::printer::Printer;
use crate::audit::Ledger;
use crate::call::CallError;
use crate::call::Context;
use crate::cli::Error;
use crate::exit::Ending;
use crate::policy_files::Places;
use crate::store::Store;

pub(super) use one_line::moment;
pub(super) use show::one;

/// The subcommands.
#[derive(Debug, clap::Subcommand)]
#[command(
    after_help = concat!(
        "Without a subcommand, the newest calls are listed.\n\n",
        "Examples:\n",
        "  runner audit\n",
        "  runner audit list --denied --since 1h\n",
        "  runner audit verify",
    )
)]
pub enum Command {
    /// List calls, newest first
    #[command(
        after_help = concat!(
            "Examples:\n",
            "  runner audit list --denied --since 1h\n",
            "  runner audit list --tool run_tests --until 2026-01-31\n",
            "  runner audit list --json | jq .calls[0]",
        )
    )]
    List(list::Args),
    /// Show everything recorded about one call
    #[command(
        after_help = concat!(
            "Examples:\n",
            "  runner audit show 019a2b\n",
            "  runner audit show 019a2b --json | jq '.events[].kind'",
        )
    )]
    Show(show::Args),
    /// Show the newest records; with -f, follow new ones
    #[command(
        after_help = concat!(
            "Examples:\n",
            "  runner audit tail\n",
            "  runner audit tail -f --json | jq -c 'select(.kind == \"refused\")'",
        )
    )]
    Tail(tail::Args),
    /// Verify that no record was changed, removed, reordered, added or cut off
    #[command(
        after_help = concat!(
            "The key that signs the ledger is in the state folder. So this shows edits by ",
            "any account that cannot read that folder, and no edits by your own account. ",
            "--expect holds the ledger to a head that you noted earlier; --after skips the ",
            "records before one that you know.\n\n",
            "Examples:\n",
            "  runner audit verify\n",
            "  runner audit verify --expect 1200:5f0c3a\n",
            "  runner audit verify --after 1200\n\n",
            "Exit codes: 0 the ledger is as recorded, 65 it is not.",
        )
    )]
    Verify(verify::Args),
    /// Count calls and their times by tool, denials by rule, cost by day
    #[command(
        after_help = concat!(
            "Examples:\n",
            "  runner audit stats --since 7d\n",
            "  runner audit stats --tool run_tests --json",
        )
    )]
    Stats(stats::Args),
    /// Export every record as a line of JSON
    #[command(
        after_help = concat!(
            "Examples:\n",
            "  runner audit export > ledger.jsonl\n",
            "  runner audit export --format ocsf --since 1d",
        )
    )]
    Export(export::Args),
}

/// Without a subcommand, the newest calls are listed.
impl Default for Command {
    fn default() -> Self {
        Self::List(list::Args::default())
    }
}

/// Runs it.
pub(super) fn run(
    command: Command,
    context: &Context,
    printer: &mut Printer,
) -> Result<Ending, Error> {
    let ledger = Ledger::new(open(context)?);
    ledger.find_aborted().map_err(CallError::from)?;
    match command {
        Command::List(args) => list::run(&args, &ledger, printer),
        Command::Show(args) => show::run(&args, &ledger, printer),
        Command::Tail(args) => tail::run(&args, &ledger, printer),
        Command::Verify(args) => verify::run(&args, &ledger, printer),
        Command::Stats(args) => stats::run(&args, &ledger, printer),
        Command::Export(args) => export::run(&args, &ledger, printer),
    }
}

/// The caller's own store.
pub(super) fn open(context: &Context) -> Result<Store, Error> {
    let places = Places::of(&context.environment, None);
    Ok(Store::open(places.state.as_deref()).map_err(CallError::from)?)
}
