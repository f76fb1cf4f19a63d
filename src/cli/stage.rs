//! `runner stage`: changes of commands that were held back, and what a person decides about them.
//!
//! A program must not decide in a person's place: applying needs a terminal, unless the user's or the
//! managed configuration says otherwise, as answering a question does.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use serde_json::json;

use super::ask::{answer, is_terminal};
use super::audit::{moment, open};
use super::diff_view::DiffView;
use super::printer::{Format, Printer};
use super::style;
use super::table::Table;
use super::visible::visible;
use crate::approvals::ApprovalError;
use crate::audit::Ledger;
use crate::call::Context;
use crate::call::Told;
use crate::call::stage::{self, Changes, HeldChange, Looked};
use crate::cli::Error;
use crate::config::{self, Config, Flag};
use crate::exit::Ending;
use crate::policy_files::Places;

/// What to do with changes that were held back.
#[derive(Debug, clap::Subcommand)]
#[command(
    after_help = concat!(
        "A command's changes are judged when the call is over, and then applied to the ",
        "workspace. Changes that may not be applied are held back for 7 days, as long as the ",
        "backups of `runner undo`.\n\n",
        "Examples:\n",
        "  runner stage list\n",
        "  runner stage diff 019a2b\n",
        "  runner stage apply 019a2b src/main.rs\n",
        "  runner stage discard 019a2b",
    )
)]
pub enum Command {
    /// List the calls whose changes were held back
    #[command(
        after_help = concat!(
            "Examples:\n",
            "  runner stage list\n",
            "  runner stage list --json",
        )
    )]
    List,
    /// Show what was held back of a call, and why
    #[command(
        after_help = concat!(
            "Examples:\n",
            "  runner stage show 019a2b\n",
            "  runner stage show 019a2b --json",
        )
    )]
    Show(One),
    /// Show the differences line by line
    #[command(
        after_help = concat!(
            "Examples:\n",
            "  runner stage diff 019a2b\n",
            "  runner stage diff 019a2b --color always | less -R",
        )
    )]
    Diff(One),
    /// Apply what was held back, except what no policy can allow
    #[command(
        after_help = concat!(
            "Examples:\n",
            "  runner stage apply 019a2b\n",
            "  runner stage apply 019a2b src/main.rs docs",
        )
    )]
    Apply {
        /// The call
        #[command(flatten)]
        call: One,
        /// Only these paths, below the workspace, and what lies below them
        #[arg(value_name = "PATH")]
        paths: Vec<PathBuf>,
    },
    /// Delete what was held back
    #[command(
        after_help = concat!(
            "Examples:\n",
            "  runner stage discard 019a2b\n",
            "  runner stage discard 019a2b --json",
        )
    )]
    Discard(One),
}

/// One call.
#[derive(Debug, clap::Args)]
pub struct One {
    /// The call's id, or the beginning of it
    #[arg(value_name = "CALL")]
    call: String,
}

/// Runs it.
pub(super) fn run(
    command: Command,
    context: &Context,
    printer: &mut Printer,
) -> Result<Ending, Error> {
    let places = Places::of(&context.environment, None);
    let config = config::load(&places)?;
    let ledger = Ledger::new(open(context)?);
    let state = ledger.store().folder().to_owned();
    match command {
        Command::List => list(&state, printer),
        Command::Show(One { call }) => show(&stage::look(&state, &call)?, printer),
        Command::Diff(One { call }) => diff(&stage::look(&state, &call)?, printer),
        Command::Apply { call: One { call }, paths } => {
            let looked = stage::look(&state, &call)?;
            let chosen = looked.chosen(&paths)?;
            confirm(chosen, &looked, &config)?;
            let applied = stage::apply(&looked, &paths, (&places, &config), context)?;
            told(&applied.changes, &applied.call, printer)
        }
        Command::Discard(One { call }) => {
            let count = stage::discard(&state, &call)?;
            match printer.format() {
                Format::Json => printer.json(&json!({ "discarded": count }))?,
                Format::Text => printer.talk(format_args!("{count} change(s) discarded")),
            }
            Ok(Ending::ok())
        }
    }
}

fn list(state: &Path, printer: &mut Printer) -> Result<Ending, Error> {
    let kept = stage::kept(state)?;
    match printer.format() {
        Format::Json => printer.json(&json!({ "stages": kept }))?,
        Format::Text if kept.is_empty() => printer.talk("no changes are held back"),
        Format::Text => {
            let mut table = Table::new(["CALL", "WHEN", "HELD", "WORKSPACE"]);
            for one in kept {
                let workspace = visible(&one.workspace.to_string_lossy()).to_string();
                table.row([one.call, moment(one.at), one.held.to_string(), workspace]);
            }
            let width = printer.width();
            printer.data(table.fitting(width))?;
        }
    }
    Ok(Ending::ok())
}

