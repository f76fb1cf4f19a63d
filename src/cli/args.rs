//! Arguments as typed. Nothing is looked up here; each subcommand resolves its own.

use std::ffi::{OsStr, OsString};
use std::os::fd::RawFd;

use anstream::ColorChoice;
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::call::Detail;
use crate::exit;

use super::later::Later;
use super::printer::Format;
use super::style;
use super::{
    agent, approvals, audit, bench, calls, config, doctor, exec, hook, mcp, policy, pool, schema,
    stage, tool, undo,
};

/// Run commands and tools that you do not trust: decided by policy, locked into a sandbox.
#[derive(Debug, Parser)]
#[command(
    name = "runner",
    version,
    styles = style::HELP,
    subcommand_required = true,
    arg_required_else_help = true,
    disable_help_subcommand = true,
    max_term_width = 100,
    after_help = exit_codes(),
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
    /// Print one JSON object instead of text; `--json=full` tells of a call also how it ran
    #[arg(long, global = true, value_name = "FORM", value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "brief")]
    pub json: Option<Json>,
    /// When to colour
    #[arg(long, global = true, value_name = "WHEN", value_enum, default_value_t)]
    pub color: Color,
    /// Write one JSON line with the status to this open descriptor (3 or above) when done
    #[arg(long, global = true, value_name = "N", allow_negative_numbers = true)]
    pub status_fd: Option<RawFd>,
}

/// How much JSON tells.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Json {
    /// What the caller of a call needs to go on
    #[default]
    Brief,
    /// Also protections, limits, phases, usage, and the whole decision
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
    #[command(visible_alias = "tools", after_help = "Without a subcommand the tools are listed.")]
    Tool {
        /// What to do with them.
        #[command(subcommand)]
        command: Option<Later<tool::Command>>,
    },
    /// Look at MCP servers whose tools can be used, and ask them
    #[command(subcommand)]
    Mcp(Later<mcp::Command>),
    /// Look into policies: what is decided, and why
    #[command(subcommand)]
    Policy(Later<policy::Command>),
    /// Look into the configuration: what is set, and by whom
    #[command(subcommand)]
    Config(Later<config::Command>),
    /// Put coding agents behind runner: their shell commands run in its sandbox
    #[command(subcommand)]
    Agent(Later<agent::Command>),
    /// Answer a coding agent that is about to run a command
    Hook(Later<hook::Args>),
    /// Look at what was asked, decided and done
    #[command(after_help = "Without a subcommand the newest calls are listed.")]
    Audit {
        /// Which look.
        #[command(subcommand)]
        command: Option<Later<audit::Command>>,
    },
    /// List questions that wait for an answer, and answers that hold
    Approvals(Later<approvals::List>),
    /// Answer a question with yes
    Approve(Later<approvals::Approve>),
    /// Answer a question with no
    Deny(Later<approvals::Deny>),
    /// Look at the sandboxes that wait for calls, make or end some
    #[command(subcommand)]
    Pool(Later<pool::Command>),
    /// Measure what a call costs here, beside docker, bwrap and node
    Bench(Later<bench::Args>),
    /// Prove by trying that every protection holds on this machine
    Doctor(Later<doctor::Args>),
    /// Look at changes of commands that were held back, apply or discard them
    #[command(subcommand)]
    Stage(Later<stage::Command>),
    /// Take back what a call changed
    Undo(Later<undo::Args>),
    /// Print the JSON Schema of what runner writes or reads
    #[command(after_help = "Without a subcommand the schemas are listed.")]
    Schema {
        /// Which.
        #[command(subcommand)]
        command: Option<Later<schema::Command>>,
    },
    /// Show calls that run now
    Ps,
    /// End a call that runs
    Cancel(Later<calls::Cancel>),
    /// Remove whatever is left of calls that died
    Gc(Later<calls::Gc>),
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

/// The table of exit codes, for the end of `--help`.
fn exit_codes() -> String {
    let strong = style::STRONG;
    let mut text = format!("{strong}Exit codes:{strong:#}\n       the command's own, and:\n");
    for (code, meaning) in exit::TABLE {
        text.push_str(&format!("  {:>3}  {}\n", code.get(), meaning.replace('`', "")));
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
