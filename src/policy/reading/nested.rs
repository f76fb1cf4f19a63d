//! What a command executes: commands and lines inside it, each read as a level of its own, and whether the guest
//! executes a line itself.

use super::level::{Level, Reading, read_level};
use super::line::read_into;
use super::roles::Nested;
use super::shells::{self, Starter};
use super::{Place, Refusal, Scope};
use crate::effect::{Class, Effect};
use crate::grammar::Program;
use crate::plan::{Inner, LineOptions};
use crate::shell::Dialect;

/// How a command executes what is inside it.
#[derive(Debug, Clone, Copy)]
pub(super) enum Runs {
    /// It is a shell; the guest executes its line instead, and starts the commands in it.
    Line(LineOptions, Starter),
    /// In its own way: a line in it is for a real shell.
    Itself,
}

/// How this program executes what is inside it. Where a real shell gets text, the level gets the effect `code`.
pub(super) fn runs(
    program: &Program,
    level: &mut Level,
    nested: &[Nested],
    starter: Starter,
) -> Runs {
    let dialect = shells::dialect(program, level);
    let has_text = nested.iter().any(|nested| matches!(nested, Nested::Line(..)));
    let why = match dialect {
        Some(dialect) => match planned(level, nested, starter, dialect) {
            Ok((options, within)) => return Runs::Line(options, within),
            Err(_) if asks_nothing(level) => return Runs::Itself,
            Err(why) => why,
        },
        None if has_text => format!("`{}` has a real shell run its text", level.program),
        None => return Runs::Itself,
    };
    if !level.classes().contains(Class::Code) {
        level.add(Effect::Code, why);
    }
    Runs::Itself
}

/// The options of a shell's one line and who starts what is in it; why the guest cannot execute it otherwise.
fn planned(
    level: &Level,
    nested: &[Nested],
    starter: Starter,
    dialect: Dialect,
) -> Result<(LineOptions, Starter), String> {
    let real = || format!("a real `{}` runs its text", level.program);
    let within = starter.within_shell().ok_or_else(real)?;
    let options = shells::options(level, dialect)?;
    match nested {
        // `sh -c +e LINE`, `sh -c - LINE`: it is an option all the same, and the line follows.
        [Nested::Line(text, ..)] if text.starts_with(['-', '+']) => Err(real()),
        [Nested::Line(..)] if level.complete => Ok((options, within)),
        _ => Err(real()),
    }
}

/// `bash --version`: it only tells of itself.
fn asks_nothing(level: &Level) -> bool {
    let tells = |name: &String| matches!(name.as_str(), "--help" | "--version");
    level.complete
        && level.operands.is_empty()
        && level.options.iter().any(|given| given.names.iter().any(tells))
}

/// Reads what a command executes. Gives the line that its last words are, if the guest executes one.
pub(super) fn read(
    level: usize,
    nested: Vec<Nested>,
    runs: Runs,
    place: Place<'_>,
    scope: &Scope<'_>,
    reading: &mut Reading,
) -> Result<Option<Inner>, Refusal> {
    let outer = &reading.levels[level];
    let dialect = if outer.program == "bash" { Dialect::Bash } else { Dialect::Posix };
    // Where its words end, if it starts the others unchanged.
    let carried = match nested.as_slice() {
        [Nested::Words(words, ..)] if shells::carries(outer) && outer.words.ends_with(words) => {
            Some(outer.words.len() - words.len())
        }
        _ => None,
    };
    let depth = outer.depth + 1;
    let mut inner = None;
    for nested in nested {
        match nested {
            Nested::Words(words, cwd, env) => {
                // `env -C DIR sh -c LINE`: where `..` leads from there is for a real shell to say.
                let stays = cwd == place.cwd;
                let carried = carried.filter(|_| stays);
                let starter = carried.map_or(Starter::Program, |_| place.starter);
                let place = Place { cwd: &cwd, env: &env, depth, starter };
                let line = read_level(&words, place, scope, reading)?;
                inner = carried.and_then(|words| Some(line?.behind(words)));
            }
            Nested::Line(text, cwd, env) => {
                let (options, starter) = match runs {
                    Runs::Line(options, starter) => (Some(options), starter),
                    Runs::Itself => (None, Starter::Program),
                };
                let place = Place { cwd: &cwd, env: &env, depth, starter };
                let line = read_into(&text, dialect, place, scope, reading)?;
                inner = options.and_then(|options| Some(Inner::new(line?.with(options))));
            }
        }
    }
    Ok(inner)
}
