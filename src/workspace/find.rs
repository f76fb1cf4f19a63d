//! Finds the workspace of a call and holds it open.
//!
//! Duty: from the directory a caller names to a [`Workspace`]: an absolute path without links, a handle
//! on it, and its identity. Non-goals: deciding what in it may be used. Trust boundary: whoever
//! names the directory is trusted, what lies in it is not. Everything below the workspace is opened
//! through [`Workspace::open`], which never follows a link and never leaves the workspace.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, Stat, fstat, openat, openat2};

use crate::codes::Code;
use crate::error::{Failure, Fault};
use crate::exit::Kind;

use super::own_folders::{OwnFolder, overlap, own_folders};
use crate::environment::Environment;
use crate::ids::Identity;

/// The names that make a folder a workspace.
const MARKERS: [&str; 2] = [".runner", ".git"];

/// Folders of the system, which no call may have as its workspace.
const SYSTEM: [&str; 16] = [
    "/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib32", "/lib64", "/proc", "/run", "/sbin",
    "/sys", "/tmp", "/usr", "/var", "/var/tmp",
];

/// Why there is no workspace, or no place in it to start from.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// Nothing is there.
    #[error("workspace {0} does not exist")]
    Missing(PathBuf),
    /// Something else than a folder is there.
    #[error("workspace {0} is not a folder")]
    NotADirectory(PathBuf),
    /// The current directory was deleted under the caller.
    #[error("the current directory was deleted")]
    Deleted,
    /// The path leads through a link.
    #[error("{path} leads through a link to {real}")]
    ThroughLink {
        /// As it was named.
        path: PathBuf,
        /// Where it leads.
        real: PathBuf,
    },
    /// The place to start from is not in the workspace.
    #[error("{path} is outside the workspace {workspace}")]
    Outside {
        /// Where the call should start.
        path: PathBuf,
        /// The workspace.
        workspace: PathBuf,
    },
    /// A home directory or one of its parents, which holds far more than one project.
    #[error("{0} would be the workspace, and it holds a home directory")]
    Home(PathBuf),
    /// A folder of the system.
    #[error("{0} belongs to the system and cannot be a workspace")]
    System(PathBuf),
    /// It holds a folder of ours, or lies in one: what runs there could forge what we believe.
    #[error("{workspace} would be the workspace, and {} is runner's own", .own.path.display())]
    Ours {
        /// The workspace.
        workspace: PathBuf,
        /// Where the call should start.
        cwd: PathBuf,
        /// Our folder.
        own: OwnFolder,
    },
    /// The folder cannot be opened.
    #[error("cannot open workspace {0}: {1}")]
    Open(PathBuf, #[source] io::Error),
}

impl Failure for WorkspaceError {
    fn code(&self) -> Code {
        match self {
            Self::Missing(_) => Code::WorkspaceMissing,
            Self::NotADirectory(_) => Code::WorkspaceNotAFolder,
            Self::Deleted => Code::WorkspaceDeleted,
            Self::ThroughLink { .. } => Code::WorkspaceThroughLink,
            Self::Outside { .. } => Code::WorkspaceOutside,
            Self::Home(_) => Code::WorkspaceIsHome,
            Self::System(_) => Code::WorkspaceIsSystem,
            Self::Ours { .. } => Code::WorkspaceIsOurs,
            Self::Open(..) => Code::WorkspaceUnreadable,
        }
    }

    fn kind(&self) -> Kind {
        Kind::Broken
    }

