//! What was started: one program, or a line whose pipelines run one after the other.
//!
//! Duty: start processes, follow their ends, and say when the work is done. It never waits: the loop
//! tells it what ended. A single program is a line of one command whose failures go to the host.

use crate::program::{Failure, Said};
use crate::stage::{self, Launched, Orders, Telling, Voice, What};
use crate::sys::{self, Reaped};
use runner_wire::{
    Builtin, Bytes, Command, Ending, Joiner, LimitHit, Pipeline, Programs, Ran, Simple, Start,
    WireError, Word, Work,
};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// Status of a command that could not be started.
const CANNOT_START: i32 = 126;

/// Pipelines, and on what end of the one before each depends.
type Steps = VecDeque<(Option<Joiner>, Pipeline)>;

/// The work in progress.
pub struct Job {
    start: Start,
    voice: Voice,
    steps: Steps,
    streams: Option<[OwnedFd; 3]>,
    /// What becomes descriptor 3 of the first command.
    port: Option<OwnedFd>,
    running: Vec<Process>,
    negated: bool,
    enter: Option<Option<Word>>,
    last: Ending,
    hits: Vec<LimitHit>,
    cpu_us: u64,
    programs: Programs,
}

struct Process {
    pid: u32,
    report: Option<File>,
    told: Vec<u8>,
    ended: Option<Ending>,
}

impl Job {
    /// Begins the work with these ends of the standard streams, and of the talk of a tool.
    pub fn begin(
        mut start: Start,
        streams: [OwnedFd; 3],
        port: Option<OwnedFd>,
    ) -> Result<Self, WireError> {
        let (steps, voice) = steps(&mut start.work)?;
        let mut job = Self {
            voice,
            steps,
            streams: Some(streams),
            port,
            running: Vec::new(),
            negated: false,
            enter: None,
            last: Ending::Exited { status: 0 },
            hits: Vec::new(),
            cpu_us: 0,
            programs: Programs::default(),
            start,
        };
        match std::env::set_current_dir(job.start.cwd.as_os()) {
            Ok(()) => job.advance(),
            Err(error) => {
                job.steps.clear();
                job.streams = None;
                job.port = None;
                job.last = Ending::NoCwd { errno: number(&error) };
            }
        }
        Ok(job)
    }

    /// How it ended, once nothing is left to do.
    pub fn ended(&self) -> Option<&Ending> {
        (self.running.is_empty() && self.steps.is_empty()).then_some(&self.last)
    }

    /// The process of what was started first, if it still runs.
    pub fn process(&self) -> Option<u32> {
        self.running.first().map(|process| process.pid)
    }

    /// Limits that processes met, and processor time of those that ended.
    pub fn account(&self) -> (&[LimitHit], u64) {
        (&self.hits, self.cpu_us)
    }

    /// Which programs ran, of the pipelines that have ended.
    pub fn programs(&self) -> &Programs {
        &self.programs
    }

