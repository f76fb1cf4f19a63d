//! The messages, and the only place where a frame becomes one.

use crate::bytes::Bytes;
use crate::codec::{Encoder, Key, WireError};
use crate::frame::{Channel, Frame, Kind};
use crate::ran::Programs;
use crate::script::Broken;
use crate::start::Start;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The version of the message set. Host and guest are built together, so any other is an error.
pub const VERSION: u32 = 1;

/// The first word of the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hello {
    /// [`VERSION`].
    pub version: u32,
    /// The secret of this sandbox.
    pub key: Key,
    /// Paths whose identity the guest reports.
    pub targets: Vec<Bytes>,
    /// Milliseconds after which a guest that was not told to start ends itself.
    pub lease_ms: u64,
}

/// What the guest sees before anything runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ready {
    /// [`VERSION`].
    pub version: u32,
    /// Each path that was asked for, in order.
    pub mounts: Vec<MountSeen>,
    /// The guest's own standing.
    pub seen: Seen,
}

/// What stands at a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MountSeen {
    /// The path.
    pub target: Bytes,
    /// Device number; 0 if nothing is there.
    pub dev: u64,
    /// Inode number; 0 if nothing is there.
    pub ino: u64,
    /// Whether its file system is mounted read-only here.
    pub read_only: bool,
    /// The value of its attribute [`MARK`], if it has one.
    pub mark: Option<Bytes>,
}

/// The extended attribute that marks the root of the topmost layer of an overlay.
pub const MARK: &str = "user.runner.layer";

/// Longest value of a mark.
pub const MARK_MAX: usize = 64;

/// The guest's own standing, as the kernel tells it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Seen {
    /// User.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Effective, permitted and bounding capabilities together.
    pub capabilities: u64,
    /// Whether no new privileges can be had; `None` if the kernel does not tell.
    pub no_new_privs: Option<bool>,
    /// Seccomp mode: 2 is a filter; `None` if the kernel does not tell.
    pub seccomp: Option<u32>,
}

/// The first process runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Started {
    /// Microseconds from `Start` to here.
    pub spawn_us: u64,
}

/// A signal that a host may send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SignalName {
    /// SIGINT to the command; if it does not end soon, everything is killed.
    Interrupt,
    /// SIGTERM to the command; if it does not end soon, everything is killed.
    Terminate,
    /// SIGHUP to the command; if it does not end soon, everything is killed.
    Hangup,
    /// Everything is killed now.
    Kill,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CreditBody {
    bytes: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SignalBody {
    signal: SignalName,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Empty {}

/// A program connects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Open {
    /// The name that it asked for.
    pub name: String,
    /// The port.
    pub port: u16,
}

/// A program asked for what it cannot reach.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Missed {
    /// The name that it asked for.
    pub name: String,
}

/// The end of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exit {
    /// How the command ended.
    pub ending: Ending,
    /// Limits that were met on the way, whether or not they ended the call.
    pub hits: Vec<LimitHit>,
    /// Which programs ran.
    pub programs: Programs,
    /// Other processes that still ran when the command ended by itself; they were killed.
    pub left_running: u64,
    /// What it used.
    pub usage: Usage,
}

/// How the command ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Ending {
    /// It returned.
    Exited {
        /// Its status.
        status: i32,
    },
    /// A signal ended it.
    Signalled {
        /// The signal.
        signal: i32,
    },
    /// The guest ended it.
    Stopped {
        /// Why.
        cause: Cause,
    },
    /// There is no such program.
    NotFound {
        /// Its name.
        program: Bytes,
    },
    /// The program cannot be executed.
    NotExecutable {
        /// Its name.
        program: Bytes,
        /// The kernel's number for why.
        errno: i32,
    },
    /// The working directory cannot be entered.
    NoCwd {
        /// The kernel's number for why.
        errno: i32,
    },
    /// A word of the line became what had not been judged.
    Assumption(Broken),
}

/// Why the guest ended a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Its time was over.
    Wall,
    /// It wrote too much.
    Output,
    /// It wanted more processes than it may have.
    Pids,
    /// One of its processes has as many files open as it may have.
    OpenFiles,
    /// Its processes together have more memory than they may have.
    Memory,
    /// The host asked.
    Cancel,
}

/// A limit that was met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitHit {
    /// A process was killed for want of memory. Source: the memory controller's event counter, or the guest's look at
    /// `/proc` where no control group holds the limit.
    Memory,
    /// A process or thread was refused. Source: the pids controller's event counter, or the guest's count.
    Pids,
    /// A process had as many files open as it may have. Source: the guest's look at `/proc`.
    OpenFiles,
    /// A process used up its processor time. Source: SIGXCPU, or a kill beyond the figure.
    CpuTime,
    /// A process wrote beyond the size of one file. Source: SIGXFSZ.
    FileSize,
    /// Both output streams together. Source: the guest's count.
    Output,
    /// The time. Source: the guest's clock.
    Wall,
}

