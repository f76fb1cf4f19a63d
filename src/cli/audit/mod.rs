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
pub enum Command {
    /// Calls, newest first
    #[command(
        after_help = "Examples:\n  runner audit list --denied --since 1h\n  runner audit list --tool run_tests --until 2026-01-31\n  runner audit list --json | jq .calls[0]"
    )]
    List(list::Args),
    /// Everything recorded about one call
    #[command(
        after_help = "Examples:\n  runner audit show 019a2b\n  runner audit show 019a2b --json | jq '.events[].kind'"
    )]
    Show(show::Args),
    /// The newest records, and with -f those to come
    #[command(
        after_help = "Examples:\n  runner audit tail\n  runner audit tail -f --json | jq -c 'select(.kind == \"refused\")'"
    )]
    Tail(tail::Args),
    /// Whether the ledger is what was recorded: nothing changed, removed, reordered, added or cut off
    #[command(
        after_help = "Exit code 65 if it is not. The key that signs lies in the state folder: this shows edits by anyone who cannot read it, and not those of your own account.\n\nExamples:\n  runner audit verify\n  runner audit verify --expect 1200:5f0c…   hold it to a head that you noted earlier\n  runner audit verify --after 1200          only what came later, once you know what happened before"
    )]
    Verify(verify::Args),
    /// Counts and times, of all calls and by tool; denials by rule, cost by day
    #[command(
        after_help = "Examples:\n  runner audit stats --since 7d\n  runner audit stats --tool run_tests --json"
    )]
    Stats(stats::Args),
    /// Every record as a line of JSON, for other systems
    #[command(
        after_help = "Examples:\n  runner audit export > ledger.jsonl\n  runner audit export --format ocsf --since 1d"
    )]
    Export(export::Args),
}

/// Whoever says nothing more wants to see the newest.
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
