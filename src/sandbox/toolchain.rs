//! The host's programs in a sandbox (image `host`): what is mounted so that toolchains work.
//!
//! Duty: system folders, the parts of `/etc` that programs need, the toolchains on the caller's `PATH` with the
//! variables they need, and a `PATH` built from nothing. Non-goals: finding out which of them a command
//! needs. Trust boundary: the caller's home is not the adversary's, but it is the caller's secret:
//! only known toolchain folders are taken from it, credentials in them are covered, and neither the
//! home nor anything above it is ever mounted. All is read-only. A folder of the workspace is on this `PATH`
//! only for a call that may run code, and only the one of an activated virtual environment, or
//! `node_modules/.bin`, that the caller's own `PATH` has.
//!
//! Cargo works offline on a read-only `CARGO_HOME`: it takes no locks on a read-only file system, and the
//! registry's unpacked sources are already there.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::sockets;
use super::toolchain_table::{
    CREDENTIALS, ETC, EXTRAS, KNOWN, Known, MAX_RECEIPTS, NIX_STORE, PYTHONS, RECEIPTS, SYSTEM,
    SYSTEM_PATH,
};
use super::virtual_env::{activated, interpreter, is_environment, is_of_packages};
use crate::engine::plan::{Environment, MaskKind, Mount, MountRole, Note};
use crate::ids::Identity;
use crate::workspace::grants::Code;
use crate::workspace::mountinfo::MountPoints;
use crate::workspace::{Owner, lets_in};

/// What the caller's own environment says.
pub struct Caller<'a> {
    /// The home directory.
    pub home: Option<&'a Path>,
    /// A variable of the caller's environment.
    pub variable: &'a (dyn Fn(&str) -> Option<OsString> + Sync),
    /// The workspace: nothing in it counts as a toolchain.
    pub workspace: &'a Path,
    /// What is mounted on the host.
    pub points: &'a MountPoints,
    /// Who the command runs as; a toolchain that is closed to them is of no use.
    pub user: Owner,
    /// Whether the command may run code: then it may find programs of the workspace.
    pub code: Code,
    /// The one program that is wanted; `None` for all that is on the caller's `PATH`.
    pub only: Option<&'a str>,
}

/// What a sandbox gets of the host's programs.
#[derive(Debug, Default)]
pub struct Toolchains {
    /// Read-only mounts, by target.
    pub mounts: Vec<Mount>,
    /// Credentials in them that must be covered: target, and what covers it.
    pub hidden: Vec<(PathBuf, MaskKind, Identity)>,
    /// Variables that toolchains need, `PATH` among them.
    pub env: Environment,
    /// What a user should know.
    pub notes: Vec<Note>,
}

/// Where JVMs of the system lie.
const JVMS: &str = "/usr/lib/jvm";

/// Finds the host's programs.
#[must_use]
pub fn find(caller: &Caller<'_>) -> Toolchains {
    let mut finder = Finder {
        caller,
        mounts: BTreeMap::new(),
        out: Toolchains::default(),
        path: Vec::new(),
        taken: BTreeMap::new(),
        folders: BTreeMap::new(),
    };
    finder.system();
    finder.toolchains();
    finder.finish()
}

/// The folders in `/etc` where a JVM of this name may have its settings: that of `java-17-openjdk`, or of
/// `java-17-openjdk-amd64`, is `java-17-openjdk`. The listing of `/etc` itself is long.
fn java_settings(jvm: &OsStr) -> Vec<PathBuf> {
    let Some(name) = jvm.to_str().filter(|name| name.starts_with("java-")) else {
        return Vec::new();
    };
    let without_machine = name.rsplit_once('-').map(|(rest, _)| rest);
    let names = [Some(name), without_machine.filter(|rest| rest.contains('-'))];
    names.into_iter().flatten().map(|name| Path::new("/etc").join(name)).collect()
}

/// `PATH` of the system alone.
#[must_use]
pub fn system_path() -> String {
    SYSTEM_PATH.join(":")
}

struct Finder<'a> {
    caller: &'a Caller<'a>,
    /// By target: source, identity, role.
    mounts: BTreeMap<PathBuf, (PathBuf, Identity, MountRole)>,
    out: Toolchains,
    path: Vec<PathBuf>,
    /// Toolchains that were looked at, and whether they could be mounted: several folders of a `PATH` belong to one.
    taken: BTreeMap<PathBuf, bool>,
    /// Where folders lead, if they are there.
    folders: BTreeMap<PathBuf, Option<PathBuf>>,
}

