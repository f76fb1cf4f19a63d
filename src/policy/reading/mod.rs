//! Reading: from a command's words to what it does, level by level.
//!
//! A level is one command: the one that was typed, or one that a wrapper executes. The reading
//! never guesses: what the grammar does not list becomes [`Effect::Unknown`](crate::effect::Effect).
//! Trust boundary: the words are the adversary's; count, size and depth are bounded, and whatever is
//! over a bound is a [`Refusal`], never a shorter reading.

mod args;
mod awk;
mod jq;
mod level;
mod line;
mod mode;
mod nested;
mod roles;
mod sed;
mod shells;
mod values;
mod worst;

pub use level::{Arg, Given, Level, Reading, Standing};
pub use line::read_line;
pub(crate) use shells::is_shell;

use std::sync::Arc;

use crate::catalog;
use crate::grammar::Program;
use crate::model::Policy;
use crate::plan::Plan;
use crate::word::Word;

/// Most words of one command. Linux takes more; nobody types more.
pub const MAX_WORDS: usize = 16_384;
/// Most bytes of one command.
pub const MAX_BYTES: usize = 256 * 1024;
/// Deepest nesting of commands in commands.
pub const MAX_DEPTH: usize = 64;
/// Most levels of one reading. A line in a line can be in several folders, and those multiply.
pub const MAX_LEVELS: usize = 20_000;

/// Why a command is not read at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// No word at all.
    Empty,
    /// A NUL byte, which no argument can carry.
    Nul,
    /// Over [`MAX_WORDS`], [`MAX_BYTES`] or [`MAX_LEVELS`].
    TooLarge,
    /// Over [`MAX_DEPTH`].
    TooDeep,
}

/// Where a command runs, and which policies may describe programs besides the catalog.
#[derive(Debug, Clone, Copy)]
pub struct Scope<'a> {
    /// The folder it runs in; absolute.
    pub cwd: &'a str,
    /// Policies whose `programs:` are known.
    pub layers: &'a [Arc<Policy>],
}

impl<'a> Scope<'a> {
    /// The grammar of a program by the exact name it was called by, and the layer that describes it.
    /// The catalog wins: a policy cannot redefine it.
    fn lookup(&self, name: &str) -> Option<(&'a Program, Option<usize>)> {
        if let Some(program) = catalog::lookup(name) {
            return Some((program, None));
        }
        self.layers.iter().enumerate().find_map(|(index, layer)| {
            let program = layer.programs.iter().find(|program| program.name == name)?;
            Some((program, Some(index)))
        })
    }
}

/// Reads one command.
///
/// # Errors
/// The command is empty, too large, too deep, or has a NUL byte.
pub fn read(argv: &[Vec<u8>], scope: Scope<'_>) -> Result<Reading, Refusal> {
    let words: Vec<Word> = argv.iter().map(|argument| word(argument)).collect();
    check_size(&words)?;
    let mut reading = Reading::default();
    let place = Place { cwd: scope.cwd, env: &[], depth: 0, starter: shells::Starter::TOP };
    let inner = level::read_level(&words, place, &scope, &mut reading)?;
    reading.plan = Some(Plan::argv(argv, inner));
    Ok(reading)
}

/// An argument as far as it is text: one that is not begins as far as it is.
fn word(argument: &[u8]) -> Word {
    match std::str::from_utf8(argument) {
        Ok(text) => Word::lit(text),
        Err(error) => {
            let valid = &argument[..error.valid_up_to()];
            Word::Starts(String::from_utf8_lossy(valid).into_owned())
        }
    }
}

/// Where a command stands.
#[derive(Debug, Clone, Copy)]
struct Place<'a> {
    /// The folder it runs in.
    cwd: &'a str,
    /// Names of variables that are set for it.
    env: &'a [String],
    /// How deep it is nested.
    depth: usize,
    /// Who starts it.
    starter: shells::Starter,
}

fn check_size(words: &[Word]) -> Result<(), Refusal> {
    if words.is_empty() {
        return Err(Refusal::Empty);
    }
    let bytes: usize = words.iter().map(|word| word.text().map_or(1, str::len) + 1).sum();
    if words.len() > MAX_WORDS || bytes > MAX_BYTES {
        return Err(Refusal::TooLarge);
    }
    if words.iter().filter_map(Word::text).any(|text| text.contains('\0')) {
        return Err(Refusal::Nul);
    }
    Ok(())
}
