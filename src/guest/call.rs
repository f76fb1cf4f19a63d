//! A call, from `Start` to `Exit`: one loop that moves bytes, keeps limits and follows processes.
//!
//! It always has a deadline, for the call and for the last bytes after it. When standard input closes,
//! the host is gone and so is the sandbox.

use crate::cgroup::Counters;
use crate::link::{Link, LinkError};
use crate::net::Net;
use crate::stdio::Input;
use crate::sys::{self, Poll};
use crate::underway::Underway;
use crate::wait::Order;
use crate::watch;
use runner_wire::{
    Cause, Channel, DATA_MAX, Ending, Exit, GuestMessage, HostMessage, Kind, LimitHit, SignalName,
    Started, StreamTotals, WireError,
};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

/// How long a command may take to end after a signal of the host.
const CANCEL_GRACE: Duration = Duration::from_secs(1);

/// How long killed processes may take to be gone.
const BURY: Duration = Duration::from_secs(5);

/// Time between two looks, if no signal tells.
const BURY_PAUSE: Duration = Duration::from_millis(20);

/// How long the last output of a call that ended by itself may take to leave.
const DRAIN: Duration = Duration::from_secs(10);

/// The same for a call that was ended.
pub const DRAIN_STOPPED: Duration = Duration::from_secs(1);

/// How long the word that something runs waits for others to travel with: most commands are over by then.
const TOGETHER: Duration = Duration::from_millis(3);

/// How long the host may take to let go of a sandbox in which nothing runs any more. Its end costs processor time that
/// the host has better use for while somebody waits for the answer.
const LET_GO: Duration = Duration::from_secs(1);

/// A call from `Start` to `Exit`.
pub struct Call<'a> {
    link: &'a mut Link,
    child_signal: OwnedFd,
    work: Underway,
    output_max: u64,
    watch: watch::Watch,
    counters: Counters,
    /// Processor time of the sandbox before this call, if its controller tells.
    cpu_before: Option<u64>,
    begun: Instant,
    deadline: Instant,
    announced: bool,
    cancelled: Option<Instant>,
    stopped: Option<Cause>,
    /// Other processes that still ran when the command ended by itself.
    left_running: u64,
    /// Since when nothing runs any more, and until when output may still leave.
    ended: Option<(Duration, Instant)>,
    buffer: Vec<u8>,
    /// What is there for a call that has a network.
    net: Option<Net>,
}

impl<'a> Call<'a> {
    /// The clock of the call and its count of output begin here, whenever its process was started.
    pub fn begin(
        link: &'a mut Link,
        child_signal: OwnedFd,
        counters: Counters,
        mut order: Order,
    ) -> Result<Self, LinkError> {
        let net = order.network().map(Net::open).transpose()?;
        let begun = Instant::now();
        let cpu_before = counters.cpu_us();
        let limits = *order.limits();
        let work = match order {
            Order::Begin(start) => Underway::begin(start)?,
            Order::TakeOver(work, _) => *work,
        };
        Ok(Self {
            link,
            child_signal,
            work,
            output_max: limits.output_max,
            watch: watch::Watch::new(&limits, begun),
            counters,
            cpu_before,
            begun,
            deadline: begun + Duration::from_millis(limits.wall_ms),
            announced: false,
            cancelled: None,
            stopped: None,
            left_running: 0,
            ended: None,
            buffer: vec![0; DATA_MAX],
            net,
        })
    }

    /// Runs until the last word was said.
    pub fn run(&mut self) -> Result<(), LinkError> {
        // A single program runs as soon as it is started.
        self.announce()?;
        // What came together with `Start` was read with it.
        self.take_frames()?;
        loop {
            self.check_end();
            if let Some((_, until)) = self.ended {
                let drained = self.work.closed == [true; 3];
                if drained || Instant::now() >= until {
                    return self.exit(until);
                }
            }
            self.turn()?;
        }
    }

