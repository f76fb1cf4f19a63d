//! The layout of a frame, its kinds and channels, and how long each kind may be.
//!
//! ```text
//! offset  0        4     5         9          17        49
//!         | length | kind | channel | sequence | MAC     | payload, `length` bytes
//!           u32 LE   u8     u32 LE    u64 LE     32 bytes
//! ```
//!
//! The header has one size, so that kind and length are known, and refused if wrong, before any
//! memory for the payload is taken.

/// Bytes before the payload.
pub const HEADER: usize = 4 + 1 + 4 + 8 + 32;

/// The longest payload of a data frame: what a pipe holds, so that one read makes one frame.
pub const DATA_MAX: usize = 64 << 10;

/// The longest payload that either end puts into one frame of a tunnel: many tunnels take turns.
pub const TUNNEL_DATA_MAX: usize = 32 << 10;

/// The longest payload of a control frame. Linux takes about 2 MiB of arguments and variables;
/// hexadecimal doubles what is not text.
pub const CONTROL_MAX: usize = 6 << 20;

/// The longest payload of a guest's report of the programs that ran. Its report of mounts names every path that the host
/// asked about, so that one may be as long as the host's own messages.
pub const REPORT_MAX: usize = 2 << 20;

/// The longest payload of the small control messages.
pub const SMALL_MAX: usize = 16 << 10;

// A credit window that could not hold a frame would stop a stream for ever.
const _: () = assert!(crate::credit::WINDOW as usize >= 2 * DATA_MAX);
const _: () = assert!(crate::credit::TUNNEL_WINDOW as usize >= 2 * TUNNEL_DATA_MAX);
const _: () = assert!(CONTROL_MAX < u32::MAX as usize && REPORT_MAX <= CONTROL_MAX);

/// What a frame is. Numbers are never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Kind {
    /// Host: version and key. The first frame of all.
    Hello = 1,
    /// Guest: what it sees inside.
    Ready = 2,
    /// Host: what to run.
    Start = 3,
    /// Guest: it runs.
    Started = 4,
    /// Either: bytes of a stream.
    Data = 5,
    /// Either: a stream has ended.
    Close = 6,
    /// Either: room for more bytes of a stream.
    Credit = 7,
    /// Host: a signal for the command.
    Signal = 8,
    /// Guest: the end, with usage. Its last frame.
    Exit = 9,
    /// Guest: it cannot go on. Its last frame.
    Fatal = 10,
    /// Guest: a program connects to a name; the channel is new.
    Open = 11,
    /// Either: a tunnel has failed, and nothing more comes on its channel.
    Reset = 12,
    /// Guest: a program asked for what the order's network does not name.
    Missed = 13,
    /// Reserved. Host: the size of a terminal.
    Resize = 16,
}

impl Kind {
    /// Every kind, for tests and the golden file.
    pub const ALL: [Self; 14] = [
        Self::Hello,
        Self::Ready,
        Self::Start,
        Self::Started,
        Self::Data,
        Self::Close,
        Self::Credit,
        Self::Signal,
        Self::Exit,
        Self::Fatal,
        Self::Open,
        Self::Reset,
        Self::Missed,
        Self::Resize,
    ];

    /// The kind with this number.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == number)
    }

    /// The longest payload of this kind.
    #[must_use]
    pub fn cap(self) -> usize {
        match self {
            Self::Hello | Self::Ready | Self::Start => CONTROL_MAX,
            Self::Exit => REPORT_MAX,
            Self::Data => DATA_MAX,
            Self::Started | Self::Close | Self::Credit | Self::Signal | Self::Fatal => SMALL_MAX,
            Self::Open | Self::Reset | Self::Missed | Self::Resize => SMALL_MAX,
        }
    }
}

/// One of the streams that share the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Channel(pub u32);

impl Channel {
    /// Control messages.
    pub const CONTROL: Self = Self(0);
    /// Standard input of the command.
    pub const STDIN: Self = Self(1);
    /// Standard output of the command.
    pub const STDOUT: Self = Self(2);
    /// Standard error of the command.
    pub const STDERR: Self = Self(3);
    /// The talk between the broker and a tool's runtime, both ways. The guest passes it on unread.
    pub const TOOL: Self = Self(4);
    /// The first tunnel. Numbers of tunnels rise, and none is used twice in a call.
    pub const FIRST_TUNNEL: Self = Self(16);

    /// Whether this is a connection of a command.
    #[must_use]
    pub fn is_tunnel(self) -> bool {
        self >= Self::FIRST_TUNNEL
    }
}

/// One frame whose header and code of authentication were right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// What it is.
    pub kind: Kind,
    /// The stream it belongs to.
    pub channel: Channel,
    /// Its payload.
    pub payload: Vec<u8>,
}
