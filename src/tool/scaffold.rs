//! A new tool: a file that works as it is, with the types that an editor needs beside it.
//!
//! Nothing is ever overwritten, and no link is followed below the workspace: the repository is the
//! adversary's, and a link called `.runner` must not make us write elsewhere.

use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};
use rustix::io::Errno;

use crate::codes::Code;
use crate::error::{Failure, Fault};
use crate::exit::Kind;
use crate::ids::ToolName;

const YAML: &str = include_str!("../../tools/templates/tool.yml");
const MODULE: &str = include_str!("../../tools/templates/tool.ts");
const TSCONFIG: &str = include_str!("../../tools/templates/tsconfig.json");
const TYPES: &str = include_str!("../../tools/runner.d.ts");

/// Where a new tool goes.
#[derive(Debug, Clone)]
pub enum Where {
    /// `.runner/tools` of this workspace.
    Workspace(PathBuf),
    /// The folder that the caller named.
    Folder(PathBuf),
}

/// In which form a new tool is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Template {
    /// `NAME.yml`.
    Yaml,
    /// `NAME.tool.ts`.
    Module,
}

/// What was written.
#[derive(Debug, serde::Serialize)]
pub struct Scaffold {
    /// The tool.
    pub file: PathBuf,
    /// What was written besides.
    pub written: Vec<PathBuf>,
    /// What was there already and stays as it is.
    pub kept: Vec<PathBuf>,
    /// Whether the types that were there are of another version than this program's.
    pub types_differ: bool,
}

/// Why nothing was made.
#[derive(Debug, thiserror::Error)]
pub enum ScaffoldError {
    /// The file is there already.
    #[error("{0} is there already")]
    Exists(PathBuf),
    /// A folder is a link, or something else.
    #[error("{0} is not a folder, or is a link")]
    NotAFolder(PathBuf),
    /// The system refused.
    #[error("cannot write {0}: {1}")]
    Failed(PathBuf, #[source] io::Error),
}

/// Writes a tool that works.
///
/// # Errors
/// Something of the name is there, or nothing can be written there.
pub fn scaffold(
    name: &ToolName,
    template: Template,
    description: &str,
    place: &Where,
) -> Result<Scaffold, ScaffoldError> {
    let (folder, shown) = match place {
        Where::Workspace(root) => (open(root, ".runner/tools")?, root.join(".runner/tools")),
        Where::Folder(path) => {
            std::fs::create_dir_all(path)
                .map_err(|error| ScaffoldError::Failed(path.clone(), error))?;
            (open(path, "")?, path.clone())
        }
    };
    // Both forms would be two tools of one name.
    for ending in ["yml", "tool.ts", "tool.js"] {
        let file = format!("{name}.{ending}");
        if rustix::fs::statat(&folder, &file, rustix::fs::AtFlags::SYMLINK_NOFOLLOW).is_ok() {
            return Err(ScaffoldError::Exists(shown.join(file)));
        }
    }
    let (file, template) = match template {
        Template::Yaml => (format!("{name}.yml"), YAML),
        Template::Module => (format!("{name}.tool.ts"), MODULE),
    };
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let text = template
        .replace("{{name}}", &quoted(name.as_str()))
        .replace("{{description}}", &quoted(description));
    if !write(&folder, &shown, &file, &text)? {
        return Err(ScaffoldError::Exists(shown.join(file)));
    }
    let mut made = Scaffold {
        file: shown.join(file),
        written: Vec::new(),
        kept: Vec::new(),
        types_differ: false,
    };
    for (file, text) in [("runner.d.ts", TYPES), ("tsconfig.json", TSCONFIG)] {
        let path = shown.join(file);
        if write(&folder, &shown, file, text)? {
            made.written.push(path);
        } else {
            made.types_differ |=
                file == "runner.d.ts" && std::fs::read(&path).is_ok_and(|it| it != text.as_bytes());
            made.kept.push(path);
        }
    }
    Ok(made)
}

/// Opens `base/below`, making what is missing below the base; no component there is a link.
fn open(base: &Path, below: &str) -> Result<OwnedFd, ScaffoldError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut shown = base.to_owned();
    let failed = |path: &Path, errno: Errno| match errno {
        Errno::NOTDIR | Errno::LOOP => ScaffoldError::NotAFolder(path.to_owned()),
        errno => ScaffoldError::Failed(path.to_owned(), errno.into()),
    };
    let mut folder =
        openat(CWD, base, flags, Mode::empty()).map_err(|errno| failed(base, errno))?;
    for part in below.split('/').filter(|part| !part.is_empty()) {
        shown.push(part);
        match mkdirat(&folder, part, Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(failed(&shown, errno)),
        }
        folder = openat(&folder, part, flags | OFlags::NOFOLLOW, Mode::empty())
            .map_err(|errno| failed(&shown, errno))?;
    }
    Ok(folder)
}

