//! Which file a command becomes: where it is looked for, and how the guest hears which one it was.
//!
//! Only the process that becomes a program knows its file, and then it is that program and tells nothing more. So it
//! tells each file before it tries it, and that it was not the one if that failed: what was said last is what ran.
//! Through a pipe, which no limit on the size of files holds for. Non-goals: proof against who can write where the
//! program lies, since the file can be replaced between the look at its links and the kernel's; and, on a runtime that
//! lets processes of one user open each other's descriptors whatever they say, against another command of the same
//! line.

use runner_wire::{Broken, Bytes, NAME_MAX, Programs, Ran};
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::fs::File;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Bytes about files that are tried: what the smallest pipe takes while nobody reads. The guest does not read before a
/// single program runs.
const TRIES_MAX: usize = 4096;

/// Where programs are looked for if there is no PATH at all, as execvp and shells do: `env -i sh -c LINE`.
const DEFAULT_PATH: &[u8] = b"/usr/local/bin:/usr/bin:/bin";

/// What a process tells before it is a program.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Said {
    /// It tries to become this one.
    Trying(Ran),
    /// That was not it.
    NotIt,
    /// It became none.
    Failed(Failure),
    /// It executed a line, which is over.
    Ended {
        /// Which programs ran.
        programs: Programs,
        /// Why the line ended, if a word was not what had been assumed.
        broken: Option<Broken>,
    },
}

/// Why a process did not become a program.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    /// The name of the program.
    pub program: Bytes,
    /// The kernel's number for why.
    pub errno: i32,
}

impl Said {
    /// The last of what was told.
    pub fn last(told: &[u8]) -> Option<Self> {
        let line = told.strip_suffix(b"\n")?.rsplit(|byte| *byte == b'\n').next()?;
        serde_json::from_slice(line).ok()
    }
}

/// A process that becomes a program, on its way to the guest's ear. Best effort: one that is not heard runs all the
/// same.
pub struct Teller {
    report: File,
    /// Bytes that files may still take.
    left: usize,
    /// Whether the guest, or a copy of it, is at the other end.
    heard: bool,
}

impl Teller {
    /// One that writes there.
    pub fn new(report: File) -> Self {
        Self { report, left: TRIES_MAX, heard: true }
    }

    /// One whom nobody hears: a program started it. What a person must know goes to standard error.
    pub fn unheard() -> std::io::Result<Self> {
        Ok(Self { heard: false, ..Self::new(File::options().write(true).open("/dev/null")?) })
    }

    /// These ran so far. It is what is known of a line that is ended by force.
    pub fn so_far(&mut self, programs: &Programs) {
        let _ =
            self.report.write_all(&line(&Said::Ended { programs: programs.clone(), broken: None }));
    }

    /// The line is over.
    pub fn ended(&mut self, programs: Programs, broken: Option<Broken>) {
        if let Some(Broken { word, why }) = broken.as_ref().filter(|_| !self.heard) {
            let line = format!("assumption_failed: {word:?}: {why:?}\n");
            let _ = std::io::stderr().write_all(line.as_bytes());
        }
        let _ = self.report.write_all(&line(&Said::Ended { programs, broken }));
    }

    /// Tells a file that is tried now, under this name. What cannot be found cannot run either; of what is too long to
    /// be told, nothing is.
    pub fn trying(&mut self, name: &Bytes, candidate: &[u8]) -> Trying {
        let Ok(path) = Path::new(OsStr::from_bytes(candidate)).canonicalize() else {
            return Trying::Untold;
        };
        let ran = Ran { name: bounded(name), path: path.into_os_string().into() };
        let (line, back) = (line(&Said::Trying(ran)), line(&Said::NotIt));
        match self.left.checked_sub(line.len() + back.len()) {
            Some(left) => {
                self.left = left;
                let _ = self.report.write_all(&line);
                Trying::Told
            }
            None => Trying::Untold,
        }
    }

    /// It was not that one.
    pub fn not_it(&mut self, tried: Trying) {
        if tried == Trying::Told {
            let _ = self.report.write_all(&line(&Said::NotIt));
        }
    }

    /// It became none.
    pub fn failed(&mut self, failure: Failure) {
        let _ = self.report.write_all(&line(&Said::Failed(failure)));
    }
}

/// Whether a file that is tried was told.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Trying {
    /// It was.
    Told,
    /// It was not.
    Untold,
}

fn line(said: &Said) -> Vec<u8> {
    let mut line = serde_json::to_vec(said).unwrap_or_default();
    line.push(b'\n');
    line
}

/// A name as it is told.
pub fn bounded(name: &Bytes) -> Bytes {
    Bytes(name.0.iter().copied().take(NAME_MAX).collect())
}

