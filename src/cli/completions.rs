//! `runner completions`: a script that completes runner's subcommands and options in a shell.

use clap::CommandFactory as _;
use clap_complete::{Shell, generate};
use serde_json::json;

use super::args::Cli;
use super::printer::{Format, Printer};
use crate::cli::Error;
use crate::exit::Ending;

/// As typed.
#[derive(Debug, clap::Args)]
#[command(
    after_help = concat!(
        "Write the script to the folder from which your shell loads completions.\n\n",
        "Examples:\n",
        "  runner completions bash > ~/.local/share/bash-completion/completions/runner\n",
        "  runner completions zsh > ~/.zfunc/_runner\n",
        "  runner completions fish > ~/.config/fish/completions/runner.fish",
    )
)]
pub struct Args {
    /// The shell that will load the script
    #[arg(value_name = "SHELL", value_enum)]
    shell: Shell,
}

/// Prints the script.
pub(super) fn run(args: &Args, printer: &mut Printer) -> Result<Ending, Error> {
    let script = script(args.shell);
    match printer.format() {
        Format::Json => {
            printer.json(&json!({ "shell": args.shell.to_string(), "script": script }))?;
        }
        Format::Text => printer.data(script)?,
    }
    Ok(Ending::ok())
}

/// The script of one shell. Hidden subcommands and options are not completed.
fn script(shell: Shell) -> String {
    let mut command = without_hidden(&built());
    let mut script = Vec::new();
    generate(shell, &mut command, "runner", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

/// The definition of the whole command line: parsing a line describes one subcommand only.
pub(super) fn built() -> clap::Command {
    let mut command = Cli::command();
    command.build();
    command
}

/// A name for the rest of this process, which ends when the script is printed: clap keeps no owned names.
fn kept(name: &str) -> &'static str {
    name.to_owned().leak()
}

/// The generators of some shells list hidden entries, so these are taken out before.
fn without_hidden(command: &clap::Command) -> clap::Command {
    let mut shown = clap::Command::new(kept(command.get_name()))
        .disable_help_flag(true)
        .disable_version_flag(true)
        .disable_help_subcommand(true)
        .visible_aliases(command.get_visible_aliases().map(kept))
        .args(command.get_arguments().filter(|arg| !arg.is_hide_set()).cloned())
        .subcommands(command.get_subcommands().filter(|it| !it.is_hide_set()).map(without_hidden));
    if let Some(version) = command.get_version() {
        shown = shown.version(kept(version));
    }
    if let Some(about) = command.get_about() {
        shown = shown.about(about.clone());
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shell_gets_the_whole_tree_without_hidden_entries() {
        for shell in [Shell::Bash, Shell::Elvish, Shell::Fish, Shell::PowerShell, Shell::Zsh] {
            let script = script(shell);
            for word in ["completions", "refresh", "strict-writes", "tools"] {
                assert!(script.contains(word), "{shell}: {word}");
            }
            assert!(!script.contains("stand-in") && !script.contains("man pages"), "{shell}");
        }
    }
}