    fn fault(&self) -> Fault {
        Fault::Usage
    }

    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Missing(_) => "name an existing folder with --workdir".to_owned(),
            Self::NotADirectory(_) => "name the folder it lies in with --workdir".to_owned(),
            Self::Deleted => "change to an existing folder, or name one with --workdir".to_owned(),
            Self::ThroughLink { real, .. } => format!("use --workdir {}", real.display()),
            Self::Outside { .. } => "start the command in the workspace".to_owned(),
            Self::Home(_) => "change to a project folder, or name one with --workdir".to_owned(),
            Self::System(_) => "name a project folder with --workdir".to_owned(),
            Self::Ours { own, .. } => match own.variable {
                Some(variable) => format!(
                    "name a project folder with --workdir, or set {variable} to a folder outside the workspace"
                ),
                None => "name a project folder with --workdir".to_owned(),
            },
            Self::Open(..) => {
                "check its permissions, or name another folder with --workdir".to_owned()
            }
        })
    }
}

/// The directory a call is about, held open.
#[derive(Debug)]
pub struct Workspace {
    root: PathBuf,
    cwd: PathBuf,
    handle: OwnedFd,
    identity: Identity,
    owner: Owner,
    others: OthersMay,
}

/// Whom a file belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    /// User id on the host.
    pub uid: u32,
    /// Group id on the host.
    pub gid: u32,
}

/// Whether users other than the owner can look into a workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OthersMay {
    /// They can read and enter it.
    Enter,
    /// They cannot.
    NotEnter,
}

impl Workspace {
    /// The workspace of a call that starts in `start` (absolute), or in the current directory.
    ///
    /// The nearest parent with a marker, below `HOME`, else `start` itself. A home directory is never a
    /// workspace, so a marker there (say, of a repository of dot files) does not count.
    ///
    /// # Errors
    /// See [`WorkspaceError`].
    pub fn find(start: Option<&Path>, environment: &Environment) -> Result<Self, WorkspaceError> {
        let cwd = match start {
            Some(path) => without_dots(&absolute(path)?),
            None => current_dir()?,
        };
        let handle = open_folder(&cwd)?;
        let home = environment.home();
        refuse_shared(&cwd, home.as_deref())?;
        let mut root = cwd.clone();
        for parent in cwd.ancestors() {
            if refuse_shared(parent, home.as_deref()).is_err() {
                break;
            }
            if MARKERS.iter().any(|name| parent.join(name).symlink_metadata().is_ok()) {
                root = parent.to_owned();
                break;
            }
        }
        let handle = if root == cwd { handle } else { open_folder(&root)? };
        Self::from_parts(root, cwd, handle, environment)
    }

    /// A workspace that is named, with the place in it where the command starts.
    ///
    /// # Errors
    /// See [`WorkspaceError`].
    pub fn open_at(
        root: &Path,
        cwd: &Path,
        environment: &Environment,
    ) -> Result<Self, WorkspaceError> {
        let root = without_dots(&absolute(root)?);
        let cwd = without_dots(&absolute(cwd)?);
        if !cwd.starts_with(&root) {
            return Err(WorkspaceError::Outside { path: cwd, workspace: root });
        }
        refuse_shared(&root, environment.home().as_deref())?;
        let handle = open_folder(&root)?;
        open_folder(&cwd)?;
        Self::from_parts(root, cwd, handle, environment)
    }

    fn from_parts(
        root: PathBuf,
        cwd: PathBuf,
        handle: OwnedFd,
        environment: &Environment,
    ) -> Result<Self, WorkspaceError> {
        let stat =
            fstat(&handle).map_err(|error| WorkspaceError::Open(root.clone(), error.into()))?;
        let identity = identity_of(&stat);
        if let Some(own) = overlap(&root, identity, own_folders(environment)) {
            return Err(WorkspaceError::Ours { workspace: root, cwd, own });
        }
        let open = stat.st_mode & 0o005 == 0o005;
        Ok(Self {
            root,
            cwd,
            handle,
            identity,
            owner: Owner { uid: stat.st_uid, gid: stat.st_gid },
            others: if open { OthersMay::Enter } else { OthersMay::NotEnter },
        })
    }

