//! `runner approvals`, `runner approve`, `runner deny`: questions that wait, and their answers.
//!
//! An agent must not answer in a person's place: answering needs a terminal, unless the user's or the managed
//! configuration says `approvals: { withoutTerminal: true }`.

use std::time::Duration;

use runner_policy::limits::Unit;
use serde_json::{Value, json};

use super::ask::{answer, is_terminal};
use super::audit::moment;
use super::policy::place;
use super::printer::{Format, Printer};
use super::table::Table;
use super::usage::UsageError;
use super::visible::visible;
use crate::approvals::{ApprovalError, ApprovalId, Book, Given, Scope, State, Waiting};
use crate::audit::Ledger;
use crate::call::CallError;
use crate::call::Context;
use crate::cli::Error;
use crate::config::{self, Config, Flag};
use crate::exit::Ending;
use crate::store::Store;

/// Characters of a line that says what a question is about.
const ABOUT_SHOWN: usize = 200;

/// As typed.
#[derive(Debug, clap::Args)]
#[command(after_help = concat!(
    "Examples:\n",
    "  runner approvals\n",
    "  runner approvals --all --json",
))]
pub struct List {
    /// Also those that are over
    #[arg(long)]
    all: bool,
}

/// As typed.
#[derive(Debug, clap::Args)]
#[command(
    after_help = concat!(
        "Shows the question and asks for yes or no. It needs a terminal: a program must not ",
        "answer for a person. The approval holds for this call only: the tool with all its ",
        "files, the arguments, the policy, the image, the folder and the workspace. A ",
        "question that cannot be shown whole is answered at the terminal of the call itself.\n\n",
        "Examples:\n",
        "  runner approve k3m9x2p7qa\n",
        "  runner approve k3m9x2p7qa --for 1h\n",
        "  runner approve k3m9x2p7qa --for 1h --arg path='src/*'",
    )
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
#[command(after_help = concat!(
    "Examples:\n",
    "  runner deny k3m9x2p7qa\n",
    "  runner deny k3m9x2p7qa --never",
))]
pub struct Deny {
    /// The question, as `runner approvals` shows it
    #[arg(value_name = "ID")]
    id: ApprovalId,
    /// Refuse the same call each time it comes, without asking
    #[arg(long)]
    never: bool,
}