    /// Descriptors on which stages tell that they became their command.
    pub fn reports(&self) -> impl Iterator<Item = RawFd> + '_ {
        self.running.iter().filter_map(|process| process.report.as_ref().map(AsRawFd::as_raw_fd))
    }

    /// Reads what stages tell. Whether any command runs now.
    pub fn read_reports(&mut self) -> bool {
        let mut any = false;
        for process in &mut self.running {
            process.read_report();
            let failed = matches!(process.said(), Some(Said::Failed(_)));
            any |= process.report.is_none() && !failed && process.ended.is_none();
        }
        any
    }

    /// Takes no further step.
    pub fn stop(&mut self) {
        self.steps.clear();
        self.streams = None;
    }

    /// Sends a signal to everything that was started and still runs.
    pub fn signal(&self, signal: i32) {
        for process in &self.running {
            if process.ended.is_none() {
                sys::signal_group(process.pid, signal);
            }
        }
    }

    /// Takes the end of a process, ours or one that was left to us.
    pub fn reaped(&mut self, reaped: &Reaped) {
        self.cpu_us += reaped.cpu_us;
        let hit = match reaped.signal {
            Some(libc::SIGXCPU) => Some(LimitHit::CpuTime),
            Some(libc::SIGXFSZ) => Some(LimitHit::FileSize),
            Some(libc::SIGKILL) if reaped.cpu_us >= self.start.limits.cpu_ms * 1000 => {
                Some(LimitHit::CpuTime)
            }
            _ => None,
        };
        self.hits.extend(hit);
        if let Some(process) = self.running.iter_mut().find(|process| process.pid == reaped.pid) {
            process.end(reaped);
        }
        self.settle();
    }

    /// When all of a pipeline has ended, its last command's status counts.
    fn settle(&mut self) {
        if self.running.is_empty() || self.running.iter().any(|process| process.ended.is_none()) {
            return;
        }
        for ran in self.running.iter().filter_map(Process::ran) {
            self.programs.add(ran);
        }
        if let Some(ending) = self.running.pop().and_then(|process| process.ended) {
            self.finish(ending);
        }
        self.running.clear();
        self.advance();
    }

    fn finish(&mut self, ending: Ending) {
        let succeeded = ending == Ending::Exited { status: 0 };
        // A `cd` that a stage tried for its redirections counts for the rest of the line.
        if let Some(word) = self.enter.take()
            && succeeded
        {
            let _ = stage::enter(word.as_ref(), &self.start.env);
        }
        self.last =
            if self.negated { Ending::Exited { status: i32::from(succeeded) } } else { ending };
    }

    /// Takes steps until one runs or none is left.
    fn advance(&mut self) {
        while self.running.is_empty() {
            let Some((joiner, pipeline)) = self.steps.pop_front() else {
                break;
            };
            let succeeded = self.last == Ending::Exited { status: 0 };
            let due = match joiner {
                None => true,
                Some(Joiner::And) => succeeded,
                Some(Joiner::Or) => !succeeded,
            };
            if due {
                self.negated = pipeline.negated;
                self.step(pipeline.commands);
            }
        }
        if self.steps.is_empty() {
            // Nothing more is started: let readers see the end, and a writer that nobody reads.
            self.streams = None;
        }
    }

    fn step(&mut self, mut commands: Vec<Simple>) {
        if let [simple] = &commands[..]
            && let Command::Builtin(builtin) = &simple.command
        {
            let plain = simple.redirects.is_empty();
            match (builtin, plain) {
                (Builtin::Export(assignments), _) => {
                    stage::assign(&mut self.start.env, assignments);
                }
                (Builtin::Cd(word), true) => {
                    if stage::enter(word.as_ref(), &self.start.env).is_ok() {
                        return self.finish(Ending::Exited { status: 0 });
                    }
                    // A stage fails in the same way and says so on standard error.
                }
                (Builtin::Cd(word), false) => self.enter = Some(word.clone()),
                (Builtin::True | Builtin::False | Builtin::Test(_), true) => {
                    let status = stage::run_builtin(builtin, &self.start.env);
                    return self.finish(Ending::Exited { status: i32::from(status) });
                }
                (Builtin::True | Builtin::False | Builtin::Test(_), false) => {}
            }
            if plain && matches!(builtin, Builtin::Export(_)) {
                return self.finish(Ending::Exited { status: 0 });
            }
        }
        if let Err(error) = self.launch(&mut commands) {
            // What was started of a pipeline still ends by itself: its pipes are closed.
            self.enter = None;
            let ending = match self.voice {
                Voice::Guest => {
                    Ending::NotExecutable { program: Bytes::default(), errno: number(&error) }
                }
                Voice::Command => Ending::Exited { status: CANNOT_START },
            };
            self.running.push(Process::failed(ending));
        }
        // What could not be started has ended.
        self.settle();
    }

    /// Starts all commands of a pipeline.
    fn launch(&mut self, commands: &mut Vec<Simple>) -> io::Result<()> {
        let Some([stdin, stdout, stderr]) = &self.streams else {
            return Err(io::Error::from_raw_os_error(libc::EBADF));
        };
        let mut input = stdin.try_clone()?;
        let count = commands.len();
        for (at, simple) in commands.drain(..).enumerate() {
            let (output, next) = if at + 1 < count {
                let (reader, writer) = io::pipe()?;
                (OwnedFd::from(writer), OwnedFd::from(reader))
            } else {
                // The last command's input is ours; nothing reads from this copy.
                (stdout.try_clone()?, stdin.try_clone()?)
            };
            let mut env = self.start.env.clone();
            stage::assign(&mut env, &simple.assignments);
            let orders = Orders {
                what: match simple.command {
                    Command::Run { words, program } => What::Run { words, program },
                    Command::Builtin(builtin) => What::Builtin(builtin),
                },
                env,
                redirects: simple.redirects,
                umask: self.start.umask,
                limits: self.start.limits,
                voice: self.voice,
            };
            let streams = [input, output, stderr.try_clone()?];
            let name = orders.name();
            let launched = match (self.voice, self.port.take()) {
                // The one program of a call, and the first process of its sandbox.
                (Voice::Guest, None) => stage::launch_alone(orders, streams),
                (Voice::Guest | Voice::Command, port) => stage::launch(&orders, streams, port),
            };
            match (self.voice, launched) {
                (_, Ok(launched)) => self.running.push(Process::new(launched)),
                (Voice::Guest, Err(error)) => {
                    let failure = Failure { program: name, errno: number(&error) };
                    self.running.push(Process::failed(not_started(failure)));
                }
                (Voice::Command, Err(error)) => return Err(error),
            }
            input = next;
        }
        Ok(())
    }
}

