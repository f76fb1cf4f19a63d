//! Starting a compiler, giving it its job, and telling how it ended.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use serde::Serialize;
use serde::de::DeserializeOwned;

use runner_compiler::folder::Folder;
use runner_compiler::job::{Answer, Job};
use runner_compiler::limits::{ANSWER_BYTES, LAST_WORDS, PATHS, STACK, WALL};
use runner_compiler::outline::{Said, Text};
use runner_compiler::{BUNDLE, PARSE};

use super::error::CompileError;
use super::program::Program;
use crate::json::{self, Limits};

/// What is read of an answer: it lists every path that was looked at, with a few values each.
const ANSWER: Limits = Limits { bytes: ANSWER_BYTES, values: 20 * PATHS };

/// The signal of the limit on processor time.
const SIGXCPU: i32 = 24;

/// The signal with which the kernel and we end a process for good.
const SIGKILL: i32 = 9;

/// Runs one job to its answer.
///
/// # Errors
/// It could not be started or talked to, or it ended without an answer.
pub fn run(program: &Program, folder: &Folder, job: &Job) -> Result<Answer, CompileError> {
    let identity = folder.identity();
    let absolute = std::path::absolute(folder.path())
        .map_err(|source| CompileError::Process { what: "start", source })?;
    let words = [
        BUNDLE.into(),
        // It leaves our working directory.
        absolute.into_os_string(),
        identity.dev.to_string().into(),
        identity.ino.to_string().into(),
    ];
    asked(program, &words, &job.shown, job)
}

/// Has a text parsed.
///
/// # Errors
/// As for a job.
pub fn parse(program: &Program, shown: &str, text: &Text) -> Result<Said, CompileError> {
    asked(program, &[PARSE.into()], shown, text)
}

/// Starts a child with these words, gives it its job and hears its answer.
fn asked<A: DeserializeOwned>(
    program: &Program,
    words: &[OsString],
    shown: &str,
    job: &impl Serialize,
) -> Result<A, CompileError> {
    let process = |what| move |source| CompileError::Process { what, source };
    let text = serde_json::to_vec(job).map_err(|error| process("ask")(error.into()))?;
    let mut child = Running(start(program, words).map_err(process("start"))?);
    let exchange = Exchange::new(&mut child.0, &text).and_then(Exchange::run);
    // Whatever came of it, nothing of it stays.
    let killed = !matches!(exchange, Ok(Heard { complete: true, .. }));
    if killed {
        let _ = child.0.kill();
    }
    let status = child.0.wait().map_err(process("wait for"))?;
    let heard = exchange.map_err(process("talk to"))?;
    if killed {
        return Err(match heard.out.len() > ANSWER_BYTES {
            true => CompileError::Crashed {
                file: shown.to_owned(),
                how: "its answer is too long".to_owned(),
            },
            false => CompileError::Timeout { file: shown.to_owned() },
        });
    }
    if status.success()
        && let Ok(answer) = json::read_as(&heard.out, ANSWER)
    {
        return Ok(answer);
    }
    Err(ending(shown, status, &heard.err))
}

fn start(program: &Program, words: &[OsString]) -> io::Result<Child> {
    Command::new(program.path()?)
        .args(words)
        .env_clear()
        // Its threads have stacks that count.
        .env("RUST_MIN_STACK", STACK.to_string())
        .env("MALLOC_ARENA_MAX", "1")
        // Away from the terminal's signals and the caller's folder.
        .process_group(0)
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
}

/// A child that does not outlive what is done with it.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // After a wait this does nothing.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What was heard of a child.
#[derive(Debug, Default)]
struct Heard {
    out: Vec<u8>,
    err: Vec<u8>,
    /// It closed its streams by itself, in time and within the caps.
    complete: bool,
}

/// The talk with one child: all three streams at once, until they close or time is up.
struct Exchange<'c> {
    stdin: Option<std::process::ChildStdin>,
    stdout: Option<&'c mut std::process::ChildStdout>,
    stderr: Option<&'c mut std::process::ChildStderr>,
    job: &'c [u8],
    heard: Heard,
    until: Instant,
}

