//! A path as a tool writes it, before anything is opened.

use runner_policy::paths;

use super::Files;
use crate::broker::Refusal;
use crate::codes::Code;

/// Longest path that the kernel takes, without its final NUL.
const PATH_MAX: usize = 4095;
/// Longest name.
const NAME_MAX: usize = 255;
/// Folders that hold no files but the kernel's own things.
const KERNEL: [&str; 3] = ["/proc", "/dev", "/sys"];

/// A path that can be meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Named {
    /// From the workspace, as written: `..` and a final slash are kept, for the kernel to read.
    relative: String,
    /// From the workspace, as text alone reads it; `.` for the workspace.
    lexical: String,
}

impl Named {
    /// For the kernel.
    pub(super) fn relative(&self) -> &str {
        &self.relative
    }

    /// For rules about what was named, and for messages.
    pub(super) fn lexical(&self) -> &str {
        &self.lexical
    }

    /// Whether it ends like a folder.
    pub(super) fn names_folder(&self) -> bool {
        self.relative.ends_with('/')
    }

    /// The folder and the name in it.
    pub(super) fn split(&self) -> Result<(&str, &str), Refusal> {
        let path = self.relative.trim_end_matches('/');
        let (folder, name) = path.rsplit_once('/').unwrap_or((".", path));
        if name == "." || name == ".." {
            let message = format!("{} names no entry of a folder", self.lexical);
            return Err(Refusal::new(Code::InvalidArgument, message).at(&self.lexical));
        }
        Ok((folder, name))
    }
}

impl Files {
    /// Reads a path.
    ///
    /// # Errors
    /// It cannot be one, or it says itself that it leads out of the workspace.
    pub(super) fn named(&self, text: &str) -> Result<Named, Refusal> {
        let invalid = |why: &str| Err(Refusal::new(Code::InvalidArgument, why));
        if text.is_empty() {
            return invalid("an empty path names nothing");
        }
        if text.contains('\0') {
            return invalid("a path cannot hold a NUL byte");
        }
        if text.len() > PATH_MAX {
            return invalid("no path is longer than 4095 bytes");
        }
        if text.split('/').any(|name| name.len() > NAME_MAX) {
            return invalid("no name is longer than 255 bytes");
        }
        let full = paths::join(&self.root, text);
        let Some(lexical) = paths::below(&self.root, &full) else {
            return Err(outside(&full, text));
        };
        let mut parts = text.split('/').filter(|part| !part.is_empty() && *part != ".");
        if text.starts_with('/') {
            // `/elsewhere/../workspace` is below it by text alone: the kernel could read it otherwise.
            for expected in self.root.split('/').filter(|part| !part.is_empty()) {
                if parts.next() != Some(expected) {
                    return Err(outside(text, text));
                }
            }
        }
        let mut relative = parts.collect::<Vec<_>>().join("/");
        if relative.is_empty() {
            relative.push('.');
        } else if text.ends_with('/') || text.ends_with("/.") {
            relative.push('/');
        }
        Ok(Named { relative, lexical: lexical.to_owned() })
    }
}

/// A path that leads out of the workspace; what is the kernel's has its own word.
pub(super) fn outside(full: &str, named: &str) -> Refusal {
    let full = paths::join("/", full);
    if KERNEL.iter().any(|folder| paths::below(folder, &full).is_some()) {
        return Refusal::new(
            Code::SpecialFile,
            format!("{named} leads to {full}, which holds no files"),
        )
        .at(named);
    }
    Refusal::new(Code::PathEscape, format!("{named} leads out of the workspace"))
        .at(named)
        .hint("name a path below the workspace")
}
