//! What `runner` without a subcommand shows: the first commands to try.

/// The error's text.
pub(super) const TEXT: &str = "\
a subcommand is missing

Start here:
  runner doctor                              test that every protection holds on this machine
  runner exec -- git log --oneline           run a command that reads
  runner policy explain -- npm test          see what the policy decides, and why
  runner exec --policy develop -- npm test   run the project's own code
  runner tool list                           list tools that can be used here

`runner --help` lists all subcommands; `runner SUBCOMMAND --help` shows examples.";
