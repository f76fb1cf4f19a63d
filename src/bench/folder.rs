//! A folder of its own for a measurement: workspaces, and for each engine a configuration, a state and a pool.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use super::call::Waits;
use super::error::BenchError;
use super::idle::wait_until_idle;
use super::sample::timed;
use crate::call::launch::run::this_program;
use crate::engine::EngineName;
use crate::pool::Pool;

/// Files of the workspace in which calls are measured.
const FILES: usize = 1_000;

/// Files in one folder.
const PER_FOLDER: usize = 10;

/// How long a sandbox may take to be made on a slow machine.
const REFILL_WAIT: Duration = Duration::from_secs(60);

/// A tool that asks the broker once.
const ONCE: &str = "name: once\ndescription: Asks once.\nschema: { type: object }\ncode: |\n  export async function execute(_: {}, { platform }: ToolContext) {\n    return await platform.fs.exists('f0');\n  }\n";

/// A tool that measures the broker.
const MEASURE: &str = "name: measure\ndescription: Measures the broker.\nschema: { type: object }\ncode: |\n  export async function execute(_: {}, { platform }: ToolContext) {\n    const times: number[] = [];\n    for (let i = 0; i < 800; i += 1) {\n      const start = performance.now();\n      await platform.fs.exists('f0');\n      times.push(performance.now() - start);\n    }\n    return times.map((time) => Math.round(time * 1e6));\n  }\n";

/// A policy with a kernel of its own.
const GVISOR: &str = "policy: 1\nname: gvisor\nextends: [readonly]\nsandbox: { runtime: runsc }\n";

/// Policies for the same program with and without writing, and one that denies most files.
const READING: &str = "policy: 1\nname: reading\nextends: [readonly]\ncommands:\n  - { allow: \"sh ...\", effects: [read, code] }\n";
const WRITING: &str = "policy: 1\nname: writing\nextends: [readonly]\nfiles: { write: [out, \"out/**\"] }\ncommands:\n  - { allow: [\"sh ...\", \"cp ...\"], effects: [read, write, code] }\n";
const DENIED: &str =
    "policy: 1\nname: denied\nextends: [readonly]\nfiles: { deny: [\"**/*.ts\"] }\n";

/// No approval is needed here: tools and folder belong to the measurement.
fn config(engine: EngineName) -> String {
    format!("engine: {engine}\napprovals: {{ withoutTerminal: true }}\n")
}

/// The folder; it goes with this value, and so do the sandboxes that wait.
pub struct BenchFolder {
    root: PathBuf,
}

impl BenchFolder {
    /// Makes one for measuring these engines.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn make(engines: impl IntoIterator<Item = EngineName>) -> Result<Self, BenchError> {
        let local = |error| BenchError::Local("make a folder to measure in", error);
        let chance: [u8; 8] = crate::sys::random().map_err(local)?;
        let name = format!("runner-bench-{:016x}", u64::from_le_bytes(chance));
        // Not /tmp, which is a memory disk on many machines; a workspace rarely is.
        let base = ["/var/tmp", "/tmp"].into_iter().map(Path::new).find(|path| path.is_dir());
        let place = Self { root: base.unwrap_or(Path::new("/")).join(name) };
        let make = || {
            for folder in ["workspace/.git", "workspace/.runner/tools"] {
                fs::create_dir_all(place.root.join(folder))?;
            }
            // The command runs as another user where the caller is root.
            for folder in ["", "workspace"] {
                let path = place.root.join(folder);
                fs::set_permissions(path, fs::Permissions::from_mode(0o755))?;
            }
            fs::write(place.workspace().join(".runner/tools/once.yml"), ONCE)?;
            fs::write(place.workspace().join(".runner/tools/measure.yml"), MEASURE)?;
            engines.into_iter().try_for_each(|engine| place.site(engine).make())?;
            fill(&place.workspace(), FILES, b"")
        };
        make().map_err(local)?;
        Ok(place)
    }

    /// The workspace.
    pub fn workspace(&self) -> PathBuf {
        self.root.join("workspace")
    }

    /// Another workspace, with this many files of this content.
    pub fn tree(&self, name: &str, files: usize, content: &[u8]) -> Result<PathBuf, BenchError> {
        let root = self.root.join(format!("tree-{name}"));
        let make = || {
            fs::create_dir_all(root.join(".git"))?;
            fs::set_permissions(&root, fs::Permissions::from_mode(0o755))?;
            fill(&root, files, content)
        };
        make().map_err(|error| BenchError::Local("make files to measure with", error))?;
        Ok(root)
    }

    /// Another workspace, with this many tools.
    pub fn tools(&self, count: usize) -> Result<PathBuf, BenchError> {
        let root = self.root.join(format!("tools-{count}"));
        let folder = root.join(".runner/tools");
        let make = || {
            fs::create_dir_all(&folder)?;
            (0..count).try_for_each(|at| {
                let text = ONCE.replace("name: once", &format!("name: tool_{at}"));
                fs::write(folder.join(format!("tool_{at}.yml")), text)
            })
        };
        make().map_err(|error| BenchError::Local("make tools to measure with", error))?;
        Ok(root)
    }

    /// What an engine has in it.
    pub fn site(&self, engine: EngineName) -> Site<'_> {
        Site { place: self, engine }
    }
}

