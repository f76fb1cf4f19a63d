//! `runner audit tail`: records as they come.

use std::time::Duration;

use super::one_line::{moment, one_line};
use crate::audit::{Ledger, Row};
use crate::call::CallError;
use crate::cli::Error;
use crate::cli::printer::{Format, Printer};
use crate::cli::visible::visible;
use crate::exit::Ending;

/// How often is looked for more. A look at the end of an index costs microseconds.
const PAUSE: Duration = Duration::from_millis(200);

/// As typed.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Go on with the records that come, until interrupted
    #[arg(long, short)]
    follow: bool,
    /// Begin with this many
    #[arg(long, short = 'n', value_name = "N", default_value_t = 10)]
    most: usize,
}

pub(super) fn run(args: &Args, ledger: &Ledger, printer: &mut Printer) -> Result<Ending, Error> {
    let most = i64::try_from(args.most).unwrap_or(i64::MAX);
    let mut seen = ledger.last().map_err(CallError::from)?.saturating_sub(most).max(0);
    loop {
        let rows = ledger.after(seen).map_err(CallError::from)?;
        for row in rows {
            seen = row.seq;
            line(&row, printer)?;
        }
        if !args.follow || printer.is_closed() {
            return Ok(Ending::ok());
        }
        std::thread::sleep(PAUSE);
        ledger.find_aborted().map_err(CallError::from)?;
    }
}

fn line(row: &Row, printer: &mut Printer) -> Result<(), Error> {
    match printer.format() {
        Format::Json => printer.json(row)?,
        Format::Text => {
            let (call, text) = (visible(&row.call), one_line(row));
            let whole =
                format!("{}  {:<8}  {call}  {}", moment(row.at), row.kind.word(), visible(&text));
            let shown = crate::cli::table::shortened(&whole, printer.width());
            printer.data(format_args!("{shown}\n"))?;
        }
    }
    Ok(())
}