fn show(looked: &Looked, printer: &mut Printer) -> Result<Ending, Error> {
    if printer.format() == Format::Json {
        printer.json(&json!({
            "call": looked.call,
            "workspace": looked.workspace,
            "held": looked.held,
        }))?;
        return Ok(Ending::ok());
    }
    let (strong, faint) = (style::STRONG, style::FAINT);
    for (held, below) in topmost(&looked.held) {
        let below = if below > 0 { format!(" and {below} below it") } else { String::new() };
        printer.data(format_args!(
            "{strong}{}{strong:#}{below}\n  because  {}\n  rule     {faint}{}{faint:#}\n  next     {}\n",
            visible(&held.path),
            visible(&held.reason),
            visible(&held.rule),
            visible(&held.next)
        ))?;
    }
    Ok(Ending::ok())
}

/// Changes that are not below another one, each with the number of those below it.
fn topmost(all: &[HeldChange]) -> Vec<(&HeldChange, usize)> {
    let paths: HashSet<&Path> = all.iter().map(|held| Path::new(&held.path)).collect();
    let top = |held: &HeldChange| {
        Path::new(&held.path).ancestors().filter(|it| paths.contains(it)).last().map(PathBuf::from)
    };
    let mut below: HashMap<PathBuf, usize> = HashMap::new();
    for top in all.iter().filter_map(top) {
        *below.entry(top).or_default() += 1;
    }
    all.iter()
        .filter_map(|held| Some((held, below.get(Path::new(&held.path))?.saturating_sub(1))))
        .collect()
}

fn diff(looked: &Looked, printer: &mut Printer) -> Result<Ending, Error> {
    match printer.format() {
        Format::Json => printer.json(&json!({
            "call": looked.call,
            "workspace": looked.workspace,
            "diffs": looked.held.iter().zip(&looked.diffs).map(|(held, lines)| json!({
                "path": held.path,
                "lines": lines.iter().map(ToString::to_string).collect::<Vec<_>>(),
            })).collect::<Vec<_>>(),
        }))?,
        Format::Text => {
            for diff in &looked.diffs {
                printer.data(DiffView(diff))?;
            }
        }
    }
    Ok(Ending::ok())
}

/// A person says yes to this, or the configuration does not want one.
fn confirm(chosen: usize, looked: &Looked, config: &Config) -> Result<(), Error> {
    if config.is_on(Flag::ApproveWithoutTerminal) {
        return Ok(());
    }
    if !is_terminal() {
        return Err(ApprovalError::NoTerminal.into());
    }
    let workspace = looked.workspace.to_string_lossy();
    let question = format!("Apply {chosen} change(s) to {}? [y/N] ", visible(&workspace));
    let agreed = answer(&question, |typed| match typed {
        "y" | "Y" | "yes" => Some(true),
        "" | "n" | "N" | "no" => Some(false),
        _ => None,
    });
    match agreed {
        Some(true) => Ok(()),
        Some(false) | None => Err(stage::StagedError::Declined.into()),
    }
}

fn told(changes: &Changes, call: &str, printer: &mut Printer) -> Result<Ending, Error> {
    match printer.format() {
        Format::Json => printer.json(&Told::of_changes(call, &Ending::ok(), changes))?,
        Format::Text => {
            let applied = &changes.applied;
            let count = applied.created + applied.changed + applied.removed + applied.folders;
            printer.talk(format_args!(
                "{count} change(s) applied; `runner undo {call}` takes them back"
            ));
            if let Some(line) = changes.held_line() {
                printer.talk(format_args!("{}", visible(&line)));
            }
        }
    }
    Ok(Ending::ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stage::change::Why;

    #[test]
    fn what_lies_below_is_counted_with_the_topmost() {
        let all = ["a", "a/b", "a/b/c", "ab", "d/e"].map(|path| HeldChange {
            path: path.to_owned(),
            why: Why::RunsOnHost,
            reason: String::new(),
            rule: String::new(),
            next: String::new(),
        });
        let shown: Vec<(&str, usize)> =
            topmost(&all).into_iter().map(|(held, below)| (held.path.as_str(), below)).collect();
        assert_eq!(shown, [("a", 2), ("ab", 0), ("d/e", 0)]);
    }
}
