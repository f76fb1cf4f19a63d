//! What was started: one program, or a line whose pipelines run one after the other.
//!
//! Duty: start processes, follow their ends, and say when the work is done. It never waits: the loop
//! tells it what ended. A single program is a line of one command whose failures go to the host. A line inside a
//! command (`timeout 5 sh -c LINE`) is a job of its own, in a process that is not the guest (see [`crate::within`]).

use crate::program::{self, Failure, Said};
use crate::stage::{self, Bounds, Env, Launched, Orders, Telling, Voice, What};
use crate::sys::{self, Reaped};
use runner_wire::{
    AndOr, Builtin, Bytes, Command, Ending, Joiner, LimitHit, Line, Pipeline, Programs, Simple,
    Start, WireError, Word, Work,
};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// Status of a command that could not be started.
const CANNOT_START: i32 = 126;

/// One pipeline of a line.
struct Step {
    /// On what end of the one before it depends.
    joiner: Option<Joiner>,
    pipeline: Pipeline,
    /// Whether it is the last of its list.
    last: bool,
}

/// Options of the line.
#[derive(Clone, Copy, Default)]
struct Options {
    errexit: bool,
    pipefail: bool,
}

/// The work in progress.
pub struct Job {
    env: Env,
    /// Limits of each command, and its group; a line inside a command has those of the command.
    bounds: Option<Bounds>,
    options: Options,
    voice: Voice,
    steps: VecDeque<Step>,
    streams: Option<[OwnedFd; 3]>,
    /// What becomes descriptor 3 of the first command.
    port: Option<OwnedFd>,
    running: Vec<Process>,
    negated: bool,
    /// Whether the pipeline that runs ends the line if it fails.
    ends: bool,
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
        let (line, voice) = match std::mem::replace(&mut start.work, Work::Waiting) {
            Work::Argv { argv, program } => (one_program(argv, program), Voice::Guest),
            Work::Shell { text } => {
                let shell = program::shell(&start.env);
                (one_program(vec![Bytes::from(shell), Bytes::from("-c"), text], None), Voice::Guest)
            }
            Work::Line(line) => (line, Voice::Command),
            Work::Script(script) => (one(Command::Script(script)), Voice::Command),
            Work::Waiting => return Err(WireError::NothingWaits),
        };
        let bounds = Bounds { umask: start.umask, limits: start.limits };
        let mut job = Self::new(line, voice, start.env, Some(bounds), streams, port);
        match std::env::set_current_dir(start.cwd.as_os()) {
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

    /// Begins a line inside a command: in the folder, the group and the limits of this process.
    pub fn within(line: Line, env: Env, streams: [OwnedFd; 3]) -> Self {
        let mut job = Self::new(line, Voice::Command, env, None, streams, None);
        job.advance();
        job
    }

    fn new(
        line: Line,
        voice: Voice,
        env: Env,
        bounds: Option<Bounds>,
        streams: [OwnedFd; 3],
        port: Option<OwnedFd>,
    ) -> Self {
        Self {
            env,
            bounds,
            options: Options { errexit: line.errexit, pipefail: line.pipefail },
            voice,
            steps: steps(line),
            streams: Some(streams),
            port,
            running: Vec::new(),
            negated: false,
            ends: false,
            last: Ending::Exited { status: 0 },
            hits: Vec::new(),
            cpu_us: 0,
            programs: Programs::default(),
        }
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
            Some(libc::SIGKILL) if self.bounds.is_some_and(|it| it.all_used(reaped.cpu_us)) => {
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

    /// When all of a pipeline has ended, its last command's status counts, or that of the last one that failed.
    fn settle(&mut self) {
        if self.running.is_empty() || self.running.iter().any(|process| process.ended.is_none()) {
            return;
        }
        for process in &self.running {
            process.tell_programs(&mut self.programs);
        }
        let endings: Vec<Ending> =
            self.running.drain(..).filter_map(|process| process.ended).collect();
        let failed = endings.iter().rfind(|ending| !succeeded(ending));
        let counts = if self.options.pipefail { failed } else { None };
        if let Some(ending) = counts.or(endings.last()).cloned() {
            self.finish(ending);
        }
        self.advance();
    }

    fn finish(&mut self, ending: Ending) {
        let succeeded = succeeded(&ending);
        self.last =
            if self.negated { Ending::Exited { status: i32::from(succeeded) } } else { ending };
        if self.ends && !succeeded {
            self.stop();
        }
    }

    /// Takes steps until one runs or none is left.
    fn advance(&mut self) {
        while self.running.is_empty() {
            let Some(Step { joiner, pipeline, last }) = self.steps.pop_front() else {
                break;
            };
            let succeeded = succeeded(&self.last);
            let due = match joiner {
                None => true,
                Some(Joiner::And) => succeeded,
                Some(Joiner::Or) => !succeeded,
            };
            if due {
                self.negated = pipeline.negated;
                self.ends = self.options.errexit && last && !pipeline.negated;
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
                    stage::assign(&mut self.env, assignments);
                }
                (Builtin::Assign(assignments), _) => {
                    stage::assign_known(&mut self.env, assignments);
                }
                (Builtin::True | Builtin::False | Builtin::Test(_), true) => {
                    let status = stage::run_builtin(builtin);
                    return self.finish(Ending::Exited { status: i32::from(status) });
                }
                (Builtin::True | Builtin::False | Builtin::Test(_), false) => {}
            }
            if plain && matches!(builtin, Builtin::Export(_) | Builtin::Assign(_)) {
                return self.finish(Ending::Exited { status: 0 });
            }
        }
        if let Err(error) = self.launch(&mut commands) {
            // What was started of a pipeline still ends by itself: its pipes are closed.
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
            let mut env = self.env.clone();
            stage::assign(&mut env, &simple.assignments);
            let orders = Orders {
                what: match simple.command {
                    Command::Run { words, program } => What::Run { words, program },
                    Command::Builtin(builtin) => What::Builtin(builtin),
                    Command::Line { words, line } => What::Line { words, line },
                    Command::Script(script) => What::Script(script),
                },
                env,
                redirects: simple.redirects,
                bounds: self.bounds,
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

    /// Adds the program that it became, or those that its line started.
    fn tell_programs(&self, all: &mut Programs) {
        match self.said() {
            Some(Said::Trying(ran)) => all.add(ran),
            Some(Said::Ended { programs, .. }) => {
                programs.ran.into_iter().for_each(|ran| all.add(ran));
                all.left_out += programs.left_out;
            }
            Some(Said::NotIt | Said::Failed(_)) | None => {}
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
            (Some(Said::Ended { broken: Some(broken), .. }), ..) => Ending::Assumption(broken),
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

/// One program as a line.
fn one_program(argv: Vec<Bytes>, program: Option<Bytes>) -> Line {
    let words = argv.into_iter().map(Word::Text).collect();
    one(Command::Run { words, program })
}

/// One command as a line.
fn one(command: Command) -> Line {
    let simple = Simple { assignments: vec![], command, redirects: vec![] };
    let first = Pipeline { negated: false, commands: vec![simple] };
    Line { lists: vec![AndOr { first, rest: vec![] }], ..Line::default() }
}

/// The pipelines of a line, in order.
fn steps(line: Line) -> VecDeque<Step> {
    let mut steps = VecDeque::new();
    for list in line.lists {
        let rest = list.rest.into_iter().map(|(joiner, pipeline)| (Some(joiner), pipeline));
        let pipelines = std::iter::once((None, list.first)).chain(rest);
        steps.extend(pipelines.map(|(joiner, pipeline)| Step { joiner, pipeline, last: false }));
        if let Some(step) = steps.back_mut() {
            step.last = true;
        }
    }
    steps
}

fn succeeded(ending: &Ending) -> bool {
    *ending == Ending::Exited { status: 0 }
}

fn number(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::EINVAL)
}
