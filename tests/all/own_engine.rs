//! An engine of a test's own: it may be ended, started again, and run out of disk.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

/// Nothing may be left after this time. It takes a second where nothing else runs; what stays, stays for ever.
pub const GONE: Duration = Duration::from_secs(60);

/// An engine of this test's own, which it may end and start again.
pub struct OwnEngine {
    folder: tempfile::TempDir,
    process: Option<std::process::Child>,
}

impl OwnEngine {
    pub fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("runner-engine-").tempdir_in("/var/tmp");
        Self { folder: folder.expect("a folder"), process: None }
    }

    /// One whose data lies on a file system of this size of its own.
    pub fn with_disk(size: &str) -> Self {
        let engine = Self::new();
        let data = engine.path("data");
        fs::create_dir(&data).expect("a folder");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size},mode=711"), "tmpfs", &data])
            .status();
        assert!(mounted.expect("mount").success());
        engine
    }

    pub fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    pub fn start(&mut self) {
        let log = fs::File::create(self.path("log")).expect("a log");
        // Not the machine's own settings.
        fs::write(self.path("daemon.json"), "{}").expect("a file");
        let child = Command::new("dockerd")
            .args(["--config-file", &self.path("daemon.json")])
            .args(["--data-root", &self.path("data"), "--exec-root", &self.path("exec")])
            .args(["--pidfile", &self.path("pid"), "--host", &self.endpoint()])
            .args([
                "--bridge=none",
                "--iptables=false",
                "--ip6tables=false",
                "--shutdown-timeout=3",
            ])
            .env("PATH", format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default()))
            .stdout(log.try_clone().expect("a copy"))
            .stderr(log)
            .spawn()
            .expect("dockerd");
        self.process = Some(child);
        let begun = Instant::now();
        while !self.answers() {
            let log = fs::read_to_string(self.path("log")).unwrap_or_default();
            assert!(begun.elapsed() < Duration::from_secs(60), "dockerd does not start: {log}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    pub fn endpoint(&self) -> String {
        format!("unix://{}", self.path("sock"))
    }

    fn ask(&self, path: &str) -> Vec<u8> {
        let url = format!("http://engine{path}");
        let out =
            Command::new("curl").args(["-s", "--unix-socket", &self.path("sock"), &url]).output();
        out.expect("curl").stdout
    }

    fn answers(&self) -> bool {
        self.ask("/_ping") == b"OK"
    }

    /// Waits until it has no container left: a call does not wait for the removal of its sandbox.
    pub fn until_empty(&self) {
        let begun = Instant::now();
        while self.containers() != serde_json::json!([]) {
            assert!(begun.elapsed() < GONE, "{}", self.containers());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    pub fn containers(&self) -> serde_json::Value {
        serde_json::from_slice(&self.ask("/containers/json?all=1")).unwrap_or_default()
    }

    pub fn stop(&mut self) {
        if let Some(mut child) = self.process.take() {
            let _ = Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
            let _ = child.wait();
        }
    }
}

impl Drop for OwnEngine {
    fn drop(&mut self) {
        self.stop();
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let ours = self.path("");
        for place in mounts
            .lines()
            .filter_map(|line| line.split(' ').nth(4))
            .filter(|p| p.starts_with(&ours))
        {
            let _ = Command::new("umount").args(["-l", place]).status();
        }
    }
}