    /// Its absolute path, without links.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where the command starts: the root or below it.
    #[must_use]
    pub fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// What it is, whatever it is called.
    #[must_use]
    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// Whom it belongs to.
    #[must_use]
    pub fn owner(&self) -> Owner {
        self.owner
    }

    /// Whether users other than its owner can look into it.
    #[must_use]
    pub fn others(&self) -> OthersMay {
        self.others
    }

    /// The handle on its root.
    #[must_use]
    pub fn handle(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }

    /// Opens a folder for reading, following no link and never leaving the workspace.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_folder(&self, relative: &Path) -> io::Result<OwnedFd> {
        let path: &OsStr =
            if relative.as_os_str().is_empty() { ".".as_ref() } else { relative.as_os_str() };
        let handle = openat2(
            &self.handle,
            path,
            OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
            Mode::empty(),
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS,
        )?;
        Ok(handle)
    }

    /// Opens what lies at `relative`, following no link and never leaving the workspace. A link at the end
    /// is itself what is opened. The handle names the object (`O_PATH`), it does not read it.
    ///
    /// # Errors
    /// As `openat2`: `ELOOP` where a link stands on the way, `EXDEV` where the path leaves, `ENOENT` where nothing is.
    pub fn open(&self, relative: &Path) -> io::Result<Found> {
        let path: &OsStr =
            if relative.as_os_str().is_empty() { ".".as_ref() } else { relative.as_os_str() };
        let handle = openat2(
            &self.handle,
            path,
            OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC,
            Mode::empty(),
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS,
        )?;
        Found::new(handle)
    }
}

/// An object that was opened, with what it is.
#[derive(Debug)]
pub struct Found {
    /// Handle that names it.
    pub handle: OwnedFd,
    /// What it is, whatever it is called.
    pub identity: Identity,
    /// Folder, file, link or special.
    pub kind: FileType,
    /// Whom it belongs to.
    pub owner: Owner,
    /// Names it has.
    pub links: u64,
    /// Its bytes.
    pub size: u64,
    mode: u32,
}

impl Found {
    pub(super) fn new(handle: OwnedFd) -> io::Result<Self> {
        let stat = fstat(&handle)?;
        Ok(Self {
            handle,
            identity: identity_of(&stat),
            kind: FileType::from_raw_mode(stat.st_mode),
            owner: Owner { uid: stat.st_uid, gid: stat.st_gid },
            links: stat.st_nlink,
            size: u64::try_from(stat.st_size).unwrap_or(0),
            mode: stat.st_mode,
        })
    }

    /// Whether a user without capabilities can read a folder and enter it.
    #[must_use]
    pub fn lets_in(&self, user: Owner) -> bool {
        lets_in(self.mode, self.owner, user)
    }
}

/// Whether permission bits let a user without capabilities read a folder and enter it.
pub(crate) fn lets_in(mode: u32, owner: Owner, user: Owner) -> bool {
    let bits = if owner.uid == user.uid {
        mode >> 6
    } else if owner.gid == user.gid {
        mode >> 3
    } else {
        mode
    };
    bits & 0o5 == 0o5
}

/// The identity in a `stat`.
pub(super) fn identity_of(stat: &Stat) -> Identity {
    Identity { dev: stat.st_dev, ino: stat.st_ino }
}

fn current_dir() -> Result<PathBuf, WorkspaceError> {
    match std::env::current_dir() {
        // The kernel marks a deleted directory by a path that does not start at the root, or that
        // names nothing any more; the standard library passes `ENOENT` on.
        Ok(path) if path.is_absolute() => Ok(path),
        Ok(_) => Err(WorkspaceError::Deleted),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(WorkspaceError::Deleted),
        Err(error) => Err(WorkspaceError::Open(PathBuf::from("."), error)),
    }
}

fn absolute(path: &Path) -> Result<PathBuf, WorkspaceError> {
    if path.is_absolute() { Ok(path.to_owned()) } else { Ok(current_dir()?.join(path)) }
}

