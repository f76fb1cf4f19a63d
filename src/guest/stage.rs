//! The second life of the executable: a fresh process that becomes a command.
//!
//! Duty: expand patterns, redirect, apply limits, execute. It does so in a process of its own, not
//! between fork and exec of the guest, because a copy of the guest would carry the key, and because
//! opening a file may block, which must not stop the guest.

use crate::filter::{self, Memory};
use crate::program::{self, Failure, Teller, bounded};
use crate::sys::{self, Resource};
use crate::{glob, oom, script, test, within};
use runner_wire::{
    Assignment, Builtin, Bytes, Line, Redirect, RedirectTo, Script, StartLimits, Word,
};
use serde::{Deserialize, Serialize};
use std::ffi::{CString, OsString};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};

/// The first argument of a stage.
pub const ARGUMENT: &str = "stage";

/// Where a tool's runtime finds its talk with the broker.
const PORT: RawFd = 3;

/// Redirections use descriptors 0 to 9; ours are above.
const OWN_FDS: RawFd = 10;

/// Status of a program that is not there, as shells have it.
const NOT_FOUND: u8 = 127;
/// Status of a program that cannot be executed.
const NOT_EXECUTABLE: u8 = 126;

/// The whole environment of a command.
pub type Env = Vec<(Bytes, Bytes)>;

/// What holds for each command of a call.
#[derive(Clone, Copy, Serialize, Deserialize)]
pub struct Bounds {
    /// Bits that new files never get.
    pub umask: u32,
    /// What the kernel holds for each process.
    pub limits: StartLimits,
}

impl Bounds {
    /// Whether a process has used all the processor time that one may.
    pub fn all_used(&self, cpu_us: u64) -> bool {
        cpu_us >= self.limits.cpu_ms * 1000
    }
}

/// What a stage does, sent through a file in memory.
#[derive(Serialize, Deserialize)]
pub struct Orders {
    /// What to become.
    pub what: What,
    /// The whole environment.
    pub env: Env,
    /// Redirections, in order.
    pub redirects: Vec<Redirect>,
    /// What the command may not exceed. A command of a line inside a command has inherited it, and the group as well.
    pub bounds: Option<Bounds>,
    /// Who hears of a failure.
    pub voice: Voice,
}

impl Orders {
    /// The name of the program, bounded, for who hears that it could not be started.
    pub fn name(&self) -> Bytes {
        match &self.what {
            What::Run { words, .. } => match words.first() {
                Some(Word::Text(name)) => bounded(name),
                Some(_) | None => Bytes::default(),
            },
            What::Builtin(_) | What::Line { .. } | What::Script(_) => Bytes::default(),
        }
    }
}

/// What a stage becomes.
#[derive(Serialize, Deserialize)]
pub enum What {
    /// A program.
    Run {
        /// Its words; the first names it.
        words: Vec<Word>,
        /// The file, if it was bound to one.
        program: Option<Bytes>,
    },
    /// Nothing: it does it itself.
    Builtin(Builtin),
    /// What executes the line: itself, or a program of these words that starts it.
    Line {
        /// The words.
        words: Vec<Word>,
        /// The line.
        line: Line,
    },
    /// What executes a line with variables, conditions or loops: this process.
    Script(Box<Script>),
}

/// Who hears that a command could not be started.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Voice {
    /// The guest, which tells the host.
    Guest,
    /// Standard error of the command, as a shell would do.
    Command,
}

/// A command that was started, or a stage that becomes one.
pub struct Launched {
    /// Its process, which is also its process group.
    pub pid: u32,
    /// What it says of itself, each in a line (see [`program::Said`]). Ends when the command runs, or has failed.
    pub report: File,
    /// Whether there is more to come.
    pub telling: Telling,
}

/// Whether a process still tells of itself.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Telling {
    /// It will.
    Still,
    /// It is a program, and has told everything before.
    Over,
}

