//! One file of an agent: its text before and after, and writing it.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::agent::error::AgentError;
use crate::agent::kind::Layer;
use crate::agent::pin::Edited;
use crate::agent::place::write_own;

/// The largest configuration that is edited.
const MAX_BYTES: u64 = 1 << 20;

/// A change of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Which.
    pub path: PathBuf,
    /// Its text; `None` if there is none.
    pub before: Option<String>,
    /// The new text.
    pub after: String,
    /// The rules for file tools that are put into it.
    pub rules: Vec<String>,
}

/// The digest of a text.
pub(super) fn digest(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

impl Change {
    /// Its record for `uninstall`.
    #[must_use]
    pub fn edited(&self) -> Edited {
        Edited {
            path: self.path.clone(),
            before: self.before.clone(),
            after: digest(&self.after),
            rules: self.rules.clone(),
        }
    }

    /// Writes it, unless the file changed since it was planned.
    ///
    /// # Errors
    /// It changed, or cannot be written.
    pub fn write(&self) -> Result<(), AgentError> {
        if text_of(&self.path)? != self.before {
            return Err(AgentError::Changed(self.path.clone()));
        }
        put(&self.path, &self.after)
    }
}

/// The real file behind the links of a path that the person made; a project's may not be a link at all, because a
/// repository brings it.
pub(super) fn real(path: &Path, layer: Layer) -> Result<PathBuf, AgentError> {
    let link = path.symlink_metadata().is_ok_and(|meta| meta.file_type().is_symlink());
    let folder_link = path
        .parent()
        .and_then(|folder| folder.symlink_metadata().ok())
        .is_some_and(|meta| meta.file_type().is_symlink());
    match (layer, link, folder_link) {
        (Layer::Project, true, _) | (Layer::Project, _, true) => Err(AgentError::Config {
            path: path.to_owned(),
            line: 1,
            column: 1,
            why: "it is a link; a repository's configuration must be a file of its own".to_owned(),
        }),
        (_, true, _) => {
            path.canonicalize().map_err(|source| AgentError::Io { path: path.to_owned(), source })
        }
        _ => Ok(path.to_owned()),
    }
}

/// The text of a file; `None` if it is not there.
pub(super) fn text_of(path: &Path) -> Result<Option<String>, AgentError> {
    let failed = |source| AgentError::Io { path: path.to_owned(), source };
    let meta = match fs::metadata(path) {
        Ok(meta) => meta,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(failed(source)),
    };
    if !meta.is_file() || meta.len() > MAX_BYTES {
        return Err(failed(io::Error::other(format!(
            "it is no file of at most {MAX_BYTES} bytes"
        ))));
    }
    fs::read_to_string(path).map(Some).map_err(failed)
}

/// Replaces a file, with the permissions that it has.
pub(super) fn put(path: &Path, text: &str) -> Result<(), AgentError> {
    let failed = |source| AgentError::Io { path: path.to_owned(), source };
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    let mode = fs::metadata(path).map_or(0o644, |meta| meta.permissions().mode() & 0o777);
    write_own(path, text.as_bytes(), 0o600)?;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).map_err(failed)
}