/// Writes a new file; `false` if something of the name is there.
fn write(folder: &OwnedFd, shown: &Path, file: &str, text: &str) -> Result<bool, ScaffoldError> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let path = || shown.join(file);
    match openat(folder, file, flags, Mode::from_raw_mode(0o644)) {
        Ok(handle) => {
            let written = std::fs::File::from(handle).write_all(text.as_bytes());
            written.map(|()| true).map_err(|error| ScaffoldError::Failed(path(), error))
        }
        Err(Errno::EXIST) => Ok(false),
        Err(errno) => Err(ScaffoldError::Failed(path(), errno.into())),
    }
}

impl Failure for ScaffoldError {
    fn code(&self) -> Code {
        match self {
            Self::Exists(_) => Code::ToolExists,
            Self::NotAFolder(_) => Code::ToolFolderInvalid,
            Self::Failed(..) => Code::ToolNotWritten,
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
            Self::Exists(_) => {
                "nothing is overwritten; choose another name, or remove it".to_owned()
            }
            Self::NotAFolder(_) => "name a real folder with --dir".to_owned(),
            Self::Failed(..) => "name a folder that you can write with --dir".to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::tool::parse;

    fn name() -> ToolName {
        "my_tool".parse().unwrap()
    }

    #[test]
    fn a_new_tool_is_valid_and_nothing_is_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let place = Where::Workspace(dir.path().to_owned());
        let made = scaffold(&name(), Template::Yaml, "It's \"new\": yes", &place).unwrap();
        let text = fs::read_to_string(&made.file).unwrap();
        let tool = parse("my_tool.yml", &text, &name()).unwrap();
        assert_eq!(tool.description, "It's \"new\": yes");
        assert!(tool.auto_accept && tool.returns.is_some());
        assert_eq!(made.written.len(), 2);
        for form in [Template::Yaml, Template::Module] {
            let again = scaffold(&name(), form, "x", &place);
            assert!(matches!(again, Err(ScaffoldError::Exists(_))));
        }
        assert_eq!(fs::read_to_string(&made.file).unwrap(), text);
        fs::write(dir.path().join(".runner/tools/runner.d.ts"), "mine").unwrap();
        let other = scaffold(&"other".parse().unwrap(), Template::Module, "x", &place).unwrap();
        assert!(other.types_differ && other.kept.len() == 2);
        let types = fs::read_to_string(dir.path().join(".runner/tools/runner.d.ts")).unwrap();
        assert_eq!(types, "mine");
    }

    #[test]
    fn links_lead_nowhere() {
        let dir = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        symlink(outside.path(), dir.path().join(".runner")).unwrap();
        let place = Where::Workspace(dir.path().to_owned());
        let made = scaffold(&name(), Template::Yaml, "x", &place);
        assert!(matches!(made, Err(ScaffoldError::NotAFolder(_))), "{made:?}");
        fs::remove_file(dir.path().join(".runner")).unwrap();
        fs::create_dir_all(dir.path().join(".runner/tools")).unwrap();
        symlink(outside.path().join("x"), dir.path().join(".runner/tools/my_tool.yml")).unwrap();
        assert!(scaffold(&name(), Template::Yaml, "x", &place).is_err());
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
    }
}