/// What a call used. `None` where the kernel does not tell.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Usage {
    /// Highest memory of all processes together, in bytes.
    pub peak_memory: Option<u64>,
    /// Processor time of all processes together, in microseconds.
    pub cpu_us: Option<u64>,
    /// Most processes and threads at once.
    pub peak_pids: Option<u64>,
    /// Processes killed for want of memory.
    pub oom_kills: Option<u64>,
    /// Processes and threads that were refused.
    pub pids_refused: Option<u64>,
    /// Microseconds from the first process to the end.
    pub wall_us: u64,
    /// Bytes that the command wrote.
    pub written: StreamTotals,
}

/// Bytes of both output streams.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamTotals {
    /// Standard output.
    pub stdout: u64,
    /// Standard error.
    pub stderr: u64,
}

/// The guest cannot go on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fatal {
    /// Where it failed.
    pub phase: Phase,
    /// What failed.
    pub message: String,
}

/// A phase of the guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Before the first frame.
    Setup,
    /// From the first frame to `Start`.
    Handshake,
    /// What was started beforehand ended before `Start`: nothing of this call ran.
    Wait,
    /// Starting a process.
    Spawn,
    /// While it runs.
    Run,
}

/// Streams into the sandbox.
const TO_GUEST: &[Channel] = &[Channel::STDIN, Channel::TOOL];

/// Streams out of it.
const TO_HOST: &[Channel] = &[Channel::STDOUT, Channel::STDERR, Channel::TOOL];

/// A message of the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostMessage {
    /// The key; the first frame.
    Hello(Hello),
    /// What to run.
    Start(Start),
    /// Bytes of standard input or of the broker.
    Data(Channel, Vec<u8>),
    /// The end of standard input.
    Close(Channel),
    /// Room for output.
    Credit(Channel, u32),
    /// A signal for the command.
    Signal(SignalName),
    /// A tunnel that has failed.
    Reset(Channel),
}

/// A message of the guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GuestMessage {
    /// What it sees.
    Ready(Ready),
    /// The first process runs.
    Started(Started),
    /// Bytes of an output stream.
    Data(Channel, Vec<u8>),
    /// The end of an output stream.
    Close(Channel),
    /// Room for input.
    Credit(Channel, u32),
    /// A new tunnel.
    Open(Channel, Open),
    /// A tunnel that has failed.
    Reset(Channel),
    /// A name that the order does not have.
    Missed(Missed),
    /// The end.
    Exit(Exit),
    /// It cannot go on.
    Fatal(Fatal),
}

impl HostMessage {
    /// Reads a frame that the host wrote.
    ///
    /// # Errors
    /// The frame is none of the host's messages.
    pub fn from_frame(frame: Frame) -> Result<Self, WireError> {
        Ok(match frame.kind {
            Kind::Hello => Self::Hello(control(&frame)?),
            Kind::Start => Self::Start(control(&frame)?),
            Kind::Data => Self::Data(on(&frame, TO_GUEST)?, frame.payload),
            Kind::Close => Self::Close(closed(&frame, &[Channel::STDIN])?),
            Kind::Credit => Self::Credit(on(&frame, TO_HOST)?, body::<CreditBody>(&frame)?.bytes),
            Kind::Signal => Self::Signal(control::<SignalBody>(&frame)?.signal),
            Kind::Reset => Self::Reset(closed(&frame, &[])?),
            Kind::Ready
            | Kind::Started
            | Kind::Exit
            | Kind::Fatal
            | Kind::Open
            | Kind::Missed
            | Kind::Resize => {
                return Err(WireError::Unexpected(frame.kind));
            }
        })
    }

    /// Appends this message as a frame. The key of a `Hello` is in force after it.
    ///
    /// # Errors
    /// The message is too long.
    pub fn encode(&self, encoder: &mut Encoder, out: &mut Vec<u8>) -> Result<(), WireError> {
        let control = Channel::CONTROL;
        match self {
            Self::Hello(hello) => {
                put(encoder, Kind::Hello, control, hello, out)?;
                encoder.rekey(&hello.key);
                Ok(())
            }
            Self::Start(start) => put(encoder, Kind::Start, control, start, out),
            Self::Data(channel, bytes) => encoder.frame(Kind::Data, *channel, bytes, out),
            Self::Close(channel) => put(encoder, Kind::Close, *channel, &Empty {}, out),
            Self::Credit(channel, bytes) => {
                let body = CreditBody { bytes: *bytes };
                put(encoder, Kind::Credit, *channel, &body, out)
            }
            Self::Signal(signal) => {
                let body = SignalBody { signal: *signal };
                put(encoder, Kind::Signal, control, &body, out)
            }
            Self::Reset(channel) => put(encoder, Kind::Reset, *channel, &Empty {}, out),
        }
    }
}

