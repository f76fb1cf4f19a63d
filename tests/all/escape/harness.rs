//! A workspace, a decision about it, and a command in a real container.

use std::ffi::OsString;
use std::fs::File;
use std::os::fd::AsFd as _;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::{Path, PathBuf};
use std::time::Duration;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use runner::call::launch::outcome::{Outcome, Stillness};
use runner::config::Undo;
use runner::engine::Life;
use runner::engine::plan::ImageFacts;
use runner::engine::plan::{Environment, Image, Runtime, SandboxPlan};
use runner::engine::runtime_kind::RuntimeKind;
use runner::sandbox::materials::Missing;
use runner::sandbox::outcome::{RunError, Verdict};
use runner::sandbox::planner::{PlanError, PlanRequest, Told, View, plan};
use runner::stage::apply::{Context, Sync, apply};
use runner::stage::folder::Stage;
use runner::stage::judge::{Rules as Judging, System, judge};
use runner::stage::walk::{Bounds, walk};
use runner::workspace::grants::{Code, FileGrants, PathSet, Writes};
use runner::workspace::{Owner, Workspace};
use runner_policy::limits::{Isolation, Limit, Limits};

pub use super::promises::Runtime as On;
pub(super) use super::promises::attack;
use crate::engine::{argv, call, ground, state};

/// An ordinary user, to whom workspaces belong when the tests run as root.
const ORDINARY: u32 = 1000;

/// Patterns as policies have them.
pub struct Globs {
    texts: Vec<String>,
    includes: GlobSet,
    excludes: GlobSet,
}

pub fn globs(patterns: &[&str]) -> Globs {
    let compile = |list: Vec<&str>| {
        let mut set = GlobSetBuilder::new();
        for text in list {
            set.add(GlobBuilder::new(text).literal_separator(true).build().unwrap());
        }
        set.build().unwrap()
    };
    let (excludes, includes): (Vec<&str>, Vec<&str>) =
        patterns.iter().copied().partition(|text| text.starts_with('!'));
    Globs {
        texts: patterns.iter().map(|text| (*text).to_owned()).collect(),
        includes: compile(includes),
        excludes: compile(excludes.into_iter().map(|text| &text[1..]).collect()),
    }
}

impl PathSet for Globs {
    fn matches(&self, relative: &Path) -> bool {
        self.includes.is_match(relative) && !self.excludes.is_match(relative)
    }

    fn patterns(&self) -> Vec<String> {
        self.texts.clone()
    }
}

/// What a policy would say.
#[derive(Clone, Copy)]
pub struct Rules<'a> {
    pub write: &'a [&'a str],
    pub readonly: &'a [&'a str],
    pub deny: &'a [&'a str],
    pub runtime: Option<&'a str>,
    pub env: &'a [(&'a str, &'a str)],
}

impl On {
    /// The runtime's name, for a plan.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Self::Runc | Self::Embedded => None,
            Self::Gvisor => Some("runsc"),
        }
    }

    /// For a plan of a sandbox.
    pub fn runtime(self) -> Option<Runtime> {
        self.name().and_then(Runtime::new)
    }

    /// Rules that let it look and change nothing.
    pub fn read(self) -> Rules<'static> {
        Rules { runtime: self.name(), ..READ }
    }

    /// Rules that let it write these.
    pub fn write(self, write: &'static [&'static str]) -> Rules<'static> {
        Rules { write, ..self.read() }
    }
}

/// More than any test changes.
const UNDO: Undo = Undo { size: 1 << 30, age: Duration::from_secs(3600) };

/// Look, and change nothing.
pub const READ: Rules<'static> =
    Rules { write: &[], readonly: &[], deny: &[], runtime: None, env: &[] };

/// A workspace in a temporary folder; it is not the whole folder, so that there is an outside.
pub struct Case {
    pub dir: tempfile::TempDir,
    pub root: PathBuf,
}

/// A workspace with these files; a name that ends with `/` is a folder.
pub fn case(files: &[&str]) -> Case {
    let dir = tempfile::tempdir().unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(dir.path(), open).unwrap();
    let root = dir.path().canonicalize().unwrap().join("workspace");
    std::fs::create_dir(&root).unwrap();
    for file in files {
        let path = root.join(file);
        if file.ends_with('/') {
            std::fs::create_dir_all(path).unwrap();
        } else {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "original\n").unwrap();
        }
    }
    let case = Case { dir, root };
    case.give_away();
    case
}

/// What a command left behind.
pub struct Ran {
    pub verdict: Verdict,
    pub out: String,
    pub err: String,
}

impl Case {
    /// Everything in the workspace belongs to an ordinary user.
    pub fn give_away(&self) {
        if rustix::process::geteuid().is_root() {
            give(&self.root);
        }
    }

    pub fn plan(&self, rules: Rules<'_>) -> Result<SandboxPlan, PlanError> {
        self.plan_at(&self.root, rules)
    }

