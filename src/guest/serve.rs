//! The guest's life: setup, handshake, and one loop until the end.
//!
//! Whatever happens, the loop has a deadline: for the host's first frame, for `Start`, for the call,
//! and for the last bytes after it. When standard input closes, the host is gone and so is the sandbox.

use crate::job::Job;
use crate::link::{Link, LinkError};
use crate::stdio::{self, Input, Output};
use crate::sys::{self, Poll};
use crate::{cgroup, report, watch};
use runner_wire::{
    Cause, Channel, DATA_MAX, Ending, Exit, Fatal, GuestMessage, HostMessage, Kind, LimitHit,
    Phase, Port, SignalName, Start, Started, Stdin, StreamTotals, VERSION, WireError,
};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

/// How long a command may take to end after a signal of the host.
const CANCEL_GRACE: Duration = Duration::from_secs(1);

/// How long killed processes may take to be gone.
const BURY: Duration = Duration::from_secs(5);

/// Time between two looks, if no signal tells.
const BURY_PAUSE: Duration = Duration::from_millis(20);

/// How often the guest looks whether a limit was met that nobody is told about.
const TICK: Duration = Duration::from_millis(250);

/// How long the last output of a call that ended by itself may take to leave.
const DRAIN: Duration = Duration::from_secs(10);

/// The same for a call that was ended.
const DRAIN_STOPPED: Duration = Duration::from_secs(1);

/// Runs the guest; returns when the sandbox is to end.
pub fn run(hello_wait: Duration) -> Result<(), LinkError> {
    sys::close_inherited();
    sys::set_undumpable()?;
    let child_signal = sys::child_signal()?;
    let mut link = Link::open()?;
    let outcome = handshake(&mut link, hello_wait)
        .map_err(|error| (Phase::Handshake, error))
        .and_then(|start| {
            let mut call = Call::begin(&mut link, child_signal, start)
                .map_err(|error| (Phase::Spawn, error))?;
            call.run().map_err(|error| (Phase::Run, error))
        });
    sys::kill_all();
    match outcome {
        Ok(()) | Err((_, LinkError::Gone)) => Ok(()),
        Err((phase, error)) => {
            let message = match &error {
                LinkError::Gone => String::new(),
                LinkError::Wire(error) => error.to_string(),
                LinkError::Io(error) => error.to_string(),
            };
            link.send(&GuestMessage::Fatal(Fatal { phase, message }))?;
            flush(&mut link, Instant::now() + DRAIN_STOPPED)?;
            Err(error)
        }
    }
}

/// Waits for the key, reports what is mounted, waits for the order to start.
fn handshake(link: &mut Link, hello_wait: Duration) -> Result<Start, LinkError> {
    let hello = match message(link, Instant::now() + hello_wait)? {
        HostMessage::Hello(hello) if hello.version == VERSION => hello,
        _ => return Err(WireError::Unexpected(Kind::Hello).into()),
    };
    link.rekey(&hello.key);
    let lease = Instant::now() + Duration::from_millis(hello.lease_ms);
    link.send(&GuestMessage::Ready(report::ready(&hello.targets)))?;
    flush(link, lease)?;
    match message(link, lease)? {
        HostMessage::Start(start) => Ok(start),
        _ => Err(WireError::Unexpected(Kind::Start).into()),
    }
}

/// The next message; past the deadline the host counts as gone.
fn message(link: &mut Link, deadline: Instant) -> Result<HostMessage, LinkError> {
    loop {
        if let Some(frame) = link.next_frame()? {
            return Ok(HostMessage::from_frame(frame)?);
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(LinkError::Gone);
        }
        let mut polls = [Poll::read(link.input())];
        sys::poll(&mut polls, left)?;
        if polls[0].ready() {
            link.read()?;
        }
    }
}

/// Writes everything that waits, or gives up at the deadline.
fn flush(link: &mut Link, deadline: Instant) -> Result<(), LinkError> {
    loop {
        link.write()?;
        let left = deadline.saturating_duration_since(Instant::now());
        let Some(output) = link.output() else {
            return Ok(());
        };
        if left.is_zero() {
            return Err(LinkError::Gone);
        }
        sys::poll(&mut [Poll::write(output)], left)?;
    }
}

/// A call from `Start` to `Exit`.
struct Call<'a> {
    link: &'a mut Link,
    child_signal: OwnedFd,
    job: Job,
    /// Standard input, and what the broker says.
    inputs: [Input; 2],
    /// Standard output, standard error, and what a tool says.
    outputs: [Output; 3],
    closed: [bool; 3],
    output_max: u64,
    watch: watch::Watch,
    begun: Instant,
    deadline: Instant,
    announced: bool,
    cancelled: Option<Instant>,
    stopped: Option<Cause>,
    /// Since when nothing runs any more, and until when output may still leave.
    ended: Option<(Duration, Instant)>,
    buffer: Vec<u8>,
}

