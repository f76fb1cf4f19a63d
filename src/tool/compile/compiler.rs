//! Compiling a tool: remembered if everything is as it was, else in a child process.

use std::path::Path;

use runner_compiler::folder::Folder;
use runner_compiler::job::{Answer, Done, Job, Observation, Told};
use runner_compiler::limits::{CODE_BYTES, EXCERPT, PATHS};
use runner_compiler::outline::{Outline, Said, Text};
use runner_policy::finding::{At, Finding, did_you_mean};

use super::cache::{Cache, Key};
use super::compiled::{Compiled, Origin, digest_of, inputs, own, verify};
use super::error::CompileError;
use super::process;
use super::program::Program;
use super::source::Source;

/// Compiles tools.
#[derive(Debug, Clone)]
pub struct Compiler {
    program: Program,
    cache: Cache,
}

impl Compiler {
    /// One that remembers results below the state folder if there is one.
    #[must_use]
    pub fn new(state: Option<&Path>) -> Self {
        Self { program: Program::Own, cache: Cache::new(state) }
    }

    /// The same with another program in the place of our own.
    #[must_use]
    pub fn with(program: &Path, state: Option<&Path>) -> Self {
        Self { program: Program::At(program.to_owned()), cache: Cache::new(state) }
    }

    /// Compiles a tool. It blocks until the result is there.
    ///
    /// # Errors
    /// See [`CompileError`].
    pub fn compile(&self, source: &Source) -> Result<Compiled, CompileError> {
        let (folder, own) = opened(source)?;
        let key = Key::of(source);
        let folder = match self.kept(folder, &own, &key) {
            Ok(compiled) => return Ok(*compiled),
            Err(folder) => folder,
        };
        let done = self.ask(source, &folder)?;
        if let Some(finding) = without_execute(source, &done.exports) {
            return Err(CompileError::Source(vec![finding]));
        }
        let observed = with_own(own, done.observed.clone());
        // What the child says it has read is believed only where it is there.
        verify(&folder, &observed).map_err(CompileError::Changed)?;
        if done.repeatable {
            self.cache.put(&key, &done);
        }
        let Done { code, exports, micros, confinement, .. } = done;
        let origin = Origin::Fresh { micros, confinement };
        Ok(compiled(folder, code, exports, observed, origin))
    }

    /// The result that is remembered, if everything is as it was. Nothing is started.
    #[must_use]
    pub fn remembered(&self, source: &Source) -> Option<Compiled> {
        let (folder, own) = opened(source).ok()?;
        self.kept(folder, &own, &Key::of(source)).ok().map(|compiled| *compiled)
    }

    fn kept(&self, folder: Folder, own: &Observation, key: &Key) -> Result<Box<Compiled>, Folder> {
        let Some(kept) = self.cache.get(key) else { return Err(folder) };
        let observed = with_own(own.clone(), kept.observed);
        if verify(&folder, &observed).is_err() {
            return Err(folder);
        }
        Ok(Box::new(compiled(folder, kept.code, kept.exports, observed, Origin::Remembered)))
    }

    fn ask(&self, source: &Source, folder: &Folder) -> Result<Done, CompileError> {
        let job = Job {
            file: source.file.clone(),
            shown: source.shown.clone(),
            text: source.text().to_owned(),
            language: source.language(),
            place: source.place(),
        };
        match process::run(&self.program, folder, &job)? {
            Answer::Done(done) if done.code.len() > CODE_BYTES || done.observed.len() > PATHS => {
                let how = "its answer has more than it may have".to_owned();
                Err(CompileError::Crashed { file: source.shown.clone(), how })
            }
            Answer::Done(done) => Ok(done),
            Answer::Findings(told) => Err(CompileError::Source(
                told.into_iter().map(|told| finding(told, source)).collect(),
            )),
            Answer::Unconfined(why) => Err(CompileError::Unconfined { why }),
            Answer::Folder(why) => {
                let source = std::io::Error::other(why);
                Err(CompileError::Unreadable { path: folder.path().to_owned(), source })
            }
            Answer::Broken(how) => Err(CompileError::Crashed { file: source.shown.clone(), how }),
        }
    }
}

/// What is in a text. It blocks until the answer is there.
///
/// # Errors
/// See [`CompileError`].
pub fn outline(shown: &str, text: &Text) -> Result<Outline, CompileError> {
    match process::parse(&Program::Own, shown, text)? {
        Said::Outline(outline) => Ok(*outline),
        Said::Unconfined(why) => Err(CompileError::Unconfined { why }),
        Said::Broken(how) => Err(CompileError::Crashed { file: shown.to_owned(), how }),
    }
}

/// The tool's folder, and its file as it was found there: what was read must be what is there, a file of this name,
/// no link, with this content.
fn opened(source: &Source) -> Result<(Folder, Observation), CompileError> {
    let folder = Folder::open(&source.folder)
        .map_err(|error| CompileError::Unreadable { path: source.folder.clone(), source: error })?;
    let own = own(source);
    verify(&folder, std::slice::from_ref(&own)).map_err(CompileError::Changed)?;
    Ok((folder, own))
}

/// A finding with its line as it stands in the tool's file: the child knows the code alone.
fn finding(told: Told, source: &Source) -> Finding {
    let mut finding = Finding::from(told);
    if finding.file == source.shown && finding.at.line > 0 {
        finding.excerpt = excerpt(source, finding.at.line);
    }
    finding
}

/// A line of the tool's file, from 1.
fn excerpt(source: &Source, line: u32) -> String {
    let line = source.document.split('\n').nth(line.saturating_sub(1) as usize).unwrap_or_default();
    line.trim_end_matches('\r').chars().take(EXCERPT).collect()
}

/// Code of a YAML file is there to export one function: without it there is nothing to run. What a module exports is known
/// when it is asked what it is.
fn without_execute(source: &Source, exports: &[String]) -> Option<Finding> {
    let place = source.place()?;
    if exports.iter().any(|name| name == "execute" || name == "default") {
        return None;
    }
    let near = did_you_mean("execute", exports.iter().map(String::as_str));
    let help = match near {
        Some(near) => format!("it exports `{near}`; did you mean `execute`?"),
        None => "write: export async function execute(args, context) { … }".to_owned(),
    };
    Some(Finding {
        code: "export_not_found",
        file: source.shown.clone(),
        at: At { line: place.line, column: place.indent.saturating_add(1), width: 1 },
        message: "the code exports neither `execute` nor a default".to_owned(),
        help: Some(help),
        excerpt: excerpt(source, place.line),
    })
}

fn with_own(own: Observation, others: Vec<Observation>) -> Vec<Observation> {
    let mut observed = vec![own];
    observed.extend(others);
    observed
}

fn compiled(
    folder: Folder,
    code: String,
    exports: Vec<String>,
    observed: Vec<Observation>,
    origin: Origin,
) -> Compiled {
    let inputs = inputs(&observed);
    let digest = digest_of(&code, &inputs);
    Compiled { code, exports, inputs, digest, origin, folder, observed }
}
