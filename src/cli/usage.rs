//! Wrong usage, and the right form.

use std::ffi::{OsStr, OsString};

use clap::error::{ContextKind, ErrorKind};
use clap::{CommandFactory as _, Parser as _};

use crate::codes::Code;
use crate::error::{Failure, Fault};
use crate::exit::Kind;
use crate::sys::StatusFdError;

use super::args::{Cli, plain_words};
use super::first_steps;
use super::visible::visible;

/// The command line is wrong.
#[derive(Debug, thiserror::Error)]
pub enum UsageError {
    /// It does not fit the definition.
    #[error("{message}")]
    Unreadable {
        /// What the parser says, with the usage line.
        message: String,
        /// The right form, where it can be guessed.
        hint: Option<String>,
    },
    /// The catalog has no such program or subcommand.
    #[error("the catalog does not know {name}")]
    NotInCatalog {
        /// What was asked for.
        name: String,
        /// What may be meant.
        near: Option<String>,
    },
    /// A word is not UTF-8, so no policy can judge it.
    #[error("{0:?} is not UTF-8, so no policy can judge it")]
    NotText(String),
    /// The value of an option is wrong.
    #[error("{option}: {why}")]
    Option {
        /// The option.
        option: String,
        /// What is wrong with it, and the right form.
        why: String,
    },
    /// The descriptor of `--status-fd` cannot be used.
    #[error("--status-fd: {0}")]
    StatusFd(StatusFdError),
}

impl UsageError {
    /// From the parser's own error and the words it was given.
    #[must_use]
    pub fn from_clap(error: &clap::Error, words: &[OsString]) -> Self {
        // The parser drops escape sequences from what it quotes. A word that hides something should
        // be seen, so the message is made from the visible form.
        let shown = words.iter().map(|word| visible(&word.to_string_lossy()).into_owned());
        let rendered = match Cli::try_parse_from(shown) {
            Err(same) if same.kind() == error.kind() => same.render().to_string(),
            _ => error.render().to_string(),
        };
        let message = match error.kind() {
            ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
                match plain_words(words).next() {
                    None => first_steps::TEXT.to_owned(),
                    Some(_) => {
                        format!("a subcommand or an argument is missing\n\n{}", rendered.trim_end())
                    }
                }
            }
            _ => rendered.strip_prefix("error: ").unwrap_or(&rendered).trim_end().to_owned(),
        };
        Self::Unreadable { message, hint: right_form(error, words) }
    }
}

/// `runner npm test` was meant as `runner exec -- npm test`.
fn right_form(error: &clap::Error, words: &[OsString]) -> Option<String> {
    let guessed = error.get(ContextKind::SuggestedSubcommand).is_some();
    if error.kind() != ErrorKind::InvalidSubcommand || guessed {
        return None;
    }
    let cli = Cli::command();
    let exec = cli.find_subcommand("exec")?;
    let first = plain_words(words).next()?;
    if cli.get_subcommands().any(|known| OsStr::new(known.get_name()) == first) {
        return None;
    }
    let at = words.iter().position(|word| word == first)?;
    let command = words[at..]
        .iter()
        .map(|word| quoted(&word.to_string_lossy()))
        .collect::<Vec<_>>()
        .join(" ");
    Some(format!("to run a command: runner {} -- {command}", exec.get_name()))
}

/// A word as a shell would need it.
pub(super) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

impl Failure for UsageError {
    fn code(&self) -> Code {
        Code::Usage
    }

    fn kind(&self) -> Kind {
        Kind::Usage
    }

    fn fault(&self) -> Fault {
        Fault::Usage
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Unreadable { hint, .. } => hint.clone(),
            Self::NotInCatalog { near, .. } => Some(match near {
                Some(near) => format!("did you mean {near}?"),
                None => "runner policy catalog lists what it knows".to_owned(),
            }),
            Self::NotText(_) | Self::Option { .. } => None,
            Self::StatusFd(_) => {
                Some("open one for it: runner --status-fd 3 … 3>status.json".to_owned())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn words_are_quoted_as_a_shell_needs() {
        assert_eq!(quoted("a/b-c.d=1"), "a/b-c.d=1");
        assert_eq!(quoted(""), "''");
        assert_eq!(quoted("it's $HOME"), r"'it'\''s $HOME'");
    }
}