impl<'a> Call<'a> {
    fn begin(link: &'a mut Link, child_signal: OwnedFd, start: Start) -> Result<Self, LinkError> {
        let begun = Instant::now();
        let (input, stdin) = match start.stdin {
            Stdin::Pipe => Input::open()?,
            Stdin::Null => Input::none()?,
        };
        let (out, stdout) = Output::open(Channel::STDOUT)?;
        let (err, stderr) = Output::open(Channel::STDERR)?;
        let (heard, said, port) = match start.port {
            Port::Tool => {
                let (heard, said, port) = stdio::talk()?;
                (heard, said, Some(port))
            }
            Port::Closed => {
                let (heard, said) = stdio::no_talk();
                (heard, said, None)
            }
        };
        let closed = [false, false, port.is_none()];
        let deadline = begun + Duration::from_millis(start.limits.wall_ms);
        let output_max = start.limits.output_max;
        let watch = watch::Watch::new(start.limits.open_files, begun);
        Ok(Self {
            link,
            child_signal,
            job: Job::begin(start, [stdin, stdout, stderr], port),
            inputs: [input, heard],
            outputs: [out, err, said],
            closed,
            output_max,
            watch,
            begun,
            deadline,
            announced: false,
            cancelled: None,
            stopped: None,
            ended: None,
            buffer: vec![0; DATA_MAX],
        })
    }

    fn run(&mut self) -> Result<(), LinkError> {
        // What came together with `Start` was read with it.
        self.take_frames()?;
        loop {
            self.check_end();
            if let Some((_, until)) = self.ended {
                let drained = self.closed == [true; 3];
                if drained || Instant::now() >= until {
                    return self.exit(until);
                }
            }
            self.turn()?;
        }
    }

    /// Waits for anything to happen and takes it.
    fn turn(&mut self) -> Result<(), LinkError> {
        let room = self.link.has_room();
        let output =
            |at: usize| self.outputs[at].wants().filter(|_| room).map_or(Poll::none(), Poll::read);
        let input = |at: usize| self.inputs[at].wants().map_or(Poll::none(), Poll::write);
        let mut polls = vec![
            Poll::read(self.link.input()),
            self.link.output().map_or(Poll::none(), Poll::write),
            Poll::read(self.child_signal.as_raw_fd()),
            input(0),
            input(1),
            output(0),
            output(1),
            output(2),
        ];
        polls.extend(self.job.reports().map(Poll::read));
        sys::poll(&mut polls, self.next_deadline())?;

        if polls[0].ready() {
            self.link.read()?;
            self.take_frames()?;
        }
        if polls[1].ready() {
            self.link.write()?;
        }
        if polls[8..].iter().any(|poll| poll.ready()) {
            self.announce()?;
        }
        for at in 0..2 {
            if polls[3 + at].ready() {
                let grant = self.inputs[at].write();
                self.give_back(at, grant)?;
            }
        }
        for at in 0..3 {
            if polls[5 + at].ready() {
                self.forward(at)?;
            }
        }
        // Whatever woke us: two cheap calls, and no trust in every runtime's signalfd.
        self.reap()
    }

    fn next_deadline(&self) -> Duration {
        let deadline = match (self.ended, self.cancelled) {
            (Some((_, until)), _) => until,
            (None, Some(cancelled)) => self.deadline.min(cancelled + CANCEL_GRACE),
            (None, None) => self.deadline,
        };
        let left = deadline.saturating_duration_since(Instant::now());
        if self.ended.is_some() { left } else { left.min(TICK) }
    }

    fn take_frames(&mut self) -> Result<(), LinkError> {
        while let Some(frame) = self.link.next_frame()? {
            self.take(HostMessage::from_frame(frame)?)?;
        }
        Ok(())
    }

    fn take(&mut self, message: HostMessage) -> Result<(), LinkError> {
        match message {
            HostMessage::Data(channel, bytes) => {
                let at = usize::from(channel == Channel::TOOL);
                let grant = self.inputs[at].take(&bytes)?;
                self.give_back(at, grant)
            }
            HostMessage::Close(_) => {
                self.inputs[0].close();
                Ok(())
            }
            HostMessage::Credit(channel, bytes) => {
                for output in &mut self.outputs {
                    if output.channel == channel {
                        output.grant(bytes)?;
                    }
                }
                Ok(())
            }
            HostMessage::Signal(signal) => {
                self.signal(signal);
                Ok(())
            }
            HostMessage::Hello(_) => Err(WireError::Unexpected(Kind::Hello).into()),
            HostMessage::Start(_) => Err(WireError::Unexpected(Kind::Start).into()),
        }
    }

    fn give_back(&mut self, at: usize, grant: Option<u32>) -> Result<(), LinkError> {
        match grant {
            Some(bytes) => self.link.send(&GuestMessage::Credit(self.inputs[at].channel, bytes)),
            None => Ok(()),
        }
    }

    fn signal(&mut self, signal: SignalName) {
        let number = match signal {
            SignalName::Interrupt => libc::SIGINT,
            SignalName::Terminate => libc::SIGTERM,
            SignalName::Hangup => libc::SIGHUP,
            SignalName::Kill => return self.stop(Cause::Cancel),
        };
        self.cancelled.get_or_insert_with(Instant::now);
        self.job.stop();
        self.job.signal(number);
    }