impl GuestMessage {
    /// Reads a frame that the guest wrote.
    ///
    /// # Errors
    /// The frame is none of the guest's messages.
    pub fn from_frame(frame: Frame) -> Result<Self, WireError> {
        Ok(match frame.kind {
            Kind::Ready => Self::Ready(control(&frame)?),
            Kind::Started => Self::Started(control(&frame)?),
            Kind::Data => Self::Data(on(&frame, TO_HOST)?, frame.payload),
            Kind::Close => Self::Close(closed(&frame, TO_HOST)?),
            Kind::Credit => Self::Credit(on(&frame, TO_GUEST)?, body::<CreditBody>(&frame)?.bytes),
            Kind::Exit => Self::Exit(control(&frame)?),
            Kind::Fatal => Self::Fatal(control(&frame)?),
            Kind::Open => {
                let open: Open = body(&frame)?;
                Self::Open(on(&frame, &[])?, named(&open.name, frame.kind).map(|()| open)?)
            }
            Kind::Reset => Self::Reset(closed(&frame, &[])?),
            Kind::Missed => {
                let missed: Missed = control(&frame)?;
                Self::Missed(named(&missed.name, frame.kind).map(|()| missed)?)
            }
            Kind::Hello | Kind::Start | Kind::Signal | Kind::Resize => {
                return Err(WireError::Unexpected(frame.kind));
            }
        })
    }

    /// Appends this message as a frame.
    ///
    /// # Errors
    /// The message is too long.
    pub fn encode(&self, encoder: &mut Encoder, out: &mut Vec<u8>) -> Result<(), WireError> {
        let control = Channel::CONTROL;
        match self {
            Self::Ready(ready) => put(encoder, Kind::Ready, control, ready, out),
            Self::Started(started) => put(encoder, Kind::Started, control, started, out),
            Self::Data(channel, bytes) => encoder.frame(Kind::Data, *channel, bytes, out),
            Self::Close(channel) => put(encoder, Kind::Close, *channel, &Empty {}, out),
            Self::Credit(channel, bytes) => {
                let body = CreditBody { bytes: *bytes };
                put(encoder, Kind::Credit, *channel, &body, out)
            }
            Self::Open(channel, open) => put(encoder, Kind::Open, *channel, open, out),
            Self::Reset(channel) => put(encoder, Kind::Reset, *channel, &Empty {}, out),
            Self::Missed(missed) => put(encoder, Kind::Missed, control, missed, out),
            Self::Exit(exit) => put(encoder, Kind::Exit, control, exit, out),
            Self::Fatal(fatal) => put(encoder, Kind::Fatal, control, fatal, out),
        }
    }
}

/// The frame's channel: one of these, or a tunnel, which no control message has.
fn on(frame: &Frame, channels: &[Channel]) -> Result<Channel, WireError> {
    let tunnel = frame.channel.is_tunnel() && !channels.contains(&Channel::CONTROL);
    if tunnel || channels.contains(&frame.channel) {
        Ok(frame.channel)
    } else {
        Err(WireError::Channel { kind: frame.kind, channel: frame.channel.0 })
    }
}

fn named(name: &str, kind: Kind) -> Result<(), WireError> {
    if crate::network::is_name(name) {
        return Ok(());
    }
    Err(WireError::Payload { kind, reason: "not a host name".to_owned() })
}

fn closed(frame: &Frame, channels: &[Channel]) -> Result<Channel, WireError> {
    let Empty {} = body(frame)?;
    on(frame, channels)
}

fn control<T: DeserializeOwned>(frame: &Frame) -> Result<T, WireError> {
    on(frame, &[Channel::CONTROL])?;
    body(frame)
}

/// Reads a payload. Every type refuses unknown and repeated keys; JSON itself refuses the rest.
fn body<T: DeserializeOwned>(frame: &Frame) -> Result<T, WireError> {
    serde_json::from_slice(&frame.payload)
        .map_err(|error| WireError::Payload { kind: frame.kind, reason: error.to_string() })
}

fn put<T: Serialize>(
    encoder: &mut Encoder,
    kind: Kind,
    channel: Channel,
    body: &T,
    out: &mut Vec<u8>,
) -> Result<(), WireError> {
    let payload = serde_json::to_vec(body)
        .map_err(|error| WireError::Payload { kind, reason: error.to_string() })?;
    encoder.frame(kind, channel, &payload, out)
}
