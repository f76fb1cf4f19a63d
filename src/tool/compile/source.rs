//! What is compiled.

use std::io;
use std::path::{Path, PathBuf};

use runner_compiler::folder::Folder;
use runner_compiler::job::{Language, Place};
use runner_compiler::limits::FILE_BYTES;

use super::error::CompileError;

/// A tool's source, as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The folder of the tool's file. Nothing outside it can enter the result.
    pub folder: PathBuf,
    /// The name of the tool's file in it.
    pub file: String,
    /// How the file is called in messages and stacks; an absolute path is shown by Node as it is. It should end
    /// with the file's name, so that other files of the folder can be called alike.
    pub shown: String,
    /// The whole text of the file. That the file still has it, and is no link, is checked.
    pub document: String,
    /// What of the file is code.
    pub part: Part,
}

/// What of a tool's file is code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// All of it: a module.
    Whole(Language),
    /// The `code` of a YAML file.
    Code {
        /// The code, without the indentation of the YAML.
        text: String,
        /// What it is written in.
        language: Language,
        /// Where it stands in the file.
        place: Place,
    },
}

impl Source {
    /// Reads a module from its file, which must not be a link.
    ///
    /// # Errors
    /// It cannot be read as text, or is of no known language.
    pub fn module(path: &Path, shown: impl Into<String>) -> Result<Self, CompileError> {
        let fail = |source| CompileError::Unreadable { path: path.to_owned(), source };
        let parts = path.parent().zip(path.file_name().and_then(|name| name.to_str()));
        let (folder, file) = parts.ok_or_else(|| fail(io::ErrorKind::InvalidInput.into()))?;
        let language = Language::of_file(file).ok_or_else(|| {
            fail(io::Error::new(
                io::ErrorKind::InvalidInput,
                "it is neither TypeScript nor JavaScript",
            ))
        })?;
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let handle = Folder::open(folder).map_err(fail)?;
        let bytes = handle.read_plain(file, FILE_BYTES).map_err(fail)?;
        let document = String::from_utf8(bytes)
            .map_err(|_| fail(io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8")))?;
        Ok(Self {
            folder: folder.to_owned(),
            file: file.to_owned(),
            shown: shown.into(),
            document,
            part: Part::Whole(language),
        })
    }

    /// The code itself.
    pub(super) fn text(&self) -> &str {
        match &self.part {
            Part::Whole(_) => &self.document,
            Part::Code { text, .. } => text,
        }
    }

    /// What the code is written in.
    pub(super) fn language(&self) -> Language {
        match self.part {
            Part::Whole(language) | Part::Code { language, .. } => language,
        }
    }

    /// Where the code stands, if it is not the whole file.
    pub(super) fn place(&self) -> Option<Place> {
        match self.part {
            Part::Whole(_) => None,
            Part::Code { place, .. } => Some(place),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_is_read_without_following_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.tool.ts");
        std::fs::write(&path, "export const tool = 1").unwrap();
        let source = Source::module(&path, "a.tool.ts").unwrap();
        assert_eq!((source.file.as_str(), source.language()), ("a.tool.ts", Language::TypeScript));
        let link = folder.path().join("b.tool.ts");
        std::os::unix::fs::symlink("a.tool.ts", &link).unwrap();
        assert!(matches!(Source::module(&link, "b"), Err(CompileError::Unreadable { .. })));
    }
}