/// Shows what waits and what holds.
pub(super) fn list(args: &List, context: &Context, printer: &mut Printer) -> Result<Ending, Error> {
    let (book, _) = open(context)?;
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
pub(super) fn approve(
    args: Approve,
    context: &Context,
    printer: &mut Printer,
) -> Result<Ending, Error> {
    let (book, config) = open(context)?;
    let it = book.find(&args.id)?;
    let patterns = args.patterns.iter().map(|text| pattern(text)).collect::<Result<_, _>>()?;
    let time = args.time.as_deref().map(time).transpose()?;
    let scope = if time.is_some() { Scope::Time } else { Scope::Once };
    let given = Given { scope, time, patterns };
    show(&it, printer);
    it.must_be_whole()?;
    let longest = config.approvals().longest;
    if let Some(time) = time.filter(|time| *time > longest) {
        let show =
            |time: Duration| Unit::Time.show(u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        let (asked, longest) = (show(time), show(longest));
        printer.talk(format_args!(
            "note: {asked} is cut to {longest}, the most that `approvals.longest` allows"
        ));
    }
    confirm(&it, &grants(&it, &given, book.until(&given)), &config)?;
    let it = book.answer(&args.id, &given)?;
    told(&it, printer)
}

/// Answers no.
pub(super) fn deny(args: &Deny, context: &Context, printer: &mut Printer) -> Result<Ending, Error> {
    let (book, config) = open(context)?;
    let it = book.find(&args.id)?;
    let it = if args.never {
        show(&it, printer);
        confirm(&it, &format!("Refuse `{}` from now on", name(&it)), &config)?;
        book.answer(&args.id, &Given { scope: Scope::Never, time: None, patterns: Vec::new() })?
    } else {
        // A denial loosens nothing, so no terminal is needed.
        book.deny(&args.id)?
    };
    told(&it, printer)
}

/// The book of this caller, and the configuration that it goes by.
fn open(context: &Context) -> Result<(Book, Config), Error> {
    let places = place::Args { policy: None, cwd: None }.resolve(context)?.places;
    let config = config::load(&places)?;
    let store = Store::open(places.state.as_deref()).map_err(CallError::from)?;
    let book = Book::new(Ledger::new(store), config.approvals(), context.caller.clone());
    Ok((book, config))
}

/// The question as it was put.
fn show(it: &Waiting, printer: &mut Printer) {
    for line in it.question.as_array().into_iter().flatten() {
        let part = |at: usize| line.get(at).and_then(Value::as_str).unwrap_or_default();
        printer.talk(format_args!("  {:<10} {}", visible(part(0)), visible(part(1))));
    }
    printer.talk(format_args!("  {:<10} {}", "workspace", visible(&it.workspace)));
}

/// What a yes lets run, and until when.
fn grants(it: &Waiting, given: &Given, until: i64) -> String {
    let like = |(name, pattern): &(String, String)| {
        format!(" with {} like `{}`", visible(name), visible(pattern))
    };
    let patterns: String = given.patterns.iter().map(like).collect();
    let (name, until) = (name(it), moment(until));
    match given.scope {
        Scope::Time => format!("Approve `{name}`{patterns} until {until} UTC"),
        Scope::Once | Scope::Session | Scope::Never => {
            format!("Approve `{name}` once, until {until} UTC")
        }
    }
}

/// What a question is about, by its name.
fn name(it: &Waiting) -> String {
    let subject = it.subject.strip_prefix("tool:").unwrap_or(&it.subject);
    visible(subject).to_string()
}

/// A person says yes to this, or the configuration does not want one.
fn confirm(it: &Waiting, what: &str, config: &Config) -> Result<(), ApprovalError> {
    if config.is_on(Flag::ApproveWithoutTerminal) {
        return Ok(());
    }
    if !is_terminal() {
        return Err(ApprovalError::NoTerminal);
    }
    let agreed = answer(&format!("{what}? [y/N] "), |typed| match typed {
        "y" | "Y" | "yes" => Some(true),
        "" | "n" | "N" | "no" => Some(false),
        _ => None,
    });
    match agreed {
        Some(true) => Ok(()),
        Some(false) | None => Err(ApprovalError::Declined(it.id.clone())),
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
    let lines = |name: &str| {
        let lines = it.question.as_array().into_iter().flatten();
        let named = lines.filter(|line| line.get(0).and_then(Value::as_str) == Some(name));
        let values = named.filter_map(|line| line.get(1)?.as_str()).collect::<Vec<_>>();
        Some(values.join(", ")).filter(|text| !text.is_empty())
    };
    // What it does, if that is known; else with what it is called, so that two calls of a tool can be told apart.
    let what = ["command", "removes", "moves", "runs", "reaches", "argument"];
    let what = what.into_iter().find_map(lines).unwrap_or_default();
    short(format!("{} {what}", it.subject).trim_end())
}

/// As much of a text as a table has room for.
fn short(text: &str) -> String {
    match text.char_indices().nth(ABOUT_SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn time(text: &str) -> Result<Duration, UsageError> {
    Unit::Time.parse(text).map(Duration::from_millis).map_err(|form| UsageError::Option {
        option: "--for".to_owned(),
        why: format!("`{text}` is not a time; write {form}"),
    })
}

fn pattern(text: &str) -> Result<(String, String), UsageError> {
    let (name, pattern) = text.split_once('=').ok_or_else(|| UsageError::Option {
        option: "--arg".to_owned(),
        why: format!("`{text}` has no pattern; write NAME=PATTERN"),
    })?;
    Ok((name.to_owned(), pattern.to_owned()))
}
