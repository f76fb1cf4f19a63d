//! Arguments as typed. Nothing is looked up here; each subcommand resolves its own.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::os::fd::RawFd;

use anstream::ColorChoice;
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::call::Detail;
use crate::exit;

use super::later::Later;
use super::printer::Format;
use super::style;
use super::{
    agent, approvals, audit, bench, calls, completions, config, doctor, exec, hook, man, mcp,
    policy, pool, schema, stage, tool, undo,
};

/// Run untrusted commands and tools: a policy decides, a fresh sandbox confines each call.
#[derive(Debug, Parser)]
#[command(
    name = "runner",
    version,
    styles = style::HELP,
    subcommand_required = true,
    arg_required_else_help = true,
    disable_help_subcommand = true,
    max_term_width = 100,
    after_help = after_help(),
)]
pub struct Cli {
    /// What applies to every subcommand.
    #[command(flatten)]
    pub global: Global,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Options that every subcommand takes.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Output")]
pub struct Global {
    /// Print one JSON object instead of text; `--json=full` adds how a call ran
    #[arg(long, global = true, value_name = "FORM", value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "brief")]
    pub json: Option<Json>,
    /// When to use colours
    #[arg(long, global = true, value_name = "WHEN", value_enum, default_value_t)]
    pub color: Color,
    /// At the end, write the status as one line of JSON to this open file descriptor (3 or above)
    #[arg(long, global = true, value_name = "N", allow_negative_numbers = true)]
    pub status_fd: Option<RawFd>,
}

/// How much JSON tells.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Json {
    /// The result
    #[default]
    Brief,
    /// Also the protections, limits, phases, usage and the whole decision
    Full,
}

/// When to colour.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR or CLICOLOR=0 is set
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a command or a shell line in a sandbox
    Exec(Later<exec::Args>),
    /// Find, make, check and run tools
    #[command(visible_alias = "tools")]
    Tool {
        /// What to do with them.
        #[command(subcommand)]
        command: Option<Later<tool::Command>>,
    },
    /// Serve MCP clients; list MCP servers and ask them for their tools
    #[command(subcommand)]
    Mcp(Later<mcp::Command>),
    /// Explain, check, list and trust policies
    #[command(subcommand)]
    Policy(Later<policy::Command>),
    /// Show and check the configuration
    #[command(subcommand)]
    Config(Later<config::Command>),
    /// Put coding agents behind runner: their shell commands run in its sandbox
    #[command(subcommand)]
    Agent(Later<agent::Command>),
    /// Answer a coding agent that is about to run a command
    Hook(Later<hook::Args>),
    /// Show, verify and export the records of all calls
    Audit {
        /// Which look.
        #[command(subcommand)]
        command: Option<Later<audit::Command>>,
    },
    /// List questions that wait for an answer, and approvals in force
    Approvals(Later<approvals::List>),
    /// Approve a call that a policy asks about
    Approve(Later<approvals::Approve>),
    /// Deny a call that a policy asks about
    Deny(Later<approvals::Deny>),
    /// Show, make and remove waiting sandboxes
    #[command(subcommand)]
    Pool(Later<pool::Command>),
    /// Measure what a call costs here, compared with docker, bwrap and node
    Bench(Later<bench::Args>),
    /// Test on this machine that every protection holds
    Doctor(Later<doctor::Args>),
    /// Show, apply or discard changes that were held back
    #[command(subcommand)]
    Stage(Later<stage::Command>),
    /// Restore the files that a call changed
    Undo(Later<undo::Args>),
    /// Print the JSON Schemas of results and configuration
    Schema {
        /// Which.
        #[command(subcommand)]
        command: Option<Later<schema::Command>>,
    },
    /// List the calls that are running
    #[command(
        after_help = concat!(
            "Examples:\n",
            "  runner ps\n",
            "  runner ps --json | jq -r '.calls[].call'",
        )
    )]
    Ps,
    /// End a running call
    Cancel(Later<calls::Cancel>),
    /// Remove what is left of calls whose process was killed
    Gc(Later<calls::Gc>),
    /// Print a script that completes runner's command line in a shell
    Completions(Later<completions::Args>),
    /// Write the man pages into a folder
    #[command(hide = true)]
    Man(Later<man::Args>),
}

impl Global {
    /// The format of results.
    #[must_use]
    pub fn format(&self) -> Format {
        if self.json.is_some() { Format::Json } else { Format::Text }
    }

    /// How much JSON tells of a call.
    #[must_use]
    pub fn detail(&self) -> Detail {
        match self.json {
            Some(Json::Full) => Detail::Full,
            Some(Json::Brief) | None => Detail::Brief,
        }
    }

    /// For [`Printer`](super::Printer).
    #[must_use]
    pub fn color_choice(&self) -> ColorChoice {
        match self.color {
            Color::Auto => ColorChoice::Auto,
            Color::Always => ColorChoice::Always,
            Color::Never => ColorChoice::Never,
        }
    }

    /// What can be told from a command line that could not be read, so that its error arrives in
    /// the form the caller waits for.
    #[must_use]
    pub fn glimpse(words: &[OsString]) -> Self {
        let mut seen = Self::default();
        let mut ours = words
            .iter()
            .map(|word| word.to_str().unwrap_or_default())
            .take_while(|word| *word != "--");
        while let Some(word) = ours.next() {
            let (name, value) = match word.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (word, None),
            };
            match name {
                "--json" => {
                    let form = value.and_then(|form| Json::from_str(form, false).ok());
                    seen.json = Some(form.unwrap_or_default());
                }
                "--color" => {
                    let value = value.or_else(|| ours.next()).unwrap_or_default();
                    seen.color = Color::from_str(value, false).unwrap_or_default();
                }
                "--status-fd" => {
                    seen.status_fd = value.or_else(|| ours.next()).and_then(|fd| fd.parse().ok())
                }
                _ => {}
            }
        }
        seen
    }
}

/// Examples and the table of exit codes, for the end of `--help`.
fn after_help() -> String {
    let strong = style::STRONG;
    let mut text = format!(
        "{strong}Examples:{strong:#}\n  runner exec -- git log --oneline\n  runner policy explain -- git \
         push\n\n{strong}Exit codes:{strong:#}\n       the command's own, and:\n"
    );
    for (code, meaning) in exit::TABLE {
        // Every start makes this text, so without a string for each row. A string takes all that is written to it.
        let _ = write!(text, "  {:>3}  ", code.get());
        text.extend(meaning.split('`'));
        text.push('\n');
    }
    text.push_str(
        "\nA command may return these numbers itself; --json and --status-fd tell them apart.",
    );
    text
}

/// The words after the program's name, up to the first `--`, that are not options.
pub(super) fn plain_words(words: &[OsString]) -> impl Iterator<Item = &OsStr> {
    words
        .iter()
        .skip(1)
        .map(OsString::as_os_str)
        .take_while(|word| *word != "--")
        .filter(|word| !word.as_encoded_bytes().starts_with(b"-"))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_glimpse_reads_our_own_options_only() {
        let words = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
        let seen = Global::glimpse(&words("runner --color=never polcy --json --status-fd 7"));
        assert!(seen.json.is_some() && seen.color == Color::Never && seen.status_fd == Some(7));
        let seen = Global::glimpse(&words("runner polcy -- ls --json"));
        assert!(seen.json.is_none());
        let seen = Global::glimpse(&words("runner --json=full polcy"));
        assert_eq!(seen.detail(), Detail::Full);
    }
}
