//! Lazy argument definitions: building those of all subcommands takes longer than parsing a command line.

use clap::builder::Resettable;
use clap::error::Error;
use clap::{ArgMatches, Args, Command, FromArgMatches, Subcommand};

/// The arguments or subcommands of one subcommand. They are built only if that subcommand is parsed, or by
/// `clap::Command::build`, as completions and man pages need.
#[derive(Debug)]
pub struct Later<T>(pub T);

/// Keeps the description that the list of subcommands has: the definition of the arguments would replace it.
fn told_already(command: Command, describe: impl FnOnce(Command) -> Command) -> Command {
    let about = Resettable::from(command.get_about().cloned());
    let long = Resettable::from(command.get_long_about().cloned());
    describe(command).about(about).long_about(long)
}

impl<T: FromArgMatches> FromArgMatches for Later<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        T::from_arg_matches(matches).map(Self)
    }

    fn from_arg_matches_mut(matches: &mut ArgMatches) -> Result<Self, Error> {
        T::from_arg_matches_mut(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.0.update_from_arg_matches(matches)
    }
}

impl<T: Args> Args for Later<T> {
    fn augment_args(command: Command) -> Command {
        command.defer(|command| told_already(command, T::augment_args))
    }

    fn augment_args_for_update(command: Command) -> Command {
        command.defer(|command| told_already(command, T::augment_args_for_update))
    }
}

impl<T: Subcommand> Subcommand for Later<T> {
    fn augment_subcommands(command: Command) -> Command {
        command.defer(|command| told_already(command, T::augment_subcommands))
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        command.defer(|command| told_already(command, T::augment_subcommands_for_update))
    }

    fn has_subcommand(name: &str) -> bool {
        T::has_subcommand(name)
    }
}
