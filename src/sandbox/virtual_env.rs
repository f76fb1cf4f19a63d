//! Virtual environments of Python that the caller has activated, and folders of programs in the workspace.
//!
//! Duty: tell whether a folder of the caller's `PATH` is one, and which installation of Python it stands on.
//! Non-goals: mounting. Trust boundary: an environment in the workspace is the adversary's. Its links choose
//! among installations of Python that are known, and lead nowhere else.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// The file that makes a folder a virtual environment.
const MARKER: &str = "pyvenv.cfg";

/// The environment that a folder of programs belongs to: the one that `VIRTUAL_ENV` names, if it is one.
pub(super) fn activated(folder: &Path, named: Option<PathBuf>) -> Option<PathBuf> {
    let root = named.filter(|root| root.is_absolute())?;
    let own = folder.strip_prefix(&root).is_ok_and(|below| below == Path::new("bin"));
    (own && is_environment(&root)).then_some(root)
}

/// Whether a folder is a virtual environment.
pub(super) fn is_environment(folder: &Path) -> bool {
    folder.join(MARKER).is_file()
}

/// Whether a folder holds the programs of packages of a project: `node_modules/.bin`.
pub(super) fn is_of_packages(folder: &Path) -> bool {
    let mut names = folder.iter().rev();
    names.next() == Some(OsStr::new(".bin")) && names.next() == Some(OsStr::new("node_modules"))
}

/// Where the interpreter of an environment lies, links resolved.
pub(super) fn interpreter(root: &Path) -> Option<PathBuf> {
    root.join("bin/python").canonicalize().ok()
}
