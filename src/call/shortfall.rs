//! What a sandbox could not give a command that failed: a network, or a file that lies outside it.
//!
//! Such a failure looks like any other: a name that does not resolve, a file that is not found. The notes here say
//! what the sandbox has to do with it. They are made after the call, from what was decided and what was planned.
//! Non-goal: whether the command failed because of it; only the command knows.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use runner_policy::decide::{NO_NETWORK, NO_NETWORK_CODE};
use runner_policy::shell::{self, Part};
use runner_policy::word::quoted;

use super::request::{Command, Decided};
use super::result::ErrorObject;
use crate::audit::Redactor;
use crate::engine::plan::{Image, Note, SandboxPlan};
use crate::sandbox::outcome::{CancelCause, Verdict};

/// What a sandbox with the host's programs shows, and the ways to show it more.
const REMEDY: &str = "the sandbox has the workspace, the system's folders and the toolchains on your PATH; copy it \
                      into the workspace, or name an image that has it";

/// Most paths that are named.
const MAX_NAMED: usize = 3;

/// What the sandbox lacked that the command asked for, if the command failed.
pub(super) fn notes(decided: &Decided, plan: &SandboxPlan, verdict: &Verdict) -> Vec<Note> {
    let by_itself = match verdict {
        Verdict::Failed { .. } | Verdict::Cancelled(CancelCause::BrokerEnded) => true,
        Verdict::Signalled { .. } | Verdict::Timeout | Verdict::Oom | Verdict::Limit(_) => false,
        Verdict::Completed
        | Verdict::Cancelled(_)
        | Verdict::NotFound { .. }
        | Verdict::NotExecutable { .. }
        | Verdict::NoCwd { .. }
        | Verdict::Assumption(_) => return Vec::new(),
    };
    let mut notes = Vec::new();
    if decided.decision.reaches_out {
        let text = format!(
            "the command failed, and {NO_NETWORK}; get what it needs before the call, outside the sandbox"
        );
        notes.push(Note { code: NO_NETWORK_CODE, text });
    }
    if by_itself {
        let named = words(&decided.request.command);
        // Only what is there: a word that begins with a slash can be anything.
        let paths = named.iter().filter_map(|word| outside(plan, word));
        for path in paths.filter(|path| path.symlink_metadata().is_ok()).take(MAX_NAMED) {
            let text = format!("{} is outside the sandbox; {REMEDY}", shown(&path));
            notes.push(Note { code: "outside_sandbox", text });
        }
    }
    notes
}

/// The error of a verdict. Of a program that is not found it says where it is, if that is outside the sandbox. What is
/// on the caller's `PATH` (`path`) is not for a tool to know: it is `None` for a tool's command.
pub(super) fn error(
    plan: &SandboxPlan,
    verdict: &Verdict,
    path: Option<&OsStr>,
) -> Option<ErrorObject> {
    let mut error = ErrorObject::of_verdict(verdict, &plan.limits)?;
    if let Verdict::NotFound { program } = verdict {
        let program = program.as_os().to_string_lossy();
        if let Some(found) = missing(plan, &program, path) {
            error.message = format!("{}; {} is outside it", error.message, shown(&found));
            error.suggestion = Some(REMEDY.to_owned());
        }
    }
    Some(error)
}

/// Where a program is that the sandbox does not have, if that is known.
fn missing(plan: &SandboxPlan, program: &str, path: Option<&OsStr>) -> Option<PathBuf> {
    if program.contains('/') {
        return outside(plan, program);
    }
    let folders = std::env::split_paths(path?).filter(|folder| folder.is_absolute());
    let mut found = folders.map(|folder| folder.join(program));
    found.find(|path| path.is_file()).filter(|path| is_outside(plan, path))
}

/// A path of a command, in which a secret may stand.
fn shown(path: &Path) -> String {
    Redactor::new().text(&quoted(&path.to_string_lossy())).into_owned()
}

/// The path that a word names, if the sandbox does not show it. An option may carry it: `--config=/x`.
fn outside(plan: &SandboxPlan, word: &str) -> Option<PathBuf> {
    let value = match word.split_once('=') {
        Some((option, value)) if option.starts_with('-') => value,
        _ => word,
    };
    if !value.starts_with('/') && !value.starts_with("../") && !value.contains("/../") {
        return None;
    }
    let cwd = plan.cwd.to_str()?;
    let path = PathBuf::from(runner_policy::paths::join(cwd, value));
    is_outside(plan, &path).then_some(path)
}

/// Whether nothing of the sandbox is at or above a path. What an image of its own holds is not known here.
fn is_outside(plan: &SandboxPlan, path: &Path) -> bool {
    const OWN: [&str; 3] = ["/proc", "/dev", "/sys"];
    let shown = plan.targets();
    let scratch = plan.tmpfs.iter().map(|tmpfs| tmpfs.target.as_path());
    let mut seen = shown.chain(scratch).chain(OWN.iter().map(Path::new));
    plan.image == Image::Host && !seen.any(|seen| path.starts_with(seen) || seen.starts_with(path))
}

/// The words of a command that are known before it runs.
fn words(command: &Command) -> Vec<String> {
    match command {
        Command::Argv(argv) => {
            argv.iter().filter_map(|word| word.to_str().map(str::to_owned)).collect()
        }
        Command::Line(line) => {
            let shell::Line::Readable(script) = shell::parse(line) else { return Vec::new() };
            let commands: Vec<_> = script.commands().cloned().collect();
            let words = commands.iter().flat_map(|command| &command.words);
            let known = words.filter_map(|word| match word.parts.as_slice() {
                [Part::Text(text)] => Some(text.clone()),
                _ => None,
            });
            known.collect()
        }
    }
}

#[cfg(test)]
#[path = "shortfall_tests.rs"]
mod tests;
