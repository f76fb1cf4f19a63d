//! Asking the policy about a path below the workspace.

use std::path::Path;

use jiff::Timestamp;
use runner_policy::{Code as Why, Query, Verdict, What, decide, may};

use super::Files;
use crate::broker::{Code, Refusal};
use crate::sandbox::protected::{self, Guard};

impl Files {
    /// The absolute path of one below the workspace.
    pub(super) fn absolute(&self, relative: &str) -> String {
        if relative == "." { self.root.clone() } else { format!("{}/{relative}", self.root) }
    }

    /// Whether it may be read.
    pub(super) fn may_read(&self, relative: &str) -> Result<(), Refusal> {
        self.ask(relative, &self.absolute(relative), false)
    }

    /// Whether it may be written, removed, renamed or replaced.
    pub(super) fn may_write(&self, relative: &str) -> Result<(), Refusal> {
        if self.is_protected(relative) {
            let message = format!("{relative} is never writable, whatever a policy says");
            return Err(Refusal::new(Code::ProtectedPath, message)
                .at(relative)
                .hint("write to another path"));
        }
        self.ask(relative, &self.absolute(relative), true)
    }

    /// Whether its being there may be known: to whoever may read it or write it.
    pub(super) fn may_see(&self, relative: &str) -> Result<(), Refusal> {
        self.may_read(relative).or_else(|refusal| self.may_write(relative).map_err(|_| refusal))
    }

    /// Whether an entry may be moved: written in both places, and not made readable by its new name.
    pub(super) fn may_move(&self, from: &str, to: &str) -> Result<(), Refusal> {
        self.may_write(from)?;
        self.may_write(to)?;
        match self.may_read(from) {
            Err(refusal) if self.may_read(to).is_ok() => Err(refusal),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    fn ask(&self, relative: &str, absolute: &str, write: bool) -> Result<(), Refusal> {
        // The short question first: most answers are yes, and need no words.
        if may(&self.policy, &self.root, absolute, write) {
            return Ok(());
        }
        let what = if write { What::Write(absolute) } else { What::Read(absolute) };
        let query = Query { workspace: &self.root, cwd: &self.root, now: Timestamp::now(), what };
        let decision = decide(&self.policy, &query);
        if decision.decision == Verdict::Allow {
            // Both questions ask the same lists. If they ever differ, the stricter one counts.
            let message = format!("the policy does not allow {relative}");
            return Err(Refusal::new(Code::AccessDenied, message).at(relative));
        }
        let (code, hint) = match decision.code {
            Why::ProtectedPath => (Code::ProtectedPath, Some("write to another path")),
            Why::PathOutside => (Code::PathEscape, None),
            Why::PathNotReadable => (
                Code::AccessDenied,
                Some("`files.read` of the policy and of the tool must hold it"),
            ),
            Why::PathNotWritable => (
                Code::AccessDenied,
                Some("`files.write` of the policy and of the tool must hold it"),
            ),
            _ => (Code::AccessDenied, None),
        };
        let mut refusal = Refusal::of_decision(code, &decision).at(relative);
        refusal.suggestion = hint.map(str::to_owned);
        Err(refusal)
    }

    /// What nobody may write: by its name, in any case of letters, or because it is what an existing git
    /// folder of any name runs or is led by.
    fn is_protected(&self, relative: &str) -> bool {
        let path = Path::new(relative);
        protected::guard(path) != Guard::Open
            // Some file systems do not tell `.GIT` from `.git`.
            || protected::guard(Path::new(&relative.to_ascii_lowercase())) != Guard::Open
            || self.is_led_by(path)
    }

    fn is_led_by(&self, path: &Path) -> bool {
        path.ancestors().skip(1).any(|folder| {
            let Ok(below) = path.strip_prefix(folder) else { return false };
            protected::guard_in_git(below) == Guard::ReadOnly
                && ["HEAD", "objects", "refs"]
                    .iter()
                    .all(|name| self.workspace.open(&folder.join(name)).is_ok())
        })
    }
}