/// Starts a program without a stage, and returns when it runs. Only for the first command of a sandbox, when no other
/// process is there: until it is a program it has the guest's memory, with the key. Saves the start of a whole process.
///
/// # Errors
/// It could not be started; the kernel's number says why.
pub fn launch_alone(orders: Orders, streams: [OwnedFd; 3]) -> io::Result<Launched> {
    let What::Run { words, program } = orders.what else {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    };
    let argv = glob::expand_all(&words);
    let (env, bounds) = (orders.env, orders.bounds);
    let (report, writer) = io::pipe()?;
    let mut teller = Teller::new(File::from(OwnedFd::from(writer)));
    let become_it = || execute(program.clone(), argv.clone(), &env, bounds, &mut teller);
    let pid = oom::start(|| sys::start(&streams, become_it))?;
    Ok(Launched { pid, report: reading(report)?, telling: Telling::Over })
}

/// Starts a stage with these standard streams, and what becomes [`PORT`].
pub fn launch(
    orders: &Orders,
    streams: [OwnedFd; 3],
    port: Option<OwnedFd>,
) -> io::Result<Launched> {
    let mut file = sys::memory_file()?;
    serde_json::to_writer(&mut file, orders)?;
    file.rewind()?;
    let (report, writer) = io::pipe()?;
    let file = sys::inheritable(file.as_fd(), OWN_FDS)?;
    let writer = sys::inheritable(writer.as_fd(), OWN_FDS)?;
    let port = port.map(|port| sys::inheritable(port.as_fd(), OWN_FDS)).transpose()?;
    let [stdin, stdout, stderr] = streams;
    let mut command = Command::new("/proc/self/exe");
    command
        .arg0("runner-guest")
        .arg(ARGUMENT)
        .arg(file.as_raw_fd().to_string())
        .arg(writer.as_raw_fd().to_string())
        .args(port.as_ref().map(|port| port.as_raw_fd().to_string()))
        .env_clear()
        .stdin(Stdio::from(stdin))
        .stdout(Stdio::from(stdout))
        .stderr(Stdio::from(stderr));
    if orders.bounds.is_some() {
        command.process_group(0);
    }
    let child = oom::start(|| command.spawn())?;
    Ok(Launched { pid: child.id(), report: reading(report)?, telling: Telling::Still })
}

/// The guest's end of a report.
fn reading(report: io::PipeReader) -> io::Result<File> {
    let report = File::from(OwnedFd::from(report));
    sys::set_nonblocking(report.as_fd())?;
    Ok(report)
}

/// The whole life of a stage that does not become a command.
pub fn main(args: impl Iterator<Item = OsString>) -> ExitCode {
    let fds: Vec<RawFd> =
        args.filter_map(|arg| arg.to_str()?.parse().ok()).filter(|fd| *fd >= OWN_FDS).collect();
    let [orders, report, ref port @ ..] = fds[..] else {
        return ExitCode::from(125);
    };
    let (Ok(orders), Ok(report)) = (sys::adopt(orders), sys::adopt(report)) else {
        return ExitCode::from(125);
    };
    if let [port] = port {
        // The copy above is closed when the command is executed.
        let placed = sys::adopt(*port).and_then(|port| sys::place(port.as_raw_fd(), PORT));
        if placed.is_err() {
            return ExitCode::from(125);
        }
    }
    let mut text = Vec::new();
    let read = File::from(orders).read_to_end(&mut text);
    match read.map_err(serde_json::Error::io).and_then(|_| serde_json::from_slice(&text)) {
        Ok(orders) => become_command(orders, Teller::new(File::from(report))),
        Err(_) => ExitCode::from(125),
    }
}

