//! `runner audit`: what was asked, what was decided, how it ended.

use jiff::{SignedDuration, Timestamp};

use super::printer::{Format, Printer};
use super::table::Table;
use super::usage::UsageError;
use super::visible::visible;
use crate::audit::{Filter, Ledger};
use crate::call::CallError;
use crate::error::Error;
use crate::exit::Ending;
use crate::policies::Places;
use crate::store::Store;

/// The subcommands.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Calls, newest first
    #[command(
        after_help = "Examples:\n  runner audit list --denied --since 1h\n  runner audit list --json | jq .calls[0]"
    )]
    List(List),
    /// Everything recorded about one call
    Show(Show),
}

/// As typed.
#[derive(Debug, clap::Args)]
pub struct List {
    /// Only calls that were denied or need approval
    #[arg(long)]
    denied: bool,
    /// Not before this: a time ago (90s, 20m, 4h, 7d), or a moment (2026-01-31, 2026-01-31T12:00:00Z)
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// At most this many
    #[arg(long, short = 'n', value_name = "N", default_value_t = 50)]
    most: usize,
}

/// As typed.
#[derive(Debug, clap::Args)]
pub struct Show {
    /// The call's id, or the beginning of it
    id: String,
}

/// Runs it.
pub(super) fn run(command: Command, printer: &mut Printer) -> Result<Ending, Error> {
    let store = open()?;
    let ledger = Ledger::new(&store);
    ledger.find_aborted().map_err(CallError::from)?;
    match command {
        Command::List(args) => list(&args, &ledger, printer),
        Command::Show(args) => show(&args, &ledger, printer),
    }
}

/// The caller's own store.
pub(super) fn open() -> Result<Store, Error> {
    let places = Places::from_env(|name| std::env::var_os(name), None);
    Ok(Store::open(places.state.as_deref()).map_err(CallError::from)?)
}

fn list(args: &List, ledger: &Ledger<'_>, printer: &mut Printer) -> Result<Ending, Error> {
    let since = args.since.as_deref().map(since).transpose()?;
    let filter = Filter { refused: args.denied, since, most: Some(args.most) };
    let calls = ledger.list(filter).map_err(CallError::from)?;
    match printer.format() {
        Format::Json => printer.json(&serde_json::json!({ "calls": calls }))?,
        Format::Text => {
            let mut table = Table::new(["CALL", "WHEN", "STATUS", "EXIT", "RULE", "COMMAND"]);
            for call in calls {
                table.row([
                    call.call,
                    moment(call.at),
                    call.status,
                    call.exit.map(|exit| exit.to_string()).unwrap_or_default(),
                    call.rule.or(call.error).unwrap_or(call.code),
                    call.command,
                ]);
            }
            printer.data(table)?;
        }
    }
    Ok(Ending::ok())
}

fn show(args: &Show, ledger: &Ledger<'_>, printer: &mut Printer) -> Result<Ending, Error> {
    let Show { id } = args;
    let wrong = |why: String| UsageError::Option { option: "ID".to_owned(), why };
    // Nothing is the beginning of every call, and names none.
    let found = match id.as_str() {
        "" => Vec::new(),
        start => ledger.beginning(start).map_err(CallError::from)?,
    };
    let call = match found.as_slice() {
        [one] => one,
        [] => {
            let why = format!("there is no call `{id}`; `runner audit list` shows those there are");
            return Err(wrong(why).into());
        }
        _ => {
            let why = format!("`{id}` is the beginning of several calls; write more of it");
            return Err(wrong(why).into());
        }
    };
    let rows = ledger.show(call).map_err(CallError::from)?;
    match printer.format() {
        Format::Json => printer.json(&serde_json::json!({ "events": rows }))?,
        Format::Text => {
            for row in rows {
                printer.data(format_args!(
                    "{}  {}  {}\n",
                    moment(row.at),
                    row.kind.word(),
                    visible(&row.call)
                ))?;
                let text = serde_json::to_string_pretty(&row.body).unwrap_or_default();
                for line in text.lines() {
                    printer.data(format_args!("  {}\n", visible(line)))?;
                }
            }
        }
    }
    Ok(Ending::ok())
}

/// A moment in UTC, to the second.
pub(super) fn moment(millis: i64) -> String {
    Timestamp::from_millisecond(millis)
        .map(|moment| moment.strftime("%Y-%m-%d %H:%M:%S").to_string())
        .unwrap_or_else(|_| millis.to_string())
}

fn since(text: &str) -> Result<i64, UsageError> {
    let wrong = || UsageError::Option {
        option: "--since".to_owned(),
        why: format!(
            "`{text}` is no time; write 90s, 20m, 4h, 7d, 2026-01-31 or 2026-01-31T12:00:00Z"
        ),
    };
    let unit = text.chars().last().ok_or_else(wrong)?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        _ => {
            let moment = text.parse::<Timestamp>().or_else(|_| format!("{text}T00:00:00Z").parse());
            return moment.map(Timestamp::as_millisecond).map_err(|_| wrong());
        }
    };
    let count: i64 = text[..text.len() - 1].parse().map_err(|_| wrong())?;
    let ago = count.checked_mul(seconds).map(SignedDuration::from_secs).ok_or_else(wrong)?;
    Timestamp::now().checked_sub(ago).map(Timestamp::as_millisecond).map_err(|_| wrong())
}