impl<'c> Exchange<'c> {
    fn new(child: &'c mut Child, job: &'c [u8]) -> io::Result<Self> {
        let stdin = child.stdin.take();
        let (stdout, stderr) = (child.stdout.as_mut(), child.stderr.as_mut());
        for stream in [
            stdin.as_ref().map(AsFd::as_fd),
            stdout.as_ref().map(|stream| stream.as_fd()),
            stderr.as_ref().map(|stream| stream.as_fd()),
        ]
        .into_iter()
        .flatten()
        {
            fcntl_setfl(stream, fcntl_getfl(stream)? | OFlags::NONBLOCK)?;
        }
        Ok(Self {
            stdin,
            stdout,
            stderr,
            job,
            heard: Heard::default(),
            until: Instant::now() + WALL,
        })
    }

    fn run(mut self) -> io::Result<Heard> {
        while self.stdout.is_some() || self.stderr.is_some() {
            let left = self.until.saturating_duration_since(Instant::now());
            if left.is_zero() || self.heard.out.len() > ANSWER_BYTES {
                return Ok(self.heard);
            }
            self.wait(left)?;
            self.write();
            self.stdout = hear(self.stdout, &mut self.heard.out, ANSWER_BYTES + 1)?;
            self.stderr = hear(self.stderr, &mut self.heard.err, LAST_WORDS)?;
        }
        self.heard.complete = self.heard.out.len() <= ANSWER_BYTES;
        Ok(self.heard)
    }

    fn wait(&self, left: std::time::Duration) -> io::Result<()> {
        let mut streams = Vec::with_capacity(3);
        if let Some(stdin) = &self.stdin {
            streams.push(PollFd::new(stdin, PollFlags::OUT));
        }
        if let Some(stdout) = &self.stdout {
            streams.push(PollFd::new(&**stdout, PollFlags::IN));
        }
        if let Some(stderr) = &self.stderr {
            streams.push(PollFd::new(&**stderr, PollFlags::IN));
        }
        let left = Timespec::try_from(left).map_err(io::Error::other)?;
        match poll(&mut streams, Some(&left)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    fn write(&mut self) {
        let Some(stdin) = &mut self.stdin else { return };
        match stdin.write(self.job) {
            Ok(written) => self.job = &self.job[written..],
            Err(error) if again(&error) => return,
            // It has ended: its status says how.
            Err(_) => self.job = &[],
        }
        if self.job.is_empty() {
            self.stdin = None;
        }
    }
}

/// Takes what a stream has, at most `cap` bytes of it all in all; nothing is left of a stream that has ended.
fn hear<R: Read>(stream: Option<R>, heard: &mut Vec<u8>, cap: usize) -> io::Result<Option<R>> {
    let Some(mut stream) = stream else { return Ok(None) };
    let mut buffer = [0; 64 << 10];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return Ok(None),
            Ok(count) => {
                let room = cap.saturating_sub(heard.len()).min(count);
                heard.extend_from_slice(&buffer[..room]);
                if heard.len() > ANSWER_BYTES {
                    return Ok(Some(stream));
                }
            }
            Err(error) if again(&error) => return Ok(Some(stream)),
            Err(error) => return Err(error),
        }
    }
}

fn again(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// Why a compiler ended without an answer.
fn ending(file: &str, status: ExitStatus, last_words: &[u8]) -> CompileError {
    let file = file.to_owned();
    let words = String::from_utf8_lossy(last_words);
    match status.signal() {
        Some(SIGXCPU | SIGKILL) => CompileError::Timeout { file },
        // Rust says so and aborts.
        _ if words.contains("memory allocation of") => CompileError::Memory { file },
        _ if words.contains("overflowed its stack") => CompileError::Depth { file },
        signal => {
            let how = match signal {
                Some(signal) => format!("signal {signal}"),
                None => format!("exit code {}", status.code().unwrap_or(-1)),
            };
            let line =
                words.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
            CompileError::Crashed { file, how: format!("{how} {line}").trim_end().to_owned() }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Failure as _;

    #[test]
    fn how_it_ended_is_told_by_signal_and_last_words() {
        let code = |status, words: &str| {
            ending("a.ts", ExitStatus::from_raw(status), words.as_bytes()).code()
        };
        assert_eq!(code(6, "memory allocation of 67108864 bytes failed\n"), "compiler_memory");
        assert_eq!(
            code(6, "\nthread 'compile' (7) has overflowed its stack\nfatal runtime error"),
            "compiler_depth"
        );
        assert_eq!(code(SIGXCPU, ""), "compiler_timeout");
        assert_eq!(code(SIGKILL, ""), "compiler_timeout");
        assert_eq!(code(6, "panicked at x.rs:1:2"), "compiler_crashed");
        assert_eq!(code(0, ""), "compiler_crashed");
        assert_eq!(code(101 << 8, "any"), "compiler_crashed");
    }
}