/// The part of a place that one engine's calls have to themselves.
#[derive(Clone, Copy)]
pub struct Site<'a> {
    place: &'a BenchFolder,
    engine: EngineName,
}

impl<'a> Site<'a> {
    /// The engine.
    pub fn engine(self) -> EngineName {
        self.engine
    }

    /// The place that it is in.
    pub fn place(self) -> &'a BenchFolder {
        self.place
    }

    /// The name of a row about this engine.
    pub fn row(self, what: &str) -> String {
        format!("{what}, {}", self.engine)
    }

    fn root(self) -> PathBuf {
        self.place.root.join(self.engine.as_str())
    }

    fn make(self) -> std::io::Result<()> {
        let configuration = self.root().join("config/runner");
        let policies = configuration.join("policies");
        fs::create_dir_all(&policies)?;
        fs::write(configuration.join("config.yml"), config(self.engine))?;
        [("gvisor", GVISOR), ("reading", READING), ("writing", WRITING), ("denied", DENIED)]
            .into_iter()
            .try_for_each(|(name, text)| fs::write(policies.join(format!("{name}.yml")), text))
    }

    /// This program, as a user would call it from a folder.
    pub fn runner(self, folder: &Path, words: &[&str]) -> Command {
        let root = self.root();
        let mut command = Command::new(this_program());
        command
            .args(words)
            .current_dir(folder)
            .env("HOME", root.join("home"))
            .env("XDG_STATE_HOME", root.join("state"))
            .env("XDG_CACHE_HOME", root.join("cache"))
            .env("XDG_CONFIG_HOME", root.join("config"));
        command
    }

    /// The pool of this engine.
    pub fn pool(self) -> Pool {
        Pool::new(&self.root().join("state/runner"))
    }

    /// Waits until what waits for such calls is there and nothing is being made, or gives up.
    pub fn settle(self, waits: Waits) {
        match waits {
            Waits::Always(class) => self.until(|| {
                let entries = self.pool().entries();
                entries.iter().any(|entry| entry.class == class && !entry.is_over())
            }),
            Waits::AsItComes | Waits::Never => self.until(|| true),
        }
    }

    /// Waits until nothing is being made and this is so, or gives up.
    fn until(self, so: impl Fn() -> bool) {
        let (begun, pool) = (Instant::now(), self.pool());
        while begun.elapsed() < REFILL_WAIT
            && !(so() && pool.being_made().is_ok_and(|making| making == 0))
        {
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Ends what waits.
    pub fn drain(self) {
        let _ = timed(&mut self.runner(&self.place.root, &["pool", "drain"]));
    }
}

impl Drop for BenchFolder {
    fn drop(&mut self) {
        for site in EngineName::ALL.map(|engine| self.site(engine)) {
            if site.root().exists() {
                site.drain();
                // A process that still makes or ends a sandbox would make folders of ours anew.
                site.until(|| true);
            }
        }
        wait_until_idle();
        let _ = fs::remove_dir_all(&self.root);
    }
}

/// Puts files into a workspace, ten to a folder, three folders deep.
fn fill(root: &Path, files: usize, content: &[u8]) -> std::io::Result<()> {
    fs::write(root.join("f0"), "")?;
    for folder in 0..files.div_ceil(PER_FOLDER) {
        let path = root.join(format!("d{}/d{}/d{folder}", folder / 1_000, folder / 30 % 34));
        fs::create_dir_all(&path)?;
        for file in 0..PER_FOLDER.min(files - folder * PER_FOLDER) {
            fs::write(path.join(format!("file{file}.ts")), content)?;
        }
    }
    Ok(())
}