    /// Waits for anything to happen and takes it.
    fn turn(&mut self) -> Result<(), LinkError> {
        if !self.link.is_patient() {
            self.link.write()?;
        }
        let room = self.link.has_room();
        let output = |at: usize| {
            self.work.outputs[at].wants().filter(|_| room).map_or(Poll::none(), Poll::read)
        };
        let input = |at: usize| self.work.inputs[at].wants().map_or(Poll::none(), Poll::write);
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
        polls.extend(self.work.job.reports().map(Poll::read));
        let net_at = polls.len();
        let plan = self.net.as_ref().map(|net| net.polls(room, &mut polls));
        let deadline = self.next_deadline();
        if self.link.is_patient() {
            sys::poll(&mut polls, deadline.min(TOGETHER))?;
            if !polls.iter().any(|poll| poll.ready()) {
                self.link.write()?;
            }
        } else {
            sys::poll(&mut polls, deadline)?;
        }

        if polls[0].ready() {
            self.link.read()?;
            self.take_frames()?;
        }
        if polls[1].ready() {
            self.link.write()?;
        }
        if polls[8..net_at].iter().any(|poll| poll.ready()) {
            self.announce()?;
        }
        if let (Some(net), Some(plan)) = (&mut self.net, plan) {
            net.turn(&plan, &polls[net_at..], self.link)?;
        }
        for at in 0..2 {
            if polls[3 + at].ready() {
                let grant = self.work.inputs[at].write();
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
        if self.ended.is_some() { left } else { left.min(self.watch.pause()) }
    }

    fn take_frames(&mut self) -> Result<(), LinkError> {
        while let Some(frame) = self.link.next_frame()? {
            self.take(HostMessage::from_frame(frame)?)?;
        }
        Ok(())
    }

    fn take(&mut self, message: HostMessage) -> Result<(), LinkError> {
        match message {
            HostMessage::Data(channel, bytes) if channel.is_tunnel() => {
                self.tunnel(|net, link| net.data(channel, &bytes, link))
            }
            HostMessage::Close(channel) if channel.is_tunnel() => {
                self.tunnel(|net, link| net.close(channel, link))
            }
            HostMessage::Credit(channel, bytes) if channel.is_tunnel() => {
                self.tunnel(|net, _| net.credit(channel, bytes))
            }
            HostMessage::Reset(channel) => self.tunnel(|net, _| net.reset(channel)),
            HostMessage::Data(channel, bytes) => {
                let at = usize::from(channel == Channel::TOOL);
                let grant = self.work.inputs[at].take(&bytes)?;
                self.give_back(at, grant)
            }
            HostMessage::Close(_) => {
                self.work.inputs[0].close();
                Ok(())
            }
            HostMessage::Credit(channel, bytes) => {
                for output in &mut self.work.outputs {
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

    /// Passes a frame of a tunnel on; after the end of the work there is none any more.
    fn tunnel(
        &mut self,
        take: impl FnOnce(&mut Net, &mut Link) -> Result<(), LinkError>,
    ) -> Result<(), LinkError> {
        match &mut self.net {
            Some(net) => take(net, self.link),
            None if self.ended.is_some() => Ok(()),
            None => Err(WireError::Unexpected(Kind::Data).into()),
        }
    }

    fn give_back(&mut self, at: usize, grant: Option<u32>) -> Result<(), LinkError> {
        match grant {
            Some(bytes) => {
                self.link.send(&GuestMessage::Credit(self.work.inputs[at].channel, bytes))
            }
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
        self.work.job.stop();
        self.work.job.signal(number);
    }

    /// Says once that a command runs.
    fn announce(&mut self) -> Result<(), LinkError> {
        if self.work.job.read_reports() && !self.announced {
            self.announced = true;
            let spawn_us = micros(self.begun.elapsed());
            self.link.send_later(&GuestMessage::Started(Started { spawn_us }))?;
        }
        Ok(())
    }

    /// Moves one piece of output to the host.
    fn forward(&mut self, at: usize) -> Result<(), LinkError> {
        let output = &mut self.work.outputs[at];
        let count = output.read(&mut self.buffer)?;
        let channel = output.channel;
        if count > 0 {
            let bytes = self.buffer[..count].to_vec();
            self.link.send(&GuestMessage::Data(channel, bytes))?;
        }
        let total = self.work.outputs[0].total + self.work.outputs[1].total;
        if total > self.output_max && self.ended.is_none() {
            self.stop(Cause::Output);
        }
        if self.work.outputs[at].ended() && !self.work.closed[at] {
            self.work.closed[at] = true;
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
            self.work.job.reaped(&reaped);
        }
        Ok(())
    }

    /// Ends the work for a reason of our own.
    fn stop(&mut self, cause: Cause) {
        self.stopped.get_or_insert(cause);
        self.work.job.stop();
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
        if let Some(cause) = self.watch.look(now, &self.counters) {
            self.stop(cause);
        }
        let by_itself = self.work.job.ended().is_some();
        if by_itself && self.cancelled.is_some() {
            self.stop(Cause::Cancel);
        }
        if by_itself || self.stopped.is_some() {
            if self.stopped.is_none() {
                self.left_running = watch::others();
            }
            sys::kill_all();
            self.work.job.stop();
            self.work.inputs.iter_mut().for_each(Input::stop);
            self.net = None;
            let drain = if self.stopped.is_some() { DRAIN_STOPPED } else { DRAIN };
            self.ended = Some((self.begun.elapsed(), now + drain));
        }
    }

    /// Tells the end, as the last word.
    fn exit(&mut self, until: Instant) -> Result<(), LinkError> {
        for at in 0..3 {
            if !self.work.closed[at] {
                self.work.outputs[at].stop();
                self.link.send(&GuestMessage::Close(self.work.outputs[at].channel))?;
            }
        }
        self.bury()?;
        let exit = self.account();
        self.link.send(&GuestMessage::Exit(exit))?;
        self.link.flush(until.max(Instant::now() + DRAIN_STOPPED))?;
        self.link.hear_out(Instant::now() + LET_GO)
    }

    /// Waits until every killed process is dead: the host must be able to rely on it that after the
    /// last word nothing changes its files any more.
    fn bury(&mut self) -> Result<(), LinkError> {
        let until = Instant::now() + BURY;
        loop {
            while let Some(reaped) = sys::reap() {
                self.work.job.reaped(&reaped);
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
        let (hits, cpu_us) = self.work.job.account();
        let mut hits = hits.to_vec();
        let mut usage = self.counters.usage(cpu_us, self.cpu_before);
        usage.peak_memory = usage.peak_memory.or_else(|| self.watch.peak_memory());
        usage.wall_us = self.ended.map_or(0, |(wall, _)| micros(wall));
        usage.written =
            StreamTotals { stdout: self.work.outputs[0].total, stderr: self.work.outputs[1].total };
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
            Some(Cause::Memory) => hits.push(LimitHit::Memory),
            Some(Cause::Cancel) | None => {}
        }
        hits.sort_unstable();
        hits.dedup();
        let ending = match (self.stopped, self.work.job.ended()) {
            (Some(cause), _) => Ending::Stopped { cause },
            (None, Some(ending)) => ending.clone(),
            (None, None) => Ending::Stopped { cause: Cause::Cancel },
        };
        let programs = self.work.job.programs().clone();
        Exit { ending, hits, programs, left_running: self.left_running, usage }
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