impl Process {
    fn new(launched: Launched) -> Self {
        let Launched { pid, report, telling } = launched;
        let mut process = Self { pid, report: Some(report), told: Vec::new(), ended: None };
        if telling == Telling::Over {
            // Its own end may still be open for a moment: nobody waits for that.
            process.read_report();
            process.report = None;
        }
        process
    }

    /// One that never was.
    fn failed(ending: Ending) -> Self {
        Self { pid: 0, report: None, told: Vec::new(), ended: Some(ending) }
    }

    /// What it told last, so far.
    fn said(&self) -> Option<Said> {
        Said::last(&self.told)
    }

    /// The program that it became.
    fn ran(&self) -> Option<Ran> {
        match self.said() {
            Some(Said::Trying(ran)) => Some(ran),
            Some(Said::NotIt | Said::Failed(_)) | None => None,
        }
    }

    /// Reads what there is; the end of the report closes it.
    fn read_report(&mut self) {
        let mut buffer = [0; 4096];
        while let Some(report) = &mut self.report {
            match report.read(&mut buffer) {
                Ok(0) => self.report = None,
                Ok(count) => self.told.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => self.report = None,
            }
        }
    }

    fn end(&mut self, reaped: &Reaped) {
        self.read_report();
        self.ended = Some(match (self.said(), reaped.status, reaped.signal) {
            (Some(Said::Failed(failure)), ..) => not_started(failure),
            (_, Some(status), _) => Ending::Exited { status },
            (_, None, signal) => Ending::Signalled { signal: signal.unwrap_or(0) },
        });
    }
}

/// The end of a command that could not be started.
fn not_started(Failure { program, errno }: Failure) -> Ending {
    match errno {
        libc::ENOENT | libc::ENOTDIR => Ending::NotFound { program },
        _ => Ending::NotExecutable { program, errno },
    }
}

/// The steps of the work, and who hears of a command that cannot be started.
fn steps(work: &mut Work) -> Result<(Steps, Voice), WireError> {
    Ok(match work {
        Work::Argv { argv, program } => {
            let words = std::mem::take(argv).into_iter().map(Word::Text).collect();
            let simple = Simple {
                assignments: vec![],
                command: Command::Run { words, program: program.take() },
                redirects: vec![],
            };
            let pipeline = Pipeline { negated: false, commands: vec![simple] };
            (VecDeque::from([(None, pipeline)]), Voice::Guest)
        }
        Work::Line(line) => {
            let steps = std::mem::take(&mut line.lists)
                .into_iter()
                .flat_map(|list| {
                    let rest =
                        list.rest.into_iter().map(|(joiner, pipeline)| (Some(joiner), pipeline));
                    std::iter::once((None, list.first)).chain(rest)
                })
                .collect();
            (steps, Voice::Command)
        }
        Work::Waiting => return Err(WireError::NothingWaits),
    })
}

fn number(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::EINVAL)
}
