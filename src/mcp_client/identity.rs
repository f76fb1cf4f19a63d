//! What a server is made from: its definition, its program, and the files that it is started with.
//!
//! Duty: one digest that changes whenever a server may have become another, and which part of it changed. It is looked
//! at where the server is defined and where it runs (the workspace), without starting anything. Non-goal: everything that a
//! program may read when it runs; a call asks the server again what its tool is, and compares.

use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use crate::config::{Server, ServerName};

/// Files up to this size are known by their content; a larger one by what the file system says of it.
const MAX_READ: u64 = 4 << 20;

/// One thing that a server is made from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    /// Its path, or what it is.
    pub path: String,
    /// Stands for its content.
    pub digest: String,
}

/// All of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Stands for all.
    pub digest: String,
    /// Each.
    pub inputs: Vec<Input>,
    /// The caller's `PATH`, by which its program was found.
    path: Option<OsString>,
}

/// Something that is not what it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved {
    /// Which.
    pub path: String,
}

impl Identity {
    /// Of a server that runs in `root`. `policy` is the digest of the policy that it names, if that can be used; `path` is
    /// the caller's `PATH`.
    #[must_use]
    pub fn of(
        name: &ServerName,
        server: &Server,
        root: &Path,
        policy: Option<&str>,
        path: Option<OsString>,
    ) -> Self {
        let mut inputs = vec![Input { path: format!("mcp.servers.{name}"), digest: said(server) }];
        if let Some(named) = &server.policy {
            let digest = policy.unwrap_or("unusable").to_owned();
            inputs.push(Input { path: policy_path(named), digest });
        }
        let mut words = server.command.iter();
        if let Some(program) = words.next() {
            let found = find(program, root, path.as_deref());
            let shown =
                found.as_ref().map_or_else(|| program.clone(), |it| it.display().to_string());
            let digest = found.and_then(|path| looked(&path)).unwrap_or_else(absent);
            inputs.push(Input { path: shown, digest });
        }
        for word in words {
            let path = root.join(word);
            // A word that names no file is a word: the definition has it.
            if let Some(digest) = looked(&path) {
                inputs.push(Input { path: path.display().to_string(), digest });
            }
        }
        let mut hasher = blake3::Hasher::new();
        for input in &inputs {
            hasher.update(input.path.as_bytes());
            hasher.update(&[0]);
            hasher.update(input.digest.as_bytes());
            hasher.update(&[0]);
        }
        Self { digest: hasher.finalize().to_hex().to_string(), inputs, path }
    }

    /// The same server, looked at again. The policy is the one that was loaded: it does not change while a call runs.
    #[must_use]
    pub fn again(&self, name: &ServerName, server: &Server, root: &Path) -> Self {
        let path = server.policy.as_deref().map(policy_path);
        let policy = self.inputs.iter().find(|input| Some(&input.path) == path.as_ref());
        let policy = policy.map(|input| input.digest.as_str());
        Self::of(name, server, root, policy, self.path.clone())
    }

    /// Whether it is still the same, and what is not.
    ///
    /// # Errors
    /// Something is not what it was.
    pub fn same(&self, now: &Self) -> Result<(), Moved> {
        if self.digest == now.digest {
            return Ok(());
        }
        let differs = |input: &&Input| !now.inputs.contains(input);
        let gone = self.inputs.iter().find(differs);
        let new = || now.inputs.iter().find(|input| !self.inputs.contains(input));
        let path = gone.or_else(new).map(|input| input.path.clone());
        Err(Moved { path: path.unwrap_or_default() })
    }
}

fn policy_path(named: &str) -> String {
    format!("policy {named}")
}

fn absent() -> String {
    "absent".to_owned()
}

/// The definition, as far as it decides what runs and what is taken of it.
fn said(server: &Server) -> String {
    let Server { command, env, policy, tools, timeout } = server;
    let text = format!("{:?}", (command, env, policy, tools, timeout));
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

/// Where a program is, by the caller's own `PATH`; a path is taken from the workspace.
fn find(program: &str, root: &Path, path: Option<&OsStr>) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(root.join(program));
    }
    let runs = |path: &PathBuf| {
        let meta = path.metadata();
        meta.is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    std::env::split_paths(path?)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(program))
        .find(runs)
}

/// What stands for a regular file; `None` if there is none. Nothing else is opened: a pipe could hold us up.
fn looked(path: &Path) -> Option<String> {
    let meta = path.metadata().ok().filter(std::fs::Metadata::is_file)?;
    let mut hasher = blake3::Hasher::new();
    if meta.len() <= MAX_READ
        && let Some(bytes) = content(path)
    {
        hasher.update(&bytes);
    } else {
        let facts = (meta.dev(), meta.ino(), meta.len(), meta.mtime(), meta.mtime_nsec());
        let changed = (meta.ctime(), meta.ctime_nsec(), meta.mode(), meta.uid());
        hasher.update(format!("{facts:?} {changed:?}").as_bytes());
    }
    Some(hasher.finalize().to_hex().to_string())
}

fn content(path: &Path) -> Option<Vec<u8>> {
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    let file: File = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    let mut bytes = Vec::new();
    file.take(MAX_READ + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= MAX_READ).then_some(bytes)
}