/// Drops `.` and empty parts, and resolves `..` by name: a link before a `..` is found by
/// [`open_folder`] only if it is still part of the path, so a `..` keeps its parent checked there.
fn without_dots(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                clean.pop();
            }
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) | Component::Normal(_) => clean.push(part),
        }
    }
    clean
}

/// Opens an absolute folder without following any link.
fn open_folder(path: &Path) -> Result<OwnedFd, WorkspaceError> {
    use rustix::io::Errno;

    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    match openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        Ok(handle) => Ok(handle),
        Err(Errno::LOOP) => Err(through_link(path)),
        Err(Errno::NOENT) => Err(WorkspaceError::Missing(path.to_owned())),
        // `ENOTDIR` is also what a file in the middle of the path gives.
        Err(Errno::NOTDIR) => {
            match openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) {
                Ok(_) => Err(WorkspaceError::NotADirectory(path.to_owned())),
                Err(_) => Err(WorkspaceError::Missing(path.to_owned())),
            }
        }
        Err(error) => Err(WorkspaceError::Open(path.to_owned(), error.into())),
    }
}

fn through_link(path: &Path) -> WorkspaceError {
    match path.canonicalize() {
        Ok(real) => WorkspaceError::ThroughLink { path: path.to_owned(), real },
        Err(_) => WorkspaceError::Missing(path.to_owned()),
    }
}