    /// Says once that a command runs.
    fn announce(&mut self) -> Result<(), LinkError> {
        if self.job.read_reports() && !self.announced {
            self.announced = true;
            let spawn_us = micros(self.begun.elapsed());
            self.link.send(&GuestMessage::Started(Started { spawn_us }))?;
        }
        Ok(())
    }

    /// Moves one piece of output to the host.
    fn forward(&mut self, at: usize) -> Result<(), LinkError> {
        let output = &mut self.outputs[at];
        let count = output.read(&mut self.buffer)?;
        let channel = output.channel;
        if count > 0 {
            let bytes = self.buffer[..count].to_vec();
            self.link.send(&GuestMessage::Data(channel, bytes))?;
        }
        let total = self.outputs[0].total + self.outputs[1].total;
        if total > self.output_max && self.ended.is_none() {
            self.stop(Cause::Output);
        }
        if self.outputs[at].ended() && !self.closed[at] {
            self.closed[at] = true;
            self.link.send(&GuestMessage::Close(channel))?;
        }
        Ok(())
    }

    fn reap(&mut self) -> Result<(), LinkError> {
        // The content is not needed; a full queue would only mean the same again.
        sys::drain(&self.child_signal);
        while let Some(reaped) = sys::reap() {
            if !self.announced {
                self.announce()?;
            }
            self.job.reaped(&reaped);
        }
        Ok(())
    }

    /// Ends the work for a reason of our own.
    fn stop(&mut self, cause: Cause) {
        self.stopped.get_or_insert(cause);
        self.job.stop();
    }

    /// Looks whether the work is over; kills what is left of it.
    fn check_end(&mut self) {
        if self.ended.is_some() {
            return;
        }
        let now = Instant::now();
        if self.cancelled.is_some_and(|since| now >= since + CANCEL_GRACE) {
            self.stop(Cause::Cancel);
        }
        if now >= self.deadline {
            self.stop(Cause::Wall);
        }
        if let Some(cause) = self.watch.look(now) {
            self.stop(cause);
        }
        let by_itself = self.job.ended().is_some();
        if by_itself && self.cancelled.is_some() {
            self.stop(Cause::Cancel);
        }
        if by_itself || self.stopped.is_some() {
            sys::kill_all();
            self.job.stop();
            self.inputs.iter_mut().for_each(Input::stop);
            let drain = if self.stopped.is_some() { DRAIN_STOPPED } else { DRAIN };
            self.ended = Some((self.begun.elapsed(), now + drain));
        }
    }

    /// Tells the end, as the last word.
    fn exit(&mut self, until: Instant) -> Result<(), LinkError> {
        for at in 0..3 {
            if !self.closed[at] {
                self.outputs[at].stop();
                self.link.send(&GuestMessage::Close(self.outputs[at].channel))?;
            }
        }
        self.bury()?;
        let exit = self.account();
        self.link.send(&GuestMessage::Exit(exit))?;
        flush(self.link, until.max(Instant::now() + DRAIN_STOPPED))
    }

    /// Waits until every killed process is dead: the host must be able to rely on it that after the
    /// last word nothing changes its files any more.
    fn bury(&mut self) -> Result<(), LinkError> {
        let until = Instant::now() + BURY;
        loop {
            while let Some(reaped) = sys::reap() {
                self.job.reaped(&reaped);
            }
            if !sys::has_children() {
                return Ok(());
            }
            if Instant::now() >= until {
                let stuck = "a process of the command cannot be killed";
                return Err(LinkError::Io(std::io::Error::other(stuck)));
            }
            sys::poll(&mut [Poll::read(self.child_signal.as_raw_fd())], BURY_PAUSE)?;
            sys::drain(&self.child_signal);
        }
    }

    fn account(&self) -> Exit {
        let (hits, cpu_us) = self.job.account();
        let mut hits = hits.to_vec();
        let mut usage = cgroup::usage(cpu_us);
        usage.wall_us = self.ended.map_or(0, |(wall, _)| micros(wall));
        usage.written =
            StreamTotals { stdout: self.outputs[0].total, stderr: self.outputs[1].total };
        if usage.oom_kills.is_some_and(|kills| kills > 0) {
            hits.push(LimitHit::Memory);
        }
        if usage.pids_refused.is_some_and(|refused| refused > 0) {
            hits.push(LimitHit::Pids);
        }
        match self.stopped {
            Some(Cause::Wall) => hits.push(LimitHit::Wall),
            Some(Cause::Output) => hits.push(LimitHit::Output),
            Some(Cause::Pids) => hits.push(LimitHit::Pids),
            Some(Cause::OpenFiles) => hits.push(LimitHit::OpenFiles),
            Some(Cause::Cancel) | None => {}
        }
        hits.sort_unstable();
        hits.dedup();
        let ending = match (self.stopped, self.job.ended()) {
            (Some(cause), _) => Ending::Stopped { cause },
            (None, Some(ending)) => ending.clone(),
            (None, None) => Ending::Stopped { cause: Cause::Cancel },
        };
        Exit { ending, hits, usage }
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
