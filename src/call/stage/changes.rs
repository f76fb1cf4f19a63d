//! What came of a call's changes, as its result and its record tell it.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::stage::apply::{Applied, Counts};
use crate::stage::change::{Held, Why};

/// Most held changes that a result names; `runner stage show` has all.
const NAMED_MAX: usize = 50;

/// What came of the changes of a writing call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Changes {
    /// What the host has now.
    pub applied: AppliedCounts,
    /// What it does not have; the first of them.
    pub held: Vec<HeldChange>,
    /// How many there are.
    pub held_count: usize,
    /// The call under which `runner stage` finds what was held back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stage: Option<String>,
    /// Whether `runner undo` can take back what was applied.
    pub undo: bool,
}

/// What was applied, by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct AppliedCounts {
    /// New files and symlinks.
    pub created: u64,
    /// Files and symlinks with another content.
    pub changed: u64,
    /// Files, symlinks and folders that went.
    pub removed: u64,
    /// Folders that were made, or have other permissions.
    pub folders: u64,
    /// Bytes of all files that came.
    pub bytes: u64,
}

/// A change that was held back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HeldChange {
    /// Below the workspace; absolute for a git folder outside of it.
    pub path: String,
    /// The reason by kind.
    pub why: Why,
    /// The reason in words.
    pub reason: String,
    /// The rule that decided.
    pub rule: String,
    /// What the caller can do.
    pub next: String,
}

impl HeldChange {
    /// A change that was held back at this path.
    #[must_use]
    pub fn new(path: &Path, held: &Held) -> Self {
        let Held { why, reason, rule, next } = held.clone();
        Self { path: path.to_string_lossy().into_owned(), why, reason, rule, next }
    }
}

impl From<Counts> for AppliedCounts {
    fn from(counts: Counts) -> Self {
        let Counts { created, changed, removed, folders, bytes } = counts;
        Self { created, changed, removed, folders, bytes }
    }
}

impl Changes {
    /// What an apply came to. `roots` are the folders that it was about; the first is the workspace.
    #[must_use]
    pub fn of(applied: Applied, call: &str, roots: &[PathBuf]) -> Self {
        let held_count = applied.held.len();
        let name = |(root, path, held): &(usize, PathBuf, Held)| {
            let shown = match (root, roots.get(*root)) {
                (0, _) | (_, None) => path.clone(),
                (_, Some(outside)) => outside.join(path),
            };
            HeldChange::new(&shown, held)
        };
        Self {
            applied: applied.counts.into(),
            held: applied.held.iter().take(NAMED_MAX).map(name).collect(),
            held_count,
            stage: (held_count > 0).then(|| call.to_owned()),
            undo: applied.undo,
        }
    }

    /// One line for people about what was held back.
    #[must_use]
    pub fn held_line(&self) -> Option<String> {
        let (first, stage) = (self.held.first()?, self.stage.as_deref()?);
        let held = match self.held_count {
            1 => "1 change was held back".to_owned(),
            more => format!("{more} changes were held back; the first"),
        };
        Some(format!("{held}: {}: {} (runner stage show {stage})", first.path, first.reason))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(path: &str) -> (usize, PathBuf, Held) {
        let held = Held {
            why: Why::RunsOnHost,
            reason: "git runs it".to_owned(),
            rule: "built-in/never".to_owned(),
            next: "leave it".to_owned(),
        };
        (0, path.into(), held)
    }

    #[test]
    fn a_line_names_the_first_change_and_counts_the_rest() {
        let of = |held: Vec<(usize, PathBuf, Held)>| {
            let applied = Applied { counts: Counts::default(), held, undo: true };
            Changes::of(applied, "c1", &[PathBuf::from("/w")])
        };
        assert_eq!(of(Vec::new()).held_line(), None);
        assert_eq!(
            of(vec![held(".git/hooks/x")]).held_line().unwrap(),
            "1 change was held back: .git/hooks/x: git runs it (runner stage show c1)"
        );
        let many = of((0..60).map(|at| held(&format!("f{at}"))).collect());
        assert_eq!((many.held.len(), many.held_count), (NAMED_MAX, 60));
        assert_eq!(
            many.held_line().unwrap(),
            "60 changes were held back; the first: f0: git runs it (runner stage show c1)"
        );
    }
}
