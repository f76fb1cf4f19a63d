//! A compiled tool, and whether its source is still what was compiled.

use runner_compiler::folder::{Folder, Follow, Seen, digest};
use runner_compiler::job::{Confinement, Observation};
use runner_compiler::limits::{FILE_BYTES, TOTAL_BYTES};

use super::source::Source;

/// One module, ready for Node.
#[derive(Debug)]
pub struct Compiled {
    /// The module, with its source map at the end.
    pub code: String,
    /// What it exports.
    pub exports: Vec<String>,
    /// Every file that is in it, the tool's own first.
    pub inputs: Vec<Input>,
    /// Stands for the code and all its inputs.
    pub digest: String,
    /// Where it came from.
    pub origin: Origin,
    pub(super) folder: Folder,
    pub(super) observed: Vec<Observation>,
}

/// A file that is in a compiled tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    /// Its path, relative to the tool's folder.
    pub path: String,
    /// Its content (BLAKE3, in hex).
    pub digest: String,
}

/// Where a compiled tool came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// It was remembered; nothing was started.
    Remembered,
    /// It was compiled now.
    Fresh {
        /// Microseconds in the compiler, from the job to the module.
        micros: u64,
        /// What confined the compiler.
        confinement: Confinement,
    },
}

/// A file that is not what was compiled.
#[derive(Debug, thiserror::Error, Clone, PartialEq, Eq)]
#[error("{}", .how.sentence(.path))]
pub struct Changed {
    /// Its path, relative to the tool's folder.
    pub path: String,
    /// What is different.
    pub how: Difference,
}

/// How a file differs from what was compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Difference {
    /// Its content.
    Content,
    /// It was not there.
    Appeared,
    /// It is not there.
    Gone,
    /// It is something else now, such as a link.
    Kind,
    /// It cannot be read.
    Unreadable,
}

impl Difference {
    fn sentence(self, path: &str) -> String {
        match self {
            Self::Content => format!("the content of {path} has changed"),
            Self::Appeared => format!("{path} was not there before"),
            Self::Gone => format!("{path} is gone"),
            Self::Kind => format!("{path} has become something else, such as a link"),
            Self::Unreadable => format!("{path} cannot be read any more"),
        }
    }
}

impl Compiled {
    /// Whether every file is still what was compiled: content and kind, and that none has appeared which an import would
    /// mean now.
    ///
    /// # Errors
    /// The first that is not.
    pub fn verify_inputs(&self) -> Result<(), Changed> {
        verify(&self.folder, &self.observed)
    }
}

/// The look that the tool's own file must still bear.
pub fn own(source: &Source) -> Observation {
    Observation {
        path: source.file.clone(),
        follow: Follow::No,
        seen: Seen::Content(digest(source.document.as_bytes())),
    }
}

/// Looks again at everything that was looked at.
///
/// # Errors
/// The first that is different.
pub fn verify(folder: &Folder, observed: &[Observation]) -> Result<(), Changed> {
    // Who names one large file by many paths does not make us read without end.
    let mut left = TOTAL_BYTES + FILE_BYTES;
    observed.iter().try_for_each(|before| {
        let Observation { path, follow, seen } = before;
        let changed = |how| Err(Changed { path: path.clone(), how });
        let now = folder.look(path, *follow);
        match (seen, now) {
            (Seen::Content(expected), Seen::File) => {
                let read = match follow {
                    Follow::Yes => folder.read(path, left.min(FILE_BYTES)),
                    Follow::No => folder.read_plain(path, left.min(FILE_BYTES)),
                };
                match read {
                    Ok(bytes) if digest(&bytes) == *expected => {
                        left -= bytes.len() as u64;
                        Ok(())
                    }
                    Ok(_) => changed(Difference::Content),
                    Err(_) => changed(Difference::Unreadable),
                }
            }
            (before, now) if *before == now => Ok(()),
            (Seen::Absent, _) => changed(Difference::Appeared),
            (_, Seen::Absent) => changed(Difference::Gone),
            (Seen::Link(_), Seen::Link(_)) => changed(Difference::Content),
            _ => changed(Difference::Kind),
        }
    })
}

/// The files among all that was looked at.
pub fn inputs(observed: &[Observation]) -> Vec<Input> {
    let content = |observation: &Observation| match &observation.seen {
        Seen::Content(digest) => {
            Some(Input { path: observation.path.clone(), digest: digest.clone() })
        }
        _ => None,
    };
    observed.iter().filter_map(content).collect()
}

/// One digest for code and inputs.
pub fn digest_of(code: &str, inputs: &[Input]) -> String {
    let mut hasher = blake3::Hasher::new();
    for input in inputs {
        for part in [&input.path, &input.digest] {
            hasher.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
        }
    }
    hasher.update(b"code").update(code.as_bytes());
    hasher.finalize().to_hex().to_string()
}
