//! A line with variables, conditions and loops: executed from the plan, in a process of its own.
//!
//! Duty: do what bash would do with the line that the host judged. It recurses as deep as the plan is nested, which the
//! host bounds, and a loop ends with the call's limits at the latest. Words are expanded here, and held to what the host
//! assumed of them before anything is started with them: [`Broken`] ends the whole line. Non-goals: reading text. No
//! byte that a variable, a file or a command brings is ever read as syntax.
//!
//! Trust boundary: the process has no key. It is undumpable while others run, because what it tells the guest (which
//! programs ran, and why the line ended) is its own.
//!
//! Subshells, parts of pipelines and `$(…)` are copies of this process, made by fork.

mod condition;
mod expand;
mod run;
mod start;
mod variables;

pub use run::run;

use crate::program::Teller;
use crate::stage::Env;
use runner_wire::{Broken, Bytes, Programs, Script, Why};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Why the commands that would follow do not run.
enum Leave {
    /// `break`, of so many loops.
    Break(u32),
    /// `continue`, of the loop so many further out.
    Continue(u32),
    /// The shell ends, with its status.
    Exit,
    /// A word is not what was assumed.
    Broken(Broken),
}

/// The state of a line.
struct Shell {
    script: Rc<Script>,
    /// The environment of commands.
    env: Env,
    /// Variables that commands do not see.
    variables: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Variables that will be in the environment as soon as they have a value.
    marked: BTreeSet<Vec<u8>>,
    /// The folder, as it was entered: links are not resolved.
    folder: Vec<u8>,
    status: u8,
    errexit: bool,
    pipefail: bool,
    nounset: bool,
    /// Conditions around, in which a failure is an answer.
    tested: u32,
    /// Loops around, in this shell.
    loops: u32,
    /// Whether `$(…)` ran in the words of this command: its status may be that of the command.
    substituted: bool,
    programs: Programs,
    /// To the guest; none in a copy of this process.
    ear: Option<Teller>,
}

fn broken(word: &[u8], why: Why) -> Leave {
    let word = Bytes(word.iter().copied().take(runner_wire::BROKEN_MAX).collect());
    Leave::Broken(Broken { word, why })
}