/// Refuses folders that hold more than a project.
fn refuse_shared(path: &Path, home: Option<&Path>) -> Result<(), WorkspaceError> {
    if path == Path::new("/") || home.is_some_and(|home| home.starts_with(path)) {
        return Err(WorkspaceError::Home(path.to_owned()));
    }
    if SYSTEM.iter().any(|folder| path == Path::new(folder)) {
        return Err(WorkspaceError::System(path.to_owned()));
    }
    if ["/proc", "/sys", "/dev", "/run"].iter().any(|folder| path.starts_with(folder)) {
        return Err(WorkspaceError::System(path.to_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::symlink;

    /// A real (link-free) temporary folder.
    fn folder() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().canonicalize().unwrap();
        (dir, real)
    }

    #[test]
    fn the_nearest_marker_wins_and_none_means_the_start() {
        let (_dir, top) = folder();
        std::fs::create_dir_all(top.join("a/.git")).unwrap();
        std::fs::create_dir_all(top.join("a/b/.runner")).unwrap();
        std::fs::create_dir_all(top.join("a/b/c")).unwrap();
        std::fs::create_dir_all(top.join("x/y")).unwrap();
        let found = |start: &str| {
            let workspace =
                Workspace::find(Some(&top.join(start)), &Environment::default()).unwrap();
            assert_eq!(workspace.cwd(), top.join(start));
            workspace.root().strip_prefix(&top).unwrap().to_owned()
        };
        assert_eq!(found("a/b/c"), Path::new("a/b"));
        assert_eq!(found("a"), Path::new("a"));
        assert_eq!(found("x/y"), Path::new("x/y"));
    }

    #[test]
    fn a_home_directory_is_no_workspace_and_its_marker_does_not_count() {
        let (_dir, home) = folder();
        let at_home = Environment::from_iter([("HOME", &home)]);
        std::fs::create_dir_all(home.join(".git")).unwrap();
        std::fs::create_dir_all(home.join("notes/old")).unwrap();
        let workspace = Workspace::find(Some(&home.join("notes/old")), &at_home).unwrap();
        assert_eq!(workspace.root(), home.join("notes/old"));
        for path in [home.as_path(), home.parent().unwrap(), Path::new("/")] {
            assert!(matches!(Workspace::find(Some(path), &at_home), Err(WorkspaceError::Home(_))));
        }
        assert!(matches!(
            Workspace::find(Some(Path::new("/etc")), &Environment::default()),
            Err(WorkspaceError::System(_))
        ));
        assert!(matches!(
            Workspace::find(Some(Path::new("/proc/self")), &Environment::default()),
            Err(WorkspaceError::ThroughLink { .. })
        ));
    }

    #[test]
    fn missing_files_and_links_are_told_apart() {
        let (_dir, top) = folder();
        std::fs::write(top.join("file"), "").unwrap();
        std::fs::create_dir(top.join("real")).unwrap();
        std::fs::create_dir(top.join("real/in")).unwrap();
        symlink("real", top.join("link")).unwrap();
        let find = |name: &str| {
            Workspace::find(Some(&top.join(name)), &Environment::default()).unwrap_err()
        };
        assert!(matches!(find("nothing"), WorkspaceError::Missing(_)));
        assert!(matches!(find("file"), WorkspaceError::NotADirectory(_)));
        assert!(matches!(find("file/below"), WorkspaceError::Missing(_)));
        match find("link/in") {
            WorkspaceError::ThroughLink { real, .. } => assert_eq!(real, top.join("real/in")),
            other => panic!("{other:?}"),
        }
        assert!(find("nothing").hint().unwrap().contains("--workdir"));
    }

    #[test]
    fn a_place_outside_the_named_workspace_is_refused() {
        let (_dir, top) = folder();
        std::fs::create_dir_all(top.join("dir")).unwrap();
        std::fs::create_dir_all(top.join("dir2")).unwrap();
        let outside =
            Workspace::open_at(&top.join("dir"), &top.join("dir2"), &Environment::default())
                .unwrap_err();
        assert!(matches!(outside, WorkspaceError::Outside { .. }));
        let sneaky =
            Workspace::open_at(&top.join("dir"), &top.join("dir/../dir2"), &Environment::default())
                .unwrap_err();
        assert!(matches!(sneaky, WorkspaceError::Outside { .. }));
    }

    #[test]
    fn odd_bytes_in_a_path_are_no_obstacle() {
        let (_dir, top) = folder();
        for name in [&b"a b"[..], b"a:b,c", b"q'\"q", b"new\nline", b"\xff\xfe"] {
            let path = top.join(OsStr::from_bytes(name));
            std::fs::create_dir(&path).unwrap();
            assert_eq!(Workspace::find(Some(&path), &Environment::default()).unwrap().root(), path);
        }
    }

    #[test]
    fn permission_bits_are_read_as_the_kernel_does() {
        let (ann, bob) = (Owner { uid: 1, gid: 1 }, Owner { uid: 2, gid: 1 });
        let root = Owner { uid: 0, gid: 0 };
        assert!(
            lets_in(0o700, ann, ann) && !lets_in(0o700, ann, bob) && !lets_in(0o700, ann, root)
        );
        assert!(
            lets_in(0o750, ann, bob) && lets_in(0o755, ann, root) && !lets_in(0o711, ann, root)
        );
        assert!(!lets_in(0o077, ann, ann), "the owner's bits alone count for the owner");
    }

    #[test]
    fn nothing_is_opened_through_a_link_or_outside() {
        let (_dir, top) = folder();
        std::fs::create_dir_all(top.join("ws/sub")).unwrap();
        std::fs::write(top.join("secret"), "").unwrap();
        symlink("../secret", top.join("ws/out")).unwrap();
        symlink("sub", top.join("ws/in")).unwrap();
        let workspace = Workspace::find(Some(&top.join("ws")), &Environment::default()).unwrap();
        assert_eq!(workspace.open(Path::new("")).unwrap().identity, workspace.identity());
        assert_eq!(workspace.open(Path::new("sub")).unwrap().kind, FileType::Directory);
        for link in ["out", "in"] {
            assert_eq!(workspace.open(Path::new(link)).unwrap().kind, FileType::Symlink);
        }
        for path in ["in/x", "in/.", "../secret", "/etc/passwd"] {
            assert!(workspace.open(Path::new(path)).is_err(), "{path}");
        }
    }
}
