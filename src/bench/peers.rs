//! Others that run a command: `docker run`, `docker exec`, `bwrap`, bare `node`.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::call::read;
use super::error::BenchError;
use super::folder::Site;
use super::sample::timed;
use crate::engine::{EngineName, seccomp};

/// Names of rows, which others stand beside.
pub const BWRAP: &str = "bwrap --unshare-all";
pub const BWRAP_ALIKE: &str = "bwrap (our mounts)";
pub const NODE: &str = "node -e 1";
pub const DOCKER_RUN: &str = "docker run (same settings)";
pub const DOCKER_EXEC: &str = "docker exec (no sandbox of its own)";

/// The engine whose containers `docker run` makes too.
pub const DAEMON: EngineName = EngineName::Docker;

/// The engine whose mounts are told to `bwrap`: it makes them with the same system calls.
pub const DIRECT: EngineName = EngineName::Embedded;

/// Whether a program is on the caller's path.
pub fn is_installed(name: &str) -> bool {
    std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(name).is_file()))
}

/// `bwrap`, as FINDINGS and its own manual use it: everything read-only, every namespace new.
pub fn bwrap() -> Command {
    let mut command = Command::new("bwrap");
    command.args(["--ro-bind", "/", "/", "--unshare-all", "true"]);
    command
}

/// `bwrap` with the mounts of a call of ours, as a dry run tells them: the same folders and files read-only, the same
/// scratch folders, its own `/proc` and `/dev`. It has no limits, no system call filter and no other user, and binds
/// the workspace, on which ours has an overlay.
#[derive(Debug)]
pub struct Alike(Vec<String>);

impl Alike {
    /// Reads the mounts from a dry run.
    ///
    /// # Errors
    /// There is no plan, or a path in it is not text.
    pub fn of(site: Site<'_>) -> Result<Self, BenchError> {
        let folder = site.place().workspace();
        let words = ["exec", "--json=full", "--dry-run", "--", "true"];
        let (_, text) = timed(&mut site.runner(&folder, &words))?;
        let plan = read(&text)?;
        let mut words: Vec<String> =
            ["--unshare-all", "--die-with-parent", "--proc", "/proc", "--dev", "/dev"]
                .map(str::to_owned)
                .to_vec();
        for mount in plan["container"]["mounts"].as_array().into_iter().flatten() {
            words.extend(alike(mount).ok_or_else(|| {
                let line = "runner exec --dry-run --json -- true".to_owned();
                let how = format!("has a mount that bwrap cannot be told: {mount}");
                BenchError::Command { line, how }
            })?);
        }
        let folder = folder.to_string_lossy().into_owned();
        words.extend(["--chdir".to_owned(), folder, "true".to_owned()]);
        Ok(Self(words))
    }

    /// Runs `true` in it.
    pub fn command(&self) -> Command {
        let mut command = Command::new("bwrap");
        command.args(&self.0);
        command
    }
}

/// A mount of ours, in the words of `bwrap`.
fn alike(mount: &Value) -> Option<Vec<String>> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let (kind, about) = mount.as_object()?.iter().next()?;
    let target = text(&about["target"])?;
    let read_only = |source| vec!["--ro-bind".to_owned(), source, target.clone()];
    match kind.as_str() {
        "bind" => Some(read_only(text(&about["source"]["path"])?)),
        "overlay" => Some(read_only(text(&about["layers"].as_array()?.last()?["path"])?)),
        "tmpfs" => {
            let mode = format!("{:o}", about["mode"].as_u64()?);
            let size = about["size"].to_string();
            let words = ["--size", &size, "--perms", &mode, "--tmpfs", &target];
            Some(words.map(str::to_owned).to_vec())
        }
        _ => None,
    }
}

/// Node that does nothing.
pub fn node() -> Command {
    let mut command = Command::new("node");
    command.args(["-e", "1"]);
    command
}

/// `docker run` with the very settings that a call of ours has.
#[derive(Debug)]
pub struct Container {
    words: Vec<String>,
}

impl Container {
    /// Reads the settings from a dry run under this policy.
    ///
    /// # Errors
    /// There is no plan.
    pub fn like(site: Site<'_>, policy: &str) -> Result<Self, BenchError> {
        let folder = site.place().workspace();
        let ask = |words: &[&str]| -> Result<Value, BenchError> {
            let (_, text) = timed(&mut site.runner(&folder, words))?;
            read(&text)
        };
        // The image is there once a call has been made.
        let first = ask(&["exec", "--json=full", "--cold", "-p", policy, "--", "true"])?;
        let plan = ask(&["exec", "--json=full", "--dry-run", "-p", policy, "--", "true"])?;
        let filter = folder.with_file_name("seccomp.json");
        std::fs::write(&filter, seccomp::PROFILE)
            .map_err(|error| BenchError::Local("write the system call filter", error))?;
        let image = first["metadata"]["image_digest"].as_str().unwrap_or_default();
        Ok(Self { words: words(&plan["container"], image, &filter) })
    }