    pub fn plan_at(&self, start: &Path, rules: Rules<'_>) -> Result<SandboxPlan, PlanError> {
        let workspace =
            Workspace::find(Some(start), &runner::environment::Environment::default()).unwrap();
        let (read, write) = (globs(&["**"]), globs(rules.write));
        let (readonly, deny) = (globs(rules.readonly), globs(rules.deny));
        let mut limits = Limits::preset(Isolation::Basic);
        limits.set(Limit::Wall, 120_000);
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let variable = |name: &str| std::env::var_os(name);
        let ground = ground();
        plan(&PlanRequest {
            told: &Told::default(),
            network: None,
            workspace: &workspace,
            view: View::Workspace,
            grants: grants(&[&read, &write, &readonly, &deny]),
            image: Image::Host,
            image_facts: ImageFacts::default(),
            runtime: rules.runtime.and_then(Runtime::new),
            isolation: Isolation::Basic,
            demands: std::collections::BTreeSet::new(),
            limits,
            env: rules
                .env
                .iter()
                .map(|(name, value)| (OsString::from(name), OsString::from(value)))
                .collect::<Environment>(),
            mapping: ground.mapping,
            kind: match ground.life {
                Life::Daemon => RuntimeKind::of(rules.runtime.and_then(Runtime::new).as_ref()),
                Life::Ours => RuntimeKind::Direct,
            },
            machine: ground.machine,
            caller: Owner {
                uid: rustix::process::geteuid().as_raw(),
                gid: rustix::process::getegid().as_raw(),
            },
            home: home.as_deref(),
            variable: &variable,
            state: &self.dir.path().join("state"),
            memory: Some(&self.dir.path().join("walks")),
            unscanned: &[],
            missing: Missing::Make,
        })
    }

    /// Runs a script as the rules allow.
    pub fn sh(&self, rules: Rules<'_>, script: &str) -> Ran {
        let plan = self.plan(rules).unwrap();
        self.run_and_apply(plan, rules, &["sh", "-c", script]).unwrap()
    }

    /// Runs a command; what it changed stays in its stage.
    pub fn run(&self, plan: SandboxPlan, words: &[&str]) -> Result<Ran, RunError> {
        self.ran(call(plan, argv(words))?)
    }

    /// Runs a command, and applies what it changed as far as the rules allow.
    pub fn run_and_apply(
        &self,
        plan: SandboxPlan,
        rules: Rules<'_>,
        words: &[&str],
    ) -> Result<Ran, RunError> {
        let outcome = call(plan.clone(), argv(words))?;
        assert_eq!(outcome.stillness, Stillness::Still);
        if let Some(stage) = &outcome.stage {
            settle(stage, &plan, rules);
        }
        self.ran(outcome)
    }

    fn ran(&self, outcome: Outcome) -> Result<Ran, RunError> {
        let text = |bytes: Option<Vec<u8>>| String::from_utf8_lossy(&bytes.unwrap()).into_owned();
        Ok(Ran {
            verdict: outcome.verdict,
            out: text(outcome.stdout.whole()),
            err: text(outcome.stderr.whole()),
        })
    }

    /// What a file of the workspace holds.
    pub fn text(&self, path: &str) -> String {
        std::fs::read_to_string(self.root.join(path))
            .unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    pub fn exists(&self, path: &str) -> bool {
        self.root.join(path).symlink_metadata().is_ok()
    }
}

impl Ran {
    pub fn succeeded(self) -> Self {
        assert_eq!(self.verdict, Verdict::Completed, "{}{}", self.out, self.err);
        self
    }
}

/// Judges and applies what was changed in the workspace.
fn settle(stage: &Stage, plan: &SandboxPlan, rules: Rules<'_>) {
    let (read, write) = (globs(&["**"]), globs(rules.write));
    let (readonly, deny) = (globs(rules.readonly), globs(rules.deny));
    let (root, upper) = (&stage.roots()[0], File::open(stage.upper(0)).unwrap());
    let host = root.open().unwrap();
    let changes = walk(upper.as_fd(), host.as_fd(), Bounds::default()).unwrap();
    let judged = judge(
        changes,
        &Judging {
            grants: &grants(&[&read, &write, &readonly, &deny]),
            policy: "test",
            covered: &plan.covered,
            root: &root.path(),
            kind: root.kind,
            host: host.as_fd(),
            upper: upper.as_fd(),
            repositories: &plan.repositories,
            links: &plan.links,
            home: None,
            led: &[],
            system: &System::default(),
        },
    );
    let context = Context { state: &state(), bounds: UNDO, sync: Sync::Never };
    apply(stage, &[judged], &context).unwrap();
}

fn grants<'a>([read, write, readonly, deny]: &[&'a Globs; 4]) -> FileGrants<'a> {
    FileGrants {
        policy: [0; 32],
        read: *read,
        write: *write,
        readonly: *readonly,
        deny: *deny,
        create: &[],
        writes: if write.texts.is_empty() { Writes::None } else { Writes::Some },
        code: Code::Granted,
    }
}

fn give(path: &Path) {
    let found = path.symlink_metadata().unwrap();
    if found.uid() == 0 && !found.is_symlink() {
        chown(path, Some(ORDINARY), Some(ORDINARY)).unwrap();
    }
    if found.is_dir() {
        for entry in std::fs::read_dir(path).unwrap() {
            give(&entry.unwrap().path());
        }
    }
}