impl Finder<'_> {
    fn system(&mut self) {
        let points = self.caller.points;
        for folder in SYSTEM {
            let folder = Path::new(folder);
            self.mount_if_there(folder, MountRole::System);
            for below in points.below(folder) {
                self.mount_if_there(below, MountRole::System);
            }
        }
        for name in ETC {
            self.mount_if_there(&Path::new("/etc").join(name), MountRole::System);
        }
        for entry in std::fs::read_dir(JVMS).into_iter().flatten().flatten() {
            for folder in java_settings(&entry.file_name()) {
                self.mount_if_there(&folder, MountRole::System);
            }
        }
    }

    fn toolchains(&mut self) {
        let path = (self.caller.variable)("PATH").unwrap_or_default();
        for folder in std::env::split_paths(&path) {
            if !folder.is_absolute() || self.path.contains(&folder) || !folder.is_dir() {
                continue;
            }
            let wanted = self.caller.only.is_none_or(|name| folder.join(name).is_file());
            if !wanted {
                continue;
            }
            if SYSTEM.iter().any(|system| folder.starts_with(system)) {
                continue;
            }
            self.path_folder(&folder);
        }
    }

    /// Takes a folder of the caller's `PATH`, if it belongs to a toolchain.
    fn path_folder(&mut self, folder: &Path) {
        let root = activated(folder, (self.caller.variable)("VIRTUAL_ENV").map(PathBuf::from));
        if folder.starts_with(self.caller.workspace) {
            self.own_folder(folder, root);
            return;
        }
        if self.caller.workspace.starts_with(folder) {
            self.skip(folder, "it belongs to the workspace");
            return;
        }
        if let Some(in_store) = self.in_store(folder) {
            let store = Path::new(NIX_STORE);
            if self.toolchain(store, None) && !self.path.contains(&in_store) {
                self.path.push(in_store);
            }
            return;
        }
        if let Some(root) = root {
            if self.toolchain(&root, Some("VIRTUAL_ENV")) {
                self.path.push(folder.to_owned());
                self.python_of(&root);
            }
            return;
        }
        if let Some((root, known)) = self.known(folder) {
            for name in known.also {
                if let Some(path) = self.place(name.variable, name.below_home) {
                    self.toolchain(&path, name.variable);
                }
            }
            if self.toolchain(&root, known.variable) {
                self.path.push(folder.to_owned());
            }
            for (name, value) in known.set {
                self.out.env.insert((*name).into(), (*value).into());
            }
            return;
        }
        let root = match self.caller.home.and_then(|home| folder.strip_prefix(home).ok()) {
            // A folder of programs and nothing else.
            Some(below) if below == Path::new("bin") || below == Path::new(".local/bin") => {
                folder.to_owned()
            }
            Some(_) => {
                self.skip(folder, "it is not a toolchain that is known");
                return;
            }
            None => match package_root(folder) {
                Some(root) => root,
                None => {
                    self.skip(folder, "it belongs to no toolchain that is known");
                    return;
                }
            },
        };
        if self.toolchain(&root, None) {
            self.path.push(folder.to_owned());
            if folder.ends_with(".local/bin") {
                self.extras();
            }
        }
    }

    /// Takes a folder of the workspace, which the command sees anyway. `environment` is the activated one that it
    /// belongs to.
    fn own_folder(&mut self, folder: &Path, environment: Option<PathBuf>) {
        if environment.is_none() && !is_of_packages(folder) {
            self.skip(folder, "it belongs to the workspace");
            return;
        }
        if self.caller.only.is_some() || self.caller.code == Code::NotGranted {
            self.skip(folder, "programs of the workspace are code, which this call may not run");
            return;
        }
        if let Some(root) = environment {
            self.python_of(&root);
            self.out.env.insert("VIRTUAL_ENV".into(), root.into());
        }
        self.path.push(folder.to_owned());
    }

    /// The installation of Python that a virtual environment stands on, if it is a known one.
    fn python_of(&mut self, root: &Path) {
        let Some(python) = interpreter(root) else { return };
        for known in PYTHONS {
            let Some(root) = self.place(known.variable, known.below_home) else { continue };
            if self.real_folder(&root).is_some_and(|real| python.starts_with(real)) {
                self.toolchain(&root, None);
            }
        }
    }

    /// Where a folder of `PATH` lies in the store of Nix: profiles lead there.
    fn in_store(&mut self, folder: &Path) -> Option<PathBuf> {
        let real = self.real_folder(folder)?;
        let below = real.strip_prefix(NIX_STORE).ok()?;
        (below.components().count() > 1).then_some(real)
    }

    /// What programs in `~/.local/bin` are often links or wrappers to.
    fn extras(&mut self) {
        let Some(home) = self.caller.home else { return };
        for extra in EXTRAS {
            if let Some(path) = self.place(extra.variable, extra.below_home)
                && path.is_dir()
                && !path.starts_with(self.caller.workspace)
                && !self.caller.workspace.starts_with(&path)
            {
                self.toolchain(&path, None);
            }
        }
        if self.mounts.contains_key(&home.join(".local/lib")) {
            self.out.env.insert("PYTHONUSERBASE".into(), home.join(".local").into());
        }
    }

    /// The toolchain that a folder of `PATH` belongs to, and where it is installed.
    fn known(&self, folder: &Path) -> Option<(PathBuf, &'static Known)> {
        KNOWN.iter().find_map(|known| {
            let root = self.place(known.variable, known.below_home)?;
            folder.starts_with(&root).then_some((root, known))
        })
    }

    /// Where a toolchain is: as its variable says, else at its usual place in the home.
    fn place(&self, variable: Option<&str>, below_home: &str) -> Option<PathBuf> {
        variable
            .and_then(|name| (self.caller.variable)(name))
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
            .or_else(|| self.caller.home.map(|home| home.join(below_home)))
    }

    /// Mounts a toolchain and sets its variable. Whether it could.
    fn toolchain(&mut self, root: &Path, variable: Option<&str>) -> bool {
        let mounted = match self.taken.get(root) {
            Some(mounted) => *mounted,
            None => {
                let mounted = self.take(root);
                self.taken.insert(root.to_owned(), mounted);
                mounted
            }
        };
        if let Some(variable) = variable.filter(|_| mounted) {
            self.out.env.insert(variable.into(), root.into());
        }
        mounted
    }

    fn take(&mut self, root: &Path) -> bool {
        let real = self.real(root);
        if self.holds_home(root, real.as_ref().map(|(real, _)| real.as_path())) {
            self.skip(root, "it holds the home directory");
            return false;
        }
        let Some((source, found)) = real.filter(|(_, found)| found.is_dir()) else { return false };
        // A link from outside: a mount of its own would lie beside the covers.
        if source.starts_with(self.caller.workspace) || self.caller.workspace.starts_with(&source) {
            self.skip(root, "it belongs to the workspace");
            return false;
        }
        let owner = Owner { uid: found.uid(), gid: found.gid() };
        if !lets_in(found.mode(), owner, self.caller.user) {
            self.skip(root, "it is closed to the user that the command runs as");
            return false;
        }
        self.mount(root, source, &found, MountRole::Toolchain);
        for (name, kind) in CREDENTIALS {
            self.hide(&root.join(name), *kind);
        }
        self.hide_tokens(&root.join("config.toml"));
        self.hide_tokens(&root.join("config"));
        if root != Path::new(NIX_STORE) {
            self.installed(root);
        }
        true
    }

    /// Hides what installers note in each folder of a toolchain, and in the toolchain's own. Takes what the virtual
    /// environments among them stand on.
    fn installed(&mut self, root: &Path) {
        let entries = std::fs::read_dir(root).into_iter().flatten().flatten().take(MAX_RECEIPTS);
        let below = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        let folders: Vec<PathBuf> = below.map(|entry| entry.path()).collect();
        for folder in folders.iter().map(PathBuf::as_path).chain([root]) {
            for name in RECEIPTS {
                self.hide(&folder.join(name), MaskKind::File);
            }
        }
        for folder in folders.iter().filter(|folder| is_environment(folder)) {
            self.python_of(folder);
        }
    }

    /// Whether mounting this would show the home directory, by its name or by where it leads.
    fn holds_home(&mut self, path: &Path, real: Option<&Path>) -> bool {
        let Some(home) = self.caller.home else { return path == Path::new("/") };
        let real_home = self.real_folder(home).unwrap_or_else(|| home.to_owned());
        home.starts_with(path) || real_home.starts_with(real.unwrap_or(path))
    }

    fn hide(&mut self, path: &Path, kind: MaskKind) {
        let Ok(found) = path.metadata() else { return };
        let right = match kind {
            MaskKind::File => found.is_file(),
            MaskKind::Folder => found.is_dir(),
        };
        if right {
            self.out.hidden.push((path.to_owned(), kind, identity(&found)));
        }
    }

    /// Cargo's configuration is needed, unless it contains a token.
    fn hide_tokens(&mut self, path: &Path) {
        let Ok(text) = std::fs::read_to_string(path) else { return };
        let secret = text.lines().any(|line| {
            let key = line.trim_start().split('=').next().unwrap_or_default().trim();
            matches!(key.rsplit('.').next(), Some("token" | "secret-key" | "password"))
        });
        if secret {
            self.hide(path, MaskKind::File);
            self.note(
                "hidden_credentials",
                format!("{} holds a token, and is hidden", path.display()),
            );
        }
    }

    /// Mounts a path as it is named, from where it leads.
    fn mount_if_there(&mut self, target: &Path, role: MountRole) {
        let real = self.real(target).filter(|(_, found)| found.is_dir() || found.is_file());
        if let Some((source, found)) = real {
            self.mount(target, source, &found, role);
        }
    }

    fn mount(&mut self, target: &Path, source: PathBuf, found: &Metadata, role: MountRole) {
        self.mounts.insert(target.components().collect(), (source, identity(found), role));
    }

    /// Where a path leads, and what is there. Most are no links, and lie in a few folders: one question each.
    fn real(&mut self, path: &Path) -> Option<(PathBuf, Metadata)> {
        if let Some((folder, name)) = path.parent().zip(path.file_name()) {
            let own = self.real_folder(folder)?.join(name);
            let found = own.symlink_metadata().ok()?;
            if !found.is_symlink() {
                return Some((own, found));
            }
        }
        let source = path.canonicalize().ok()?;
        let found = source.metadata().ok()?;
        Some((source, found))
    }

    fn real_folder(&mut self, folder: &Path) -> Option<PathBuf> {
        if let Some(known) = self.folders.get(folder) {
            return known.clone();
        }
        let real = folder.canonicalize().ok();
        self.folders.insert(folder.to_owned(), real.clone());
        real
    }

    fn skip(&mut self, folder: &Path, why: &str) {
        self.note(
            "path_skipped",
            format!("{} is on PATH but not in the sandbox: {why}", folder.display()),
        );
    }

    fn note(&mut self, code: &'static str, text: String) {
        self.out.notes.push(Note { code, text });
    }

    fn finish(mut self) -> Toolchains {
        self.path.extend(SYSTEM_PATH.iter().map(PathBuf::from));
        // Joining fails only for a folder with `:` in its name, which cannot be on a `PATH`.
        let path =
            std::env::join_paths(&self.path).unwrap_or_else(|_| SYSTEM_PATH.join(":").into());
        self.out.env.insert("PATH".into(), path);
        let nested = |target: &Path, all: &BTreeMap<PathBuf, (PathBuf, Identity, MountRole)>| {
            // What another mount shows anyway, at the same place, needs no mount of its own.
            target.ancestors().skip(1).any(|above| {
                all.get(above).is_some_and(|(source, ..)| {
                    let below = target.strip_prefix(above).unwrap_or(Path::new(""));
                    all.get(target).is_some_and(|(own, ..)| *own == source.join(below))
                })
            })
        };
        let points: Vec<&Path> =
            SYSTEM.iter().flat_map(|folder| self.caller.points.below(Path::new(folder))).collect();
        self.out.mounts = self
            .mounts
            .iter()
            .filter(|(target, _)| {
                points.contains(&target.as_path()) || !nested(target, &self.mounts)
            })
            .map(|(target, (source, identity, role))| Mount {
                source: source.clone(),
                target: target.clone(),
                identity: *identity,
                role: *role,
            })
            .collect();
        self.hide_sockets();
        self.out
    }

    /// Sockets of the host in what is mounted: a process of the host is behind each.
    fn hide_sockets(&mut self) {
        let mounts = &self.out.mounts;
        let both = mounts.iter().flat_map(|mount| [mount.source.as_path(), &mount.target]);
        for socket in sockets::below(both) {
            // A name below a source is one below its target, too.
            let shown = mounts.iter().find_map(|mount| {
                let below = socket.strip_prefix(&mount.source).ok()?;
                Some(mount.target.join(below))
            });
            let path = shown.unwrap_or(socket);
            if let Ok(found) = path.symlink_metadata() {
                self.out.hidden.push((path, MaskKind::File, identity(&found)));
            }
        }
    }
}

fn identity(found: &Metadata) -> Identity {
    Identity { dev: found.dev(), ino: found.ino() }
}

/// The folder that a package outside the home is installed in: `/opt/NAME`, Homebrew's.
fn package_root(folder: &Path) -> Option<PathBuf> {
    let mut parts = folder.iter().skip(1);
    let (first, second) = (parts.next()?, parts.next());
    if first == OsStr::new("opt") {
        return second.map(|name| Path::new("/opt").join(name));
    }
    let brew = "/home/linuxbrew/.linuxbrew";
    folder.starts_with(brew).then(|| PathBuf::from(brew))
}

#[cfg(test)]
#[path = "toolchain_tests.rs"]
mod tests;
