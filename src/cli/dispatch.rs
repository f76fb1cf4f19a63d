//! From words to an exit code: parse, dispatch, report.

use std::ffi::OsString;

use clap::Parser as _;
use clap::error::ErrorKind;

use crate::call::Context;
use crate::cli::Error;
use crate::exit::{Ending, ExitCode};
use crate::latency::Early;
use crate::policy_files::Places;

use super::args::{Cli, Command, Global};
use super::bug;
use super::front;
use super::later::Later;
use super::printer::Printer;
use super::status::StatusSink;
use super::usage::UsageError;
use super::{
    agent, approvals, audit, bench, calls, completions, config, doctor, exec, man, mcp, policy,
    pool, schema, stage, tool, undo, version,
};

/// Parses the command line, runs the subcommand and reports the result.
#[must_use]
pub fn run(words: &[OsString]) -> ExitCode {
    if let Some(code) = agent::for_agents(words) {
        return code;
    }
    let (promised, descriptor) = (promise_a_call(words), name_a_descriptor(words));
    let early = if promised { Early::start() } else { Early::default() };
    let context = Context { early, ..front::context() };
    let open_records = || context.early.open_store(Places::of(&context.environment, None).state);
    if promised && !descriptor {
        open_records();
    }
    match Cli::try_parse_from(words) {
        Ok(Cli { global, command }) => in_context(&global, |printer| {
            if promised && descriptor {
                open_records();
            }
            let done = dispatch(command, &context, printer);
            for notice in context.notices.take() {
                printer.talk(format_args!("runner: {notice}"));
            }
            done
        }),
        Err(error) => in_context(&Global::glimpse(words), |printer| match error.kind() {
            ErrorKind::DisplayHelp => {
                printer.data(error.render().ansi())?;
                Ok(Ending::ok())
            }
            ErrorKind::DisplayVersion => version::print(printer),
            _ => Err(UsageError::from_clap(&error, words).into()),
        }),
    }
}

/// Whether these look like the words of a call. It only starts work early.
fn promise_a_call(words: &[OsString]) -> bool {
    let words = words.iter().skip(1).map_while(|word| word.to_str());
    let mut words = words.filter(|word| !word.starts_with('-'));
    matches!(
        (words.next(), words.next()),
        (Some("exec"), _) | (Some("tool" | "tools"), Some("run"))
    )
}

/// Whether `--status-fd` may be among the words. The descriptor is taken before this process opens a file: a number that the
/// caller did not open would become that of the database, and the status would be written into it.
fn name_a_descriptor(words: &[OsString]) -> bool {
    words.iter().any(|word| word.as_encoded_bytes().starts_with(b"--status-fd"))
}

/// Reports an error that happened before there were arguments.
#[must_use]
pub fn report_and_end(error: impl Into<Error>, words: &[OsString]) -> ExitCode {
    let error = error.into();
    in_context(&Global::glimpse(words), |_| Err(error))
}

fn dispatch(command: Command, context: &Context, printer: &mut Printer) -> Result<Ending, Error> {
    match command {
        Command::Exec(Later(args)) => exec::run(args, context, printer),
        Command::Tool { command } => {
            tool::run(command.map_or_else(Default::default, |Later(it)| it), context, printer)
        }
        Command::Mcp(Later(command)) => mcp::run(command, context, printer),
        Command::Policy(Later(command)) => policy::run(command, context, printer),
        Command::Config(Later(command)) => config::run(command, context, printer),
        Command::Agent(Later(command)) => agent::run(command, context, printer),
        Command::Hook(Later(args)) => Ok(Ending::of_command(args.run().get())),
        Command::Audit { command } => {
            audit::run(command.map_or_else(Default::default, |Later(it)| it), context, printer)
        }
        Command::Approvals(Later(args)) => approvals::list(&args, context, printer),
        Command::Approve(Later(args)) => approvals::approve(args, context, printer),
        Command::Deny(Later(args)) => approvals::deny(&args, context, printer),
        Command::Pool(Later(command)) => pool::run(command, context, printer),
        Command::Bench(Later(args)) => bench::run(&args, context, printer),
        Command::Doctor(Later(args)) => doctor::run(&args, context, printer),
        Command::Stage(Later(command)) => stage::run(command, context, printer),
        Command::Undo(Later(args)) => undo::run(&args, context, printer),
        Command::Schema { command } => schema::run(command.map(|Later(it)| it), printer),
        Command::Ps => calls::ps(context, printer),
        Command::Cancel(Later(args)) => calls::cancel(&args, context, printer),
        Command::Gc(Later(args)) => calls::gc(args, context, printer),
        Command::Completions(Later(args)) => completions::run(&args, printer),
        Command::Man(Later(args)) => man::run(&args, printer),
    }
}

/// Runs `work` with a printer, reports its error, sends the status.
fn in_context(
    global: &Global,
    work: impl FnOnce(&mut Printer) -> Result<Ending, Error>,
) -> ExitCode {
    let mut printer = Printer::new(global.format(), global.detail(), global.color_choice());
    let mut sink = StatusSink::none();
    let result = StatusSink::open(global.status_fd).map_err(Error::from).and_then(|opened| {
        sink = opened;
        bug::catch(|| work(&mut printer))?
    });
    let ending = result.unwrap_or_else(|error| match printer.error(&error) {
        Ok(()) => error.ending(),
        // The report itself could not be written: that is what the exit code must say.
        Err(output) => {
            printer.talk(&output);
            Error::from(output).ending()
        }
    });
    sink.send(&ending);
    ending.exit
}
