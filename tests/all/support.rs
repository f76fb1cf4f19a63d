//! How tests start the program.

use std::ffi::OsStr;
use std::fs;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use runner::engine::EngineName;

/// The program under test, in an environment of our own: no colour variables, no user configuration.
pub fn runner() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_runner"));
    for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "FORCE_COLOR", "CI", "RUNNER_POLICY"] {
        command.env_remove(name);
    }
    command.stdin(Stdio::null());
    command
}

/// Runs it with these arguments to its end.
pub fn run<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Ran {
    Ran::from(runner().args(args).output().expect("the program starts"))
}

/// What a run left behind.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
        Self { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }
}

impl Ran {
    /// Its standard output as one JSON value. A result is held against the schema of results.
    pub fn json(&self) -> serde_json::Value {
        let value = serde_json::from_str(&self.out)
            .unwrap_or_else(|error| panic!("{error}: {:?} {:?}", self.out, self.err));
        crate::results::check(&value);
        value
    }
}

/// A caller of our own: home, configuration, state and a workspace in a temporary folder.
pub struct Home {
    dir: tempfile::TempDir,
}

impl Home {
    /// Each call makes its own sandbox, and `--yes` counts although nobody is at a terminal; tests of the pool and of
    /// approvals say otherwise. The pool is off because a test calls too quickly for it: the next call comes before a sandbox
    /// waits for it, so each call costs two.
    pub const CONFIG: &str = "pool: { size: 0 }\napprovals: { withoutTerminal: true }\n";

    pub fn new() -> Self {
        let home = Self { dir: tempfile::tempdir().expect("a temporary folder") };
        for folder in ["config/runner/policies", "state", "project/.runner/policies"] {
            fs::create_dir_all(home.path(folder)).expect("a folder");
        }
        home.config(Self::CONFIG);
        home
    }

    /// Writes the user's configuration, with the engine that is tested.
    pub fn config(&self, text: &str) {
        let engine = match engine_under_test() {
            EngineName::Docker => "",
            EngineName::Embedded => "engine: embedded\n",
        };
        fs::write(self.path("config/runner/config.yml"), format!("{text}{engine}"))
            .expect("a file");
    }