fn become_command(orders: Orders, mut teller: Teller) -> ExitCode {
    if let Some(bounds) = orders.bounds {
        sys::set_umask(bounds.umask);
    }
    for redirect in &orders.redirects {
        if let Err((what, error)) = apply(redirect) {
            return complain(&what, &error, 1).into();
        }
    }
    match orders.what {
        What::Builtin(builtin) => ExitCode::from(run_builtin(&builtin)),
        What::Line { words, line } if words.is_empty() => {
            // Nothing more is told: what it starts is a command's own.
            drop(teller);
            match orders.bounds.map_or(Ok(()), |bounds| apply_limits(&bounds.limits)) {
                Ok(()) => within::run(line, orders.env),
                Err(error) => complain(b"sh", &error, NOT_EXECUTABLE).into(),
            }
        }
        What::Script(script) => {
            match orders.bounds.map_or(Ok(()), |bounds| apply_limits(&bounds.limits)) {
                Ok(()) => ExitCode::from(script::run(*script, orders.env, None, teller)),
                Err(error) => complain(b"sh", &error, NOT_EXECUTABLE).into(),
            }
        }
        what @ (What::Run { .. } | What::Line { .. }) => {
            let (argv, program) = match what {
                What::Run { words, program } => (glob::expand_all(&words), program),
                What::Line { words, line } => match within::words(&line) {
                    Ok(started) => ([glob::expand_all(&words), started].concat(), None),
                    Err(error) => return complain(b"sh", &error, NOT_EXECUTABLE).into(),
                },
                What::Builtin(_) | What::Script(_) => return ExitCode::from(NOT_EXECUTABLE),
            };
            let name = argv.first().cloned().unwrap_or_default();
            // What this process tells is its own: a command of the same line may run already, and must not write it.
            // Not before the redirections, which may name `/dev/stdout`. The program that it becomes is as any other.
            let _ = sys::set_undumpable();
            let error = execute(program, argv, &orders.env, orders.bounds, &mut teller);
            let status = cannot_start(&error);
            match orders.voice {
                Voice::Command => complain(&name.0, &error, status).into(),
                Voice::Guest => {
                    let failure = Failure {
                        program: bounded(&name),
                        errno: error.raw_os_error().unwrap_or(libc::EINVAL),
                    };
                    teller.failed(failure);
                    ExitCode::from(status)
                }
            }
        }
    }
}

/// The status of a program that cannot be started.
pub fn cannot_start(error: &io::Error) -> u8 {
    if is_missing(error) { NOT_FOUND } else { NOT_EXECUTABLE }
}

/// Whether an error means that there is no such program.
fn is_missing(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENOTDIR))
}

/// Says on standard error what failed, for this status.
pub fn complain(what: &[u8], error: &io::Error, status: u8) -> u8 {
    let mut line = what.to_vec();
    line.extend_from_slice(b": ");
    line.extend_from_slice(reason(error).as_bytes());
    line.push(b'\n');
    let _ = io::stderr().write_all(&line);
    status
}

/// The kernel's words for an error, without Rust's number behind them.
fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(at) => text[..at].to_owned(),
        None => text,
    }
}

/// Carries out one redirection; the name and the error if it fails.
pub fn apply(redirect: &Redirect) -> Result<(), (Vec<u8>, io::Error)> {
    let number = RawFd::from(redirect.fd);
    let number_error = |error| (redirect.fd.to_string().into_bytes(), error);
    if number >= OWN_FDS {
        return Err(number_error(io::Error::from_raw_os_error(libc::EBADF)));
    }
    let mut options = OpenOptions::new();
    let (path, options) = match &redirect.to {
        RedirectTo::Read(path) => (path, options.read(true)),
        RedirectTo::Write(path) => (path, options.write(true).create(true).truncate(true)),
        RedirectTo::Append(path) => (path, options.append(true).create(true)),
        RedirectTo::Both(path) => (path, options.read(true).write(true).create(true)),
        RedirectTo::Dup(other) if RawFd::from(*other) < OWN_FDS => {
            return sys::place(RawFd::from(*other), number).map_err(number_error);
        }
        RedirectTo::Dup(_) => {
            return Err(number_error(io::Error::from_raw_os_error(libc::EBADF)));
        }
        RedirectTo::Close => {
            sys::close(number);
            return Ok(());
        }
        RedirectTo::Here(text) => {
            let file = sys::memory_file().and_then(|mut file| {
                file.write_all(&text.0)?;
                file.rewind()?;
                Ok(file)
            });
            let file = file.map_err(number_error)?;
            return put(file, number).map_err(number_error);
        }
    };
    options
        .open(path.as_os())
        .and_then(|file| put(file, number))
        .map_err(|error| (path.0.clone(), error))
}

