//! Callers of every kind: who they are, where their home is, and how they reach the engine.

use std::fs;
use std::io;
use std::net::Shutdown;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use runner::engine::EngineName;

use crate::support::{Ran, engine_under_test};

/// An ordinary user whom no file of this machine belongs to.
pub const ORDINARY: u32 = 42_042;

/// Someone who calls the program, with folders of their own for configuration and records.
pub struct Caller {
    folder: tempfile::TempDir,
    uid: Option<u32>,
    home: Option<PathBuf>,
    socket: Option<PathBuf>,
}

impl Caller {
    /// Whoever runs the tests, with their own home and toolchains; projects are below `base`.
    pub fn ourselves(base: &str) -> Self {
        let folder = tempfile::Builder::new().prefix("runner-everyday-").tempdir_in(base);
        let caller =
            Self { folder: folder.expect("a folder"), uid: None, home: None, socket: None };
        // Each call makes its own sandbox and leaves nothing behind; tests of the pool say otherwise.
        fs::create_dir_all(caller.path("config/runner")).expect("a folder");
        let engine = engine_under_test();
        let text = format!("pool: {{ size: 0 }}\nengine: {engine}\n");
        fs::write(caller.path("config/runner/config.yml"), text).expect("a file");
        caller
    }

    /// The same with a home of their own, which nothing else uses.
    pub fn with_home(base: &str) -> Self {
        let mut caller = Self::ourselves(base);
        let home = caller.path("home");
        fs::create_dir(&home).expect("a folder");
        caller.home = Some(home);
        caller
    }

    /// An ordinary user. Only root can become one.
    pub fn ordinary(base: &str) -> Self {
        crate::support::needs_root();
        let mut caller = Self::ourselves(base);
        let open = fs::Permissions::from_mode(0o755);
        fs::set_permissions(caller.folder.path(), open).expect("permissions");
        let home = caller.path("home");
        fs::create_dir(&home).expect("a folder");
        chown(&home, Some(ORDINARY), Some(ORDINARY)).expect("a new owner");
        // Every user may connect to it, as if to a socket of their group.
        let socket = caller.path("docker.sock");
        if engine_under_test() == EngineName::Docker {
            relay(&socket, &engine_socket()).expect("a relay");
        }
        let program = caller.path("runner");
        fs::copy(env!("CARGO_BIN_EXE_runner"), program).expect("a copy of the program");
        caller.uid = Some(ORDINARY);
        caller.own(&caller.path("config"));
        caller.home = Some(home);
        caller.socket = Some(socket);
        caller
    }

    /// A path in the caller's folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().expect("a real path").join(name)
    }

    /// The home directory.
    pub fn home(&self) -> PathBuf {
        self.home
            .clone()
            .unwrap_or_else(|| PathBuf::from(std::env::var_os("HOME").unwrap_or_default()))
    }

    /// The folder of their records and stages.
    pub fn state(&self) -> PathBuf {
        match self.uid {
            None => self.path("state"),
            Some(_) => self.home().join("state"),
        }
    }

    /// Whom the caller's files belong to.
    pub fn uid(&self) -> u32 {
        self.uid.unwrap_or_else(|| rustix::process::geteuid().as_raw())
    }

    /// Gives a file, or a folder with all in it, to the caller.
    pub fn own(&self, path: &Path) {
        let uid = self.uid().to_string();
        let done = Command::new("chown").args(["-R", &format!("{uid}:{uid}")]).arg(path).status();
        assert!(done.expect("chown").success());
    }

    /// A project of these files, which belongs to the caller.
    pub fn project(&self, name: &str, files: &[(&str, &str)]) -> PathBuf {
        let root = self.path(name);
        for (file, text) in files {
            let path = root.join(file);
            fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
            fs::write(path, text).expect("a file");
        }
        if self.uid.is_some() {
            self.own(&root);
        }
        root
    }

    /// The program, called by this caller in `folder`.
    pub fn runner(&self, folder: &Path) -> Command {
        let mut command = match self.uid {
            None => Command::new(env!("CARGO_BIN_EXE_runner")),
            Some(uid) => {
                let uid = uid.to_string();
                let mut command = Command::new("setpriv");
                command.args(["--reuid", &uid, "--regid", &uid, "--clear-groups", "--"]);
                command.arg(self.path("runner"));
                command.env(
                    "PATH",
                    format!("{}/.cargo/bin:/usr/local/bin:/usr/bin:/bin", self.home().display()),
                );
                command
                    .env_remove("CARGO_HOME")
                    .env_remove("RUSTUP_HOME")
                    .env_remove("RUSTUP_TOOLCHAIN");
                command
            }
        };
        command
            .current_dir(folder)
            .env("HOME", self.home())
            .env("XDG_STATE_HOME", self.state())
            .env("XDG_CONFIG_HOME", self.path("config"))
            .env_remove("XDG_CACHE_HOME")
            .env_remove("XDG_RUNTIME_DIR")
            .stdin(Stdio::null());
        if let Some(socket) = &self.socket {
            command.env("DOCKER_HOST", format!("unix://{}", socket.display()));
        }
        command
    }

    /// Runs it to its end.
    pub fn run(&self, folder: &Path, args: &[&str]) -> Ran {
        Ran::from(self.runner(folder).args(args).output().expect("the program starts"))
    }

    /// Runs it, and it goes well.
    pub fn works(&self, folder: &Path, args: &[&str]) -> String {
        let ran = self.run(folder, args);
        assert_eq!(ran.code, Some(0), "{args:?} in {}: {}{}", folder.display(), ran.out, ran.err);
        ran.out
    }
}

/// The engine's own socket.
pub fn engine_socket() -> PathBuf {
    let host = std::env::var("DOCKER_HOST").unwrap_or_default();
    PathBuf::from(host.strip_prefix("unix://").unwrap_or("/var/run/docker.sock"))
}

/// Passes whoever connects to `from` on to `to`, as long as this process lives.
pub fn relay(from: &Path, to: &Path) -> io::Result<()> {
    let listener = UnixListener::bind(from)?;
    fs::set_permissions(from, fs::Permissions::from_mode(0o666))?;
    let to = to.to_owned();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let Ok(engine) = UnixStream::connect(&to) else { continue };
            let (Ok(client_too), Ok(engine_too)) = (client.try_clone(), engine.try_clone()) else {
                continue;
            };
            std::thread::spawn(move || pass(client, engine));
            std::thread::spawn(move || pass(engine_too, client_too));
        }
    });
    Ok(())
}

fn pass(mut from: UnixStream, mut to: UnixStream) {
    let _ = io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Write);
}
