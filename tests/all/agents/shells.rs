//! Runs a line: in bash on the host, and through the program under a policy.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::everyday::Caller;

/// What a line gave.
#[derive(Clone, Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub out: Vec<u8>,
    pub err: String,
    pub took: Duration,
}

impl Ran {
    pub fn of(command: &mut Command) -> Self {
        let started = Instant::now();
        let Output { status, stdout, stderr } = command.output().expect("the program starts");
        let err = String::from_utf8_lossy(&stderr).into_owned();
        Self { code: status.code(), out: stdout, err, took: started.elapsed() }
    }

    /// The same for bubblewrap, which gives up if a mount of the host disappears while it copies the mount table, as those
    /// of sandboxes do. Nothing has run then, so it is tried again.
    pub fn of_bubblewrap(mut command: Command) -> Self {
        for _ in 0..50 {
            let ran = Self::of(&mut command);
            if !ran.err.starts_with("bwrap: ") {
                return ran;
            }
        }
        panic!("bubblewrap does not start: {}", Self::of(&mut command).err);
    }
}

/// Where programs are found, for bash and for the sandbox alike: Rust's, and the system's.
fn path() -> OsString {
    let cargo = cargo_home().join("bin");
    let system = ["/usr/local/bin", "/usr/bin", "/bin"].map(PathBuf::from);
    std::env::join_paths([cargo].into_iter().chain(system)).expect("a path")
}

fn home() -> PathBuf {
    PathBuf::from(std::env::var_os("HOME").expect("HOME"))
}

fn cargo_home() -> PathBuf {
    std::env::var_os("CARGO_HOME").map_or_else(|| home().join(".cargo"), PathBuf::from)
}

fn rustup_home() -> PathBuf {
    std::env::var_os("RUSTUP_HOME").map_or_else(|| home().join(".rustup"), PathBuf::from)
}

/// What bash has in its environment; its home is below `base`.
pub fn variables(base: &Path) -> Vec<(&'static str, OsString)> {
    vec![
        ("PATH", path()),
        ("HOME", base.join("empty-home").into()),
        ("CARGO_HOME", cargo_home().into()),
        ("RUSTUP_HOME", rustup_home().into()),
        // What a sandbox of `develop` says too: there is no network, and caches of bytecode are not compared.
        ("CARGO_NET_OFFLINE", "true".into()),
        ("PYTHONDONTWRITEBYTECODE", "1".into()),
        ("LANG", "C.UTF-8".into()),
        ("TZ", "UTC".into()),
        ("GIT_CONFIG_SYSTEM", "/dev/null".into()),
    ]
}

/// Runs a line in bash: its home and `/tmp` are empty, the network is its own loopback, and what it leaves running ends.
pub fn bash(base: &Path, project: &Path, line: &str) -> Ran {
    let home = base.join("empty-home");
    if home.exists() {
        fs::remove_dir_all(&home).expect("an old home");
    }
    fs::create_dir(&home).expect("a home");
    let mut command = Command::new("bwrap");
    command.args(["--dev-bind", "/", "/", "--tmpfs", "/tmp", "--unshare-pid", "--proc", "/proc"]);
    command.args(["--unshare-net", "--die-with-parent", "--chdir"]).arg(project);
    command.args(["timeout", "--foreground", "60", "bash", "-c", line]);
    command.env_clear().envs(variables(base)).stdin(Stdio::null());
    Ran::of_bubblewrap(command)
}

/// The program, about to run a line under a policy.
pub fn command(caller: &Caller, policy: &str, limit: &str, project: &Path, line: &str) -> Command {
    let mut command = caller.runner(project);
    command.args(["exec", "--policy", policy, "--timeout", limit, "--shell", line]);
    command.env("PATH", path()).env("LANG", "C.UTF-8").env("TZ", "UTC");
    for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "FORCE_COLOR", "CI"] {
        command.env_remove(name);
    }
    command
}

/// A caller whose calls use waiting sandboxes, and leave none when the test is over.
pub struct Pooled(Caller);

impl Pooled {
    pub fn new() -> Self {
        let caller = Caller::ourselves("/var/tmp");
        fs::write(caller.path("config/runner/config.yml"), "").expect("a file");
        Self(caller)
    }
}

impl std::ops::Deref for Pooled {
    type Target = Caller;

    fn deref(&self) -> &Caller {
        &self.0
    }
}

impl Drop for Pooled {
    fn drop(&mut self) {
        let drained = self.0.run(&self.0.path(""), &["pool", "drain"]);
        if !std::thread::panicking() {
            assert_eq!(drained.code, Some(0), "{}", drained.err);
        }
    }
}
