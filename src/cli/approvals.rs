//! `runner approvals`, `runner approve`, `runner deny`: questions that wait, and their answers.
//!
//! An agent must not answer in a person's place: answering needs a terminal, unless the user's or the managed
//! configuration says `approvals: { withoutTerminal: true }`.

use std::io::{self, BufRead as _, IsTerminal as _};
use std::time::Duration;

use runner_policy::limits::Unit;
use rustix::termios::{QueueSelector, tcflush};
use serde_json::{Value, json};

use super::audit::moment;
use super::policy::place;
use super::printer::{Format, Printer};
use super::table::Table;
use super::usage::UsageError;
use super::visible::visible;
use crate::approvals::{ApprovalError, ApprovalId, Book, Given, Scope, State, Waiting};
use crate::call::CallError;
use crate::config::{self, Config, Flag};
use crate::error::Error;
use crate::exit::Ending;
use crate::store::Store;

/// As typed.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  runner approvals\n  runner approvals --all --json")]
pub struct List {
    /// Also those that are over
    #[arg(long)]
    all: bool,
}

/// As typed.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  runner approve k3m9x2p7qa\n  runner approve k3m9x2p7qa --for 1h\n  runner approve k3m9x2p7qa --for 1h --arg path='src/*'\n\nShows the question and asks. An approval holds for the very same call: tool with all its files, arguments, policy, image, folder, workspace; what is not shown whole is answered at the terminal of the call itself. Needs a terminal: a program must not answer in a person's place."
)]
pub struct Approve {
    /// The question, as `runner approvals` shows it
    #[arg(value_name = "ID")]
    id: ApprovalId,
    /// Approve the same call for this time, such as 1h, not only once
    #[arg(long = "for", value_name = "TIME")]
    time: Option<String>,
    /// Let an argument of a tool differ, as long as it matches: NAME=PATTERN, where `*` stays inside a name
    #[arg(long = "arg", value_name = "NAME=PATTERN", requires = "time")]
    patterns: Vec<String>,
}

/// As typed.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  runner deny k3m9x2p7qa\n  runner deny k3m9x2p7qa --never")]
pub struct Deny {
    /// The question, as `runner approvals` shows it
    #[arg(value_name = "ID")]
    id: ApprovalId,
    /// Refuse the same call each time it comes, without asking
    #[arg(long)]
    never: bool,
}

/// Shows what waits and what holds.
pub(super) fn list(args: &List, printer: &mut Printer) -> Result<Ending, Error> {
    let (book, _) = open()?;
    let rows = book.list(args.all)?;
    match printer.format() {
        Format::Json => printer.json(&json!({ "approvals": rows }))?,
        Format::Text => {
            let mut table = Table::new(["ID", "STATE", "ASKED", "UNTIL", "ABOUT"]);
            for it in &rows {
                let until =
                    if it.scope == Scope::Never { "always".to_owned() } else { moment(it.ends) };
                table.row([it.id.to_string(), state(it), moment(it.asked), until, about(it)]);
            }
            printer.data(table)?;
        }
    }
    Ok(Ending::ok())
}

/// Answers yes.
pub(super) fn approve(args: Approve, printer: &mut Printer) -> Result<Ending, Error> {
    let (book, config) = open()?;
    let it = book.find(&args.id)?;
    let patterns = args.patterns.iter().map(|text| pattern(text)).collect::<Result<_, _>>()?;
    let time = args.time.as_deref().map(time).transpose()?;
    let scope = if time.is_some() { Scope::Time } else { Scope::Once };
    show(&it, printer);
    it.must_be_whole()?;
    confirm(&it, &config, printer)?;
    let it = book.answer(&args.id, &Given { scope, time, patterns })?;
    told(&it, printer)
}

/// Answers no.
pub(super) fn deny(args: &Deny, printer: &mut Printer) -> Result<Ending, Error> {
    let (book, config) = open()?;
    let it = book.find(&args.id)?;
    let it = if args.never {
        show(&it, printer);
        confirm(&it, &config, printer)?;
        book.answer(&args.id, &Given { scope: Scope::Never, time: None, patterns: Vec::new() })?
    } else {
        // Saying no loosens nothing, so anybody may.
        book.deny(&args.id)?
    };
    told(&it, printer)
}

/// The book of this caller, and the configuration that it goes by.
fn open() -> Result<(Book, Config), Error> {
    let places = place::Args { policy: None, cwd: None }.resolve()?.places;
    let config = config::load(&places)?;
    let store = Store::open(places.state.as_deref()).map_err(CallError::from)?;
    Ok((Book::new(store, config.approvals()), config))
}

/// The question as it was put.
fn show(it: &Waiting, printer: &mut Printer) {
    for line in it.question.as_array().into_iter().flatten() {
        let part = |at: usize| line.get(at).and_then(Value::as_str).unwrap_or_default();
        printer.talk(format_args!("  {:<10} {}", visible(part(0)), visible(part(1))));
    }
    printer.talk(format_args!("  {:<10} {}", "workspace", visible(&it.workspace)));
}

/// A person says yes, or the configuration does not want one.
fn confirm(it: &Waiting, config: &Config, printer: &mut Printer) -> Result<(), ApprovalError> {
    if config.is_on(Flag::ApproveWithoutTerminal) {
        return Ok(());
    }
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Err(ApprovalError::NoTerminal);
    }
    // What was typed before the question is no answer to it.
    let _ = tcflush(io::stdin(), QueueSelector::IFlush);
    printer.talk("Answer so? [y/N]");
    let mut answer = String::new();
    // A longer line is no answer.
    let read = io::Read::take(io::stdin().lock(), 256).read_line(&mut answer);
    match (read, answer.trim()) {
        (Ok(_), "y" | "Y" | "yes") => Ok(()),
        _ => Err(ApprovalError::Declined(it.id.clone())),
    }
}

fn told(it: &Waiting, printer: &mut Printer) -> Result<Ending, Error> {
    match printer.format() {
        Format::Json => printer.json(it)?,
        Format::Text => printer.talk(format_args!("{}: {}", it.id, state(it))),
    }
    Ok(Ending::ok())
}

/// What has become of it, in words.
fn state(it: &Waiting) -> String {
    match (it.state, it.scope) {
        (State::Pending, _) => "waits".to_owned(),
        (State::Granted, scope) => format!("approved, {}", scope.word()),
        (State::Denied, Scope::Never) => "never".to_owned(),
        (state, _) => state.word().to_owned(),
    }
}

/// What it is about, in a line.
fn about(it: &Waiting) -> String {
    let line = |name: &str| {
        let mut lines = it.question.as_array().into_iter().flatten();
        let found = lines.find(|line| line.get(0).and_then(Value::as_str) == Some(name));
        found.and_then(|line| line.get(1)).and_then(Value::as_str)
    };
    let what = line("command").or_else(|| line("removes")).unwrap_or_default();
    format!("{} {what}", it.subject).trim_end().to_owned()
}

fn time(text: &str) -> Result<Duration, UsageError> {
    Unit::Time.parse(text).map(Duration::from_millis).map_err(|form| UsageError::Option {
        option: "--for".to_owned(),
        why: format!("`{text}` is no time; write {form}"),
    })
}

fn pattern(text: &str) -> Result<(String, String), UsageError> {
    let (name, pattern) = text.split_once('=').ok_or_else(|| UsageError::Option {
        option: "--arg".to_owned(),
        why: format!("`{text}` has no pattern; write NAME=PATTERN"),
    })?;
    Ok((name.to_owned(), pattern.to_owned()))
}