    /// A path in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().expect("a real path").join(name)
    }

    /// Writes a policy of the user.
    pub fn user_policy(&self, name: &str, text: &str) {
        fs::write(self.path(&format!("config/runner/policies/{name}.yml")), text).expect("a file");
    }

    /// Writes a policy of the workspace.
    pub fn project_policy(&self, name: &str, text: &str) {
        fs::write(self.path(&format!("project/.runner/policies/{name}.yml")), text)
            .expect("a file");
    }

    /// The program under test, called by this caller in the workspace.
    pub fn runner(&self) -> Command {
        let mut command = runner();
        self.surround(&mut command);
        command
    }

    /// Puts a command into this caller's place.
    pub fn surround(&self, command: &mut Command) {
        command.current_dir(self.path("project"));
        command.env("HOME", self.path("")).env("XDG_CONFIG_HOME", self.path("config"));
        command.env("XDG_STATE_HOME", self.path("state"));
        if engine_under_test() == EngineName::Embedded {
            command.env("DOCKER_HOST", "unix:///nowhere/docker.sock");
            // What waits is this caller's own.
            command.env_remove("XDG_RUNTIME_DIR");
        }
    }

    /// Runs git in the workspace, with nobody's configuration.
    pub fn git(&self, args: &[&str]) {
        let mut command = Command::new("git");
        self.surround(&mut command);
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
        let identity =
            ["-c", "user.name=Test", "-c", "user.email=test@example.org", "-c", "safe.directory=*"];
        let output = command.args(identity).args(args).output().expect("git starts");
        assert!(
            output.status.success(),
            "git {args:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }

    /// Runs it to its end.
    pub fn run<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Ran {
        Ran::from(self.runner().args(args).output().expect("the program starts"))
    }

    /// Runs it at a terminal of its own, where somebody types `input` again and again, so that it answers every question.
    /// Use `at_terminal_meanwhile` where the meaning depends on the moment, as that of an interrupt does.
    pub fn at_terminal(&self, line: &str, input: &str) -> Ran {
        self.at_terminal_after(line, input, Duration::ZERO)
    }

    /// The same, where somebody thinks for a while before typing.
    pub fn at_terminal_after(&self, line: &str, input: &str, pause: Duration) -> Ran {
        let mut child = self.terminal(line);
        let mut typing = child.stdin.take().expect("a pipe");
        // What is typed before a question is no answer to it, so it is typed until there is an end. The pipe
        // stays open as long: closing it would be an end of input.
        let input = input.to_owned();
        let over = Arc::new(AtomicBool::new(false));
        let typist = std::thread::spawn({
            let over = Arc::clone(&over);
            move || {
                std::thread::sleep(pause);
                while !over.load(Ordering::Relaxed) && typing.write_all(input.as_bytes()).is_ok() {
                    std::thread::sleep(Duration::from_millis(300));
                }
            }
        });
        let output = child.wait_with_output().expect("it ends");
        over.store(true, Ordering::Relaxed);
        typist.join().expect("typing ends");
        Ran::from(output)
    }

    /// The program at a terminal, with pipes to type into and to read from.
    fn terminal(&self, line: &str) -> Child {
        let mut command = Command::new("script");
        let line = format!("'{}' {line}", env!("CARGO_BIN_EXE_runner"));
        command.args(["-q", "-e", "-c", &line, "/dev/null"]);
        self.surround(&mut command);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("script starts")
    }

    /// The same, where something happens after the question was shown and before it is answered.
    pub fn at_terminal_meanwhile(&self, line: &str, meanwhile: impl FnOnce(), input: &str) -> Ran {
        let mut child = self.terminal(line);
        let (mut typing, mut shown) =
            (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
        let (mut out, mut byte) = (Vec::new(), [0]);
        while !out.ends_with(b"[never]: ") {
            assert_eq!(shown.read(&mut byte).expect("it shows something"), 1, "no question");
            out.push(byte[0]);
        }
        meanwhile();
        typing.write_all(input.as_bytes()).expect("it is typed");
        shown.read_to_end(&mut out).expect("it shows the rest");
        drop(typing);
        let status = child.wait().expect("it ends");
        Ran::from(Output { status, stdout: out, stderr: Vec::new() })
    }
}

/// Nothing of a caller's waits on the engine once the test is over.
impl Drop for Home {
    fn drop(&mut self) {
        let pool = fs::read_dir(self.path("state/runner/pool")).into_iter().flatten().flatten();
        if pool.into_iter().any(|entry| entry.file_name() != "lock") {
            let drained = self.run(["pool", "drain"]);
            if !std::thread::panicking() {
                assert_eq!(drained.code, Some(0), "{}", drained.err);
            }
        }
    }
}

/// Which engine an attack chose, in a process that has one test.
static CHOSEN: OnceLock<EngineName> = OnceLock::new();

/// The engine that makes the sandboxes of this test: `RUNNER_TEST_ENGINE` names it, unless the test chose one.
pub fn engine_under_test() -> EngineName {
    *CHOSEN.get_or_init(|| {
        let named = std::env::var("RUNNER_TEST_ENGINE").ok();
        named.and_then(|name| EngineName::named(&name)).unwrap_or(EngineName::Docker)
    })
}

/// Makes this engine that of the whole test.
pub fn choose_engine(name: EngineName) {
    assert_eq!(*CHOSEN.get_or_init(|| name), name, "a test has one engine");
}

/// Says that a test needs an engine, and fails where there is none. The profile `without-engine` in
/// `.config/nextest.toml` leaves such tests out.
pub fn needs_engine() {
    let engine = std::env::var("RUNNER_TEST_ENGINE");
    let there = engine.as_deref() != Ok("none") || engine_under_test() == EngineName::Embedded;
    assert!(there, "this test needs a Docker engine");
}

/// Says that a test needs root.
pub fn needs_root() {
    assert!(rustix::process::geteuid().is_root(), "this test must be started by root");
}
