//! Stages as commands leave them, for tests.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use runner_policy::model::Writes as When;
use runner_policy::{Origin, PolicySet, Source, parse};

use super::settle::{Seen, Settling};
use crate::call::launch::outcome::Stillness;
use crate::config::Config;
use crate::ids::CallId;
use crate::sandbox::outcome::Verdict as Ended;
use crate::stage::change::{RootKind, Why};
use crate::stage::folder::{Root, Stage};

/// A workspace and a state folder.
pub(super) struct Case {
    _dir: tempfile::TempDir,
    pub state: PathBuf,
    pub root: PathBuf,
}

impl Case {
    pub(super) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        let root = top.join("work");
        fs::create_dir(&root).unwrap();
        Self { state: top.join("state"), root, _dir: dir }
    }

    /// Writes a file of the host.
    pub(super) fn write(&self, path: &str, content: &str) {
        write(&self.root.join(path), content);
    }

    pub(super) fn has(&self, path: &str) -> bool {
        self.root.join(path).symlink_metadata().is_ok()
    }

    /// The stage of a call that made these files.
    pub(super) fn stage(&self, files: &[(&str, &str)]) -> Stage {
        let roots = vec![Root::of(&self.root, RootKind::Workspace).unwrap()];
        let label = CallId::fresh().unwrap();
        let mut stage = Stage::make(&self.state, &label, roots).unwrap();
        stage.claim(&label).unwrap();
        for (path, content) in files {
            write(&stage.upper(0).join(path), content);
        }
        stage
    }

    /// By a policy that lets this be written.
    pub(super) fn settling(&self, write: &str, when: When) -> Settling {
        let text = format!(
            "policy: 1\nname: t\nfiles:\n  read: [\"**\"]\n  write: [\"{write}\"]\n  deny: [\"**/.env\"]\n"
        );
        let origin = Origin::Managed;
        let parsed = parse(Source { file: "t.yml", text: &text, origin }).unwrap();
        let mut set = PolicySet::default();
        set.add(parsed).unwrap();
        Settling {
            policy: Arc::new(set.effective("t").unwrap()),
            seen: Seen::default(),
            when,
            ended: Ended::Completed,
            stillness: Stillness::Still,
            state: self.state.clone(),
            bounds: Config::default().undo(),
        }
    }
}

/// The paths that a stage holds back, and why.
pub(super) fn held(stage: &Stage) -> Vec<(String, Why)> {
    let row = |(_, path, held): (usize, PathBuf, crate::stage::change::Held)| {
        (path.display().to_string(), held.why)
    };
    let mut rows: Vec<_> = stage.held().unwrap().into_iter().map(row).collect();
    rows.sort();
    rows
}

fn write(path: &Path, content: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

/// Two halves of a repository that runs something: neither is one.
pub(super) const HALVES: [&[(&str, &str)]; 2] = [
    &[
        ("x/HEAD", "ref: refs/heads/main\n"),
        ("x/config", "[core]\n\tbare = false\n\tworktree = ./\n\tfsmonitor = \"touch canary #\"\n"),
    ],
    &[("x/objects/keep", ""), ("x/refs/keep", "")],
];