    /// Runs `true` in a new container.
    pub fn command(&self) -> Command {
        let mut command = Command::new("docker");
        command.args(["run", "--rm"]).args(&self.words);
        command
    }

    /// A container that stays; its id.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn stay(&self) -> Result<Running, BenchError> {
        let mut command = Command::new("docker");
        let at = self.words.iter().position(|word| word == "/bin/true").unwrap_or_default();
        command.args(["run", "--rm", "--detach"]).args(&self.words[..at]);
        command.arg("/bin/sleep").args(&self.words[at + 1..]).arg("3600");
        let (_, id) = timed(&mut command)?;
        Ok(Running(String::from_utf8_lossy(&id).trim().to_owned()))
    }
}

/// A container that stays until this value goes.
pub struct Running(String);

impl Running {
    /// Runs `true` in it.
    pub fn exec(&self) -> Command {
        let mut command = Command::new("docker");
        command.args(["exec", &self.0, "/bin/true"]);
        command
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = timed(Command::new("docker").args(["rm", "--force", &self.0]));
    }
}

/// The same container, as words of `docker run`.
fn words(container: &Value, image: &str, filter: &Path) -> Vec<String> {
    let host = &container["HostConfig"];
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let mut words: Vec<String> = ["--network", "none", "--read-only", "--cap-drop", "ALL"]
        .into_iter()
        .chain(["--security-opt", "no-new-privileges", "--cgroupns", "private"])
        .chain(["--log-driver", "none"])
        .map(str::to_owned)
        .collect();
    words.extend(["--security-opt".to_owned(), format!("seccomp={}", filter.display())]);
    for (option, value) in [
        ("--ipc", &host["IpcMode"]),
        ("--user", &container["User"]),
        ("--memory", &host["Memory"]),
        ("--memory-swap", &host["MemorySwap"]),
        ("--pids-limit", &host["PidsLimit"]),
        ("--oom-score-adj", &host["OomScoreAdj"]),
        ("--runtime", &host["Runtime"]),
    ] {
        if !value.is_null() {
            words.extend([option.to_owned(), text(value)]);
        }
    }
    if let Some(cpus) = host["NanoCpus"].as_f64() {
        words.extend(["--cpus".to_owned(), (cpus / 1e9).to_string()]);
    }
    for limit in host["Ulimits"].as_array().into_iter().flatten() {
        let figure = format!("{}={}:{}", text(&limit["Name"]), limit["Soft"], limit["Hard"]);
        words.extend(["--ulimit".to_owned(), figure]);
    }
    for (target, options) in host["Tmpfs"].as_object().into_iter().flatten() {
        words.extend(["--tmpfs".to_owned(), format!("{target}:{}", text(options))]);
    }
    for mount in host["Mounts"].as_array().into_iter().flatten() {
        let mut one = format!(
            "type={},source={},target={}",
            text(&mount["Type"]),
            text(&mount["Source"]),
            text(&mount["Target"])
        );
        if mount["Type"] == "bind" {
            one.push_str(",bind-propagation=private,bind-nonrecursive");
        }
        if mount["ReadOnly"] == true {
            one.push_str(",readonly");
        }
        words.extend(["--mount".to_owned(), one]);
    }
    words.extend(["--entrypoint".to_owned(), "/bin/true".to_owned(), image.to_owned()]);
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_kind_of_mount_has_words() {
        let source = |path| json!({ "path": path, "identity": [1, 2] });
        let bind = json!({ "bind": { "source": source("/usr/lib"), "target": "/lib" } });
        assert_eq!(alike(&bind).unwrap(), ["--ro-bind", "/usr/lib", "/lib"]);
        let tmpfs = json!({ "tmpfs": { "target": "/tmp", "size": 4096, "mode": 1023 } });
        let words = ["--size", "4096", "--perms", "1777", "--tmpfs", "/tmp"];
        assert_eq!(alike(&tmpfs).unwrap(), words);
        let layers = json!([source("/covers"), source("/w")]);
        let overlay = json!({ "overlay": { "layers": layers, "target": "/w" } });
        assert_eq!(alike(&overlay).unwrap(), ["--ro-bind", "/w", "/w"]);
        assert_eq!(alike(&json!({ "other": { "target": "/w" } })), None);
        let path = json!([255, 254]);
        let bind = json!({ "bind": { "source": { "path": path }, "target": "/lib" } });
        assert_eq!(alike(&bind), None, "a path that is not text");
    }
}