/// Moves an open file to a number. A fresh file may have taken a number of 0 to 9 that was closed.
fn put(file: File, number: RawFd) -> io::Result<()> {
    if file.as_raw_fd() == number {
        let high = sys::inheritable(file.as_fd(), OWN_FDS)?;
        drop(file);
        return sys::place(high.as_raw_fd(), number);
    }
    sys::place(file.as_raw_fd(), number)
}

/// Becomes the program; returns only if that failed.
pub fn execute(
    program: Option<Bytes>,
    argv: Vec<Bytes>,
    env: &[(Bytes, Bytes)],
    bounds: Option<Bounds>,
    teller: &mut Teller,
) -> io::Error {
    let invalid = || io::Error::from_raw_os_error(libc::EINVAL);
    let Some(name) = argv.first().filter(|name| !name.0.is_empty()) else {
        return io::Error::from_raw_os_error(libc::ENOENT);
    };
    let candidates = program::candidates(program, name, env);
    let name = name.clone();
    let text = |bytes: Vec<u8>| CString::new(bytes).ok();
    let argv: Option<Vec<_>> = argv.into_iter().map(|arg| text(arg.0)).collect();
    let env: Option<Vec<_>> =
        env.iter().map(|(name, value)| text([&name.0[..], b"=", &value.0].concat())).collect();
    let (Some(argv), Some(env)) = (argv, env) else {
        return invalid();
    };
    match bounds {
        Some(bounds) => {
            sys::set_umask(bounds.umask);
            if let Err(error) = apply_limits(&bounds.limits) {
                return error;
            }
            sys::reset_signals(sys::Ignored::All);
        }
        // `nohup sh -c LINE` holds for the commands of the line.
        None => sys::reset_signals(sys::Ignored::Ours),
    }
    let mut found = io::Error::from_raw_os_error(libc::ENOENT);
    for candidate in candidates {
        let Some(candidate) = text(candidate) else {
            return invalid();
        };
        if !sys::is_there(&candidate) {
            continue;
        }
        let tried = teller.trying(&name, candidate.as_bytes());
        let error = sys::exec(&candidate, &argv, &env);
        teller.not_it(tried);
        // As execvp does: a file that may not be executed is remembered while the search goes on.
        match error.raw_os_error() {
            Some(libc::ENOENT | libc::ENOTDIR) => {}
            Some(libc::EACCES) => found = error,
            _ => return error,
        }
    }
    found
}

/// No core dump, on no kernel: 0 would still start a program of the host's that `core_pattern` names, 1 does not.
const NO_CORE: u64 = 1;

fn apply_limits(limits: &StartLimits) -> io::Result<()> {
    sys::limit(Resource::Core, NO_CORE)?;
    sys::limit(Resource::Cpu, limits.cpu_ms.div_ceil(1000))?;
    sys::limit(Resource::FileSize, limits.file_size)?;
    sys::limit(Resource::OpenFiles, limits.open_files)?;
    let memory = if limits.watched_memory.is_some() { Memory::Watched } else { Memory::Held };
    sys::install_filter(filter::of_commands(memory))
}

/// Does what has no process of its own, for its status and its messages.
pub fn run_builtin(builtin: &Builtin) -> u8 {
    match builtin {
        Builtin::True | Builtin::Export(_) | Builtin::Assign(_) => 0,
        Builtin::False => 1,
        Builtin::Test(words) => test::status(&glob::expand_all(words)),
    }
}

/// Sets variables that are there already.
pub fn assign_known(env: &mut Env, assignments: &[Assignment]) {
    for assignment in assignments {
        if env.iter().any(|(known, _)| *known == assignment.name) {
            assign(env, std::slice::from_ref(assignment));
        }
    }
}

/// Sets variables; a later value replaces an earlier one.
pub fn assign(env: &mut Env, assignments: &[Assignment]) {
    for Assignment { name, value } in assignments {
        env.retain(|(known, _)| known != name);
        env.push((name.clone(), value.clone()));
    }
}
