//! Files and programs of the host that a sandbox does not show.
//!
//! They are known from the words of the command and from the plan. Non-goal: what an image of its own holds.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use runner_policy::shell::{self, Part};
use runner_policy::word::quoted;

use super::evidence;
use crate::audit::Redactor;
use crate::call::request::Command;
use crate::call::result::ErrorObject;
use crate::engine::plan::{Image, SandboxPlan};
use crate::sandbox::outcome::Verdict;

/// What a sandbox with the host's programs shows, and the ways to show it more.
pub(super) const REMEDY: &str = "the sandbox has the workspace, the system's folders and the toolchains on your PATH; copy it \
     into the workspace, or name an image that has it";

/// The error of a verdict. Of a program that is not found it says where it is, if that is outside the sandbox. What is
/// on the caller's `PATH` (`path`) is not for a tool to know: it is `None` for a tool's command.
pub(in crate::call) fn error(
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
pub(super) fn missing(plan: &SandboxPlan, program: &str, path: Option<&OsStr>) -> Option<PathBuf> {
    if program.contains('/') {
        return outside(plan, program);
    }
    let folders = std::env::split_paths(path?).filter(|folder| folder.is_absolute());
    let mut found = folders.map(|folder| folder.join(program));
    found.find(|path| path.is_file()).filter(|path| is_outside(plan, path))
}

/// A path of a command, in which a secret may stand.
pub(super) fn shown(path: &Path) -> String {
    Redactor::new().text(&quoted(&path.to_string_lossy())).into_owned()
}

/// The path that a word names, if the sandbox does not show it. An option may carry it: `--config=/x`.
pub(super) fn outside(plan: &SandboxPlan, word: &str) -> Option<PathBuf> {
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
pub(super) fn is_outside(plan: &SandboxPlan, path: &Path) -> bool {
    const OWN: [&str; 3] = ["/proc", "/dev", "/sys"];
    let shown = plan.targets();
    let scratch = plan.tmpfs.iter().map(|tmpfs| tmpfs.target.as_path());
    let mut seen = shown.chain(scratch).chain(OWN.iter().map(Path::new));
    plan.image == Image::Host && !seen.any(|seen| path.starts_with(seen) || seen.starts_with(path))
}

/// The words of a command that are known before it runs; of a line that is not read, whatever may be one.
pub(super) fn words(command: &Command) -> Vec<String> {
    match command {
        Command::Argv(argv) => {
            argv.iter().filter_map(|word| word.to_str().map(str::to_owned)).collect()
        }
        Command::Line(line) => {
            let shell::Line::Readable(script) = shell::parse(line) else {
                return evidence::words(line).map(str::to_owned).collect();
            };
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
#[path = "outside_tests.rs"]
mod tests;