/// The files to try, in order: the one that the host bound, the path that was written, or those that PATH has.
pub fn candidates(bound: Option<Bytes>, name: &Bytes, env: &[(Bytes, Bytes)]) -> Vec<Vec<u8>> {
    match bound {
        Some(file) => vec![file.0],
        None if name.0.contains(&b'/') => vec![name.0.clone()],
        None => search(&name.0, env),
    }
}

/// The shell for a line that the guest does not execute itself: `bash`, as whoever writes such lines has it,
/// or `sh` where PATH has no `bash`.
pub fn shell(env: &[(Bytes, Bytes)]) -> &'static str {
    let executable = |path: Vec<u8>| {
        let found = std::fs::metadata(OsStr::from_bytes(&path));
        found.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    if search(b"bash", env).into_iter().any(executable) { "bash" } else { "sh" }
}

fn search(name: &[u8], env: &[(Bytes, Bytes)]) -> Vec<Vec<u8>> {
    let path = env.iter().rev().find(|(key, _)| key.0 == b"PATH");
    let path = path.map_or(DEFAULT_PATH, |(_, value)| &value.0);
    path.split(|byte| *byte == b':')
        // An empty entry means the current folder to a shell; here it means nothing.
        .filter(|folder| folder.starts_with(b"/"))
        .map(|folder| [folder, b"/", name].concat())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{self, Read};
    use std::os::fd::OwnedFd;

    #[test]
    fn what_was_said_last_is_what_ran() {
        let (mut reader, writer) = io::pipe().unwrap();
        let mut teller = Teller::new(File::from(OwnedFd::from(writer)));
        let sh = Bytes::from("sh");
        let mut told = Vec::new();
        let mut hear = |reader: &mut io::PipeReader| {
            let mut piece = [0; TRIES_MAX];
            let count = reader.read(&mut piece).unwrap();
            told.extend_from_slice(&piece[..count]);
            Said::last(&told)
        };
        let ran = |path: &str| {
            let path = Path::new(path).canonicalize().unwrap().into_os_string();
            Some(Said::Trying(Ran { name: sh.clone(), path: path.into() }))
        };
        assert!(teller.trying(&sh, b"/nosuch/sh") == Trying::Untold, "there is no such file");
        let tried = teller.trying(&sh, b"/proc/self/exe");
        assert_eq!(hear(&mut reader), ran("/proc/self/exe"), "links are followed");
        teller.not_it(tried);
        assert_eq!(hear(&mut reader), Some(Said::NotIt));
        let _ = teller.trying(&sh, b"/");
        assert_eq!(hear(&mut reader), ran("/"));
        let failure = || Failure { program: sh.clone(), errno: 13 };
        teller.failed(failure());
        assert_eq!(hear(&mut reader), Some(Said::Failed(failure())));
        assert_eq!(Said::last(b""), None);
    }

    #[test]
    fn nobody_needs_to_listen() {
        let (mut reader, writer) = io::pipe().unwrap();
        let mut teller = Teller::new(File::from(OwnedFd::from(writer)));
        let odd = Bytes(vec![1; NAME_MAX]);
        assert!(teller.trying(&odd, b"/") == Trying::Untold, "longer than a pipe surely takes");
        let sh = Bytes::from("sh");
        for _ in 0..TRIES_MAX {
            let tried = teller.trying(&sh, b"/");
            teller.not_it(tried);
        }
        drop(teller);
        let mut told = Vec::new();
        reader.read_to_end(&mut told).unwrap();
        assert!(told.len() <= TRIES_MAX && Said::last(&told) == Some(Said::NotIt));
    }

    #[test]
    fn lines_run_in_bash_where_there_is_one() {
        let folder = std::env::temp_dir().join(format!("guest-shell-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let env = [(Bytes::from("PATH"), Bytes::from(folder.to_str().unwrap()))];
        assert_eq!(shell(&env), "sh");
        let file = folder.join("bash");
        std::fs::write(&file, "").unwrap();
        assert_eq!(shell(&env), "sh", "nobody can execute it");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(shell(&env), "bash");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_name_is_looked_for_in_absolute_folders_only() {
        let env = [(Bytes::from("PATH"), Bytes::from("/a:::b:/c"))];
        let found = candidates(None, &Bytes::from("x"), &env);
        assert_eq!(found, [b"/a/x".to_vec(), b"/c/x".to_vec()]);
        assert_eq!(candidates(None, &Bytes::from("./x"), &env), [b"./x".to_vec()]);
        let bound = Some(Bytes::from("/bin/x"));
        assert_eq!(candidates(bound, &Bytes::from("x"), &env), [b"/bin/x".to_vec()]);
    }
}
