//! `runner agent exec`: runs a line that the hook wrapped.

use std::ffi::OsString;
use std::io;

use anstream::ColorChoice;

use super::super::bug;
use super::super::event_loop::cancellable;
use super::super::exec::report;
use super::super::printer::{Format, Printer};
use super::super::visible::visible;
use crate::agent::{self, AgentError, Order};
use crate::call::{Detail, Stream};
use crate::cli::Error;
use crate::exit::{Ending, ExitCode};

/// As typed. It has no options: what a model writes changes nothing but the line.
#[derive(Debug, clap::Args)]
#[command(
    after_help = concat!(
        "Examples:\n",
        "  runner agent exec claude SESSION TICKET 'npm test'\n",
        "  runner agent exec codex SESSION TICKET 'git status'",
    )
)]
pub struct Args {
    /// AGENT SESSION TICKET LINE, as the hook writes them
    #[arg(value_name = "WORD", num_args = 4, allow_hyphen_values = true)]
    pub words: Vec<OsString>,
}

/// Runs it as a whole process, which has read nothing of its environment.
pub(super) fn alone(words: &[OsString]) -> ExitCode {
    let mut printer = Printer::new(Format::Text, Detail::Brief, ColorChoice::Never);
    let result = bug::catch(|| run(words, &mut printer)).unwrap_or_else(|bug| Err(bug.into()));
    let ending = result.unwrap_or_else(|error| {
        let _ = printer.error(&error);
        error.ending()
    });
    ending.exit
}

/// Runs it; what the agent's model sees are both streams of this process.
pub(super) fn run(words: &[OsString], printer: &mut Printer) -> Result<Ending, Error> {
    let order = Order::read(words)?;
    let failed = |source| AgentError::Io { path: ".".into(), source };
    let cwd = std::env::current_dir().map_err(failed)?;
    let mut ran = cancellable(async |cancel| Ok(agent::run(order, cwd, cancel).await?))?;
    let [out, err] = [ran.result.stdout.take(), ran.result.stderr.take()];
    if let Some(stream) = out {
        let _ = write(stream, &mut io::stdout().lock());
    }
    if let Some(stream) = err {
        let _ = write(stream, &mut io::stderr().lock());
    }
    for note in &ran.notes {
        printer.talk(format_args!("runner: {}", visible(note)));
    }
    report(&ran.decided, &ran.result, printer)?;
    for notice in ran.decided.context.notices.take() {
        printer.talk(format_args!("runner: {notice}"));
    }
    if let Some(farewell) = ran.result.farewell.take() {
        farewell.with_us();
    }
    Ok(ran.result.ending)
}

/// What was kept of a stream.
fn write(stream: Stream, to: &mut impl io::Write) -> io::Result<()> {
    let (bytes, _) = stream.into_bytes();
    to.write_all(&bytes)?;
    to.flush()
}
