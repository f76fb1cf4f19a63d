//! `--engine`: which engine makes the sandboxes of a command.

use clap::builder::{PossibleValuesParser, TypedValueParser};

use crate::engine::Choice;

/// Reads the value of `--engine`. A word that names no engine of this program is refused with a list of those that do.
pub(super) fn choice() -> impl TypedValueParser<Value = Choice> {
    PossibleValuesParser::new(Choice::WORDS).try_map(|word| word.parse::<Choice>())
}
