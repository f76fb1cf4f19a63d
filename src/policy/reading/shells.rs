//! Programs that run shell text, and programs that start what follows them.
//!
//! The guest executes a line itself where it can stand in for the shell: where it starts that shell, or where a
//! program does that starts its last words as they are. Anywhere else a real shell reads the text.

use super::level::Level;
use crate::effect::Effect;
use crate::grammar::Program;
use crate::plan::{LineOptions, MAX_SHELLS};
use crate::shell::Dialect;
use crate::word::Word;

/// Every program that is known to run text as a shell does, by its name.
#[rustfmt::skip]
const SHELLS: [&str; 25] = [
    "sh", "bash", "dash", "ash", "zsh", "ksh", "ksh93", "rksh", "mksh", "lksh", "oksh", "pdksh", "yash", "posh",
    "rbash", "rzsh", "fish", "csh", "tcsh", "nu", "elvish", "xonsh", "pwsh", "rc", "es",
];

/// Programs that execute their last words unchanged, in the same process group, with their standard streams. Not
/// `busybox`, which looks for an applet, and not those that change the user or the root.
const CARRIERS: [&str; 10] =
    ["chrt", "env", "ionice", "nice", "nohup", "setsid", "stdbuf", "taskset", "time", "timeout"];

/// Who starts a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Starter {
    /// The guest, or a program that starts exactly these words. As many shells may still be within each other.
    Guest { shells: usize },
    /// A program in a way of its own.
    Program,
}

impl Starter {
    /// The guest, with nothing around.
    pub(super) const TOP: Self = Self::Guest { shells: MAX_SHELLS };

    /// What starts the commands of a line whose shell this starts; none if the shell is a real one.
    pub(super) fn within_shell(self) -> Option<Self> {
        match self {
            Self::Guest { shells } => Some(Self::Guest { shells: shells.checked_sub(1)? }),
            Self::Program => None,
        }
    }
}

/// Whether a program of this name, or of a path that ends with it, is a shell.
pub(crate) fn is_shell(program: &str) -> bool {
    SHELLS.contains(&program.rsplit('/').next().unwrap_or_default())
}

/// A command that is not wholly understood and names a shell may start it: then it runs code.
pub(super) fn doubt(level: &mut Level, open: bool) {
    let names = |word: &Word| word.text().map_or(matches!(word, Word::Later(_)), is_shell);
    if !level.complete && (open || level.words.iter().any(names)) {
        level.add(Effect::Code, "it may start a shell, which runs its text");
    }
}

/// Whether the guest can stand in for what this program executes.
pub(super) fn carries(level: &Level) -> bool {
    level.wrapper && CARRIERS.contains(&level.program.as_str())
}

/// The dialect of a shell whose lines the guest can execute.
pub(super) fn dialect(program: &Program, level: &Level) -> Option<Dialect> {
    match program.name.as_str() {
        _ if level.described_by.is_some() => None,
        "sh" => Some(Dialect::Posix),
        "bash" => Some(Dialect::Bash),
        _ => None,
    }
}

/// How a shell with these options runs its line; why the guest cannot do that otherwise.
pub(super) fn options(level: &Level, dialect: Dialect) -> Result<LineOptions, String> {
    let mut options = LineOptions::default();
    for given in &level.options {
        // The value is a word of its own: `-oerrexit` is a run of letters.
        let value = given
            .values
            .first()
            .and_then(Option::as_deref)
            .filter(|value| level.words.iter().any(|word| word.text() == Some(*value)));
        match (given.names[0].as_str(), value) {
            // No start-up file is read by the guest.
            ("-c" | "-l" | "--norc" | "--noprofile", _) => {}
            ("-u", _) | ("-o", Some("nounset")) => options.nounset = true,
            ("-e", _) | ("-o", Some("errexit")) => options.errexit = true,
            ("-o", Some("pipefail")) if dialect == Dialect::Bash => options.pipefail = true,
            _ => return Err(format!("`{}` needs a real shell", given.written)),
        }
    }
    Ok(options)
}
