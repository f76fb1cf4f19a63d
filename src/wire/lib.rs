//! The framed protocol between the host and the guest: frames, messages, keys and credit.
//!
//! Duty: turn bytes into messages and back, the same on both ends, without I/O. Non-goals: reading
//! and writing descriptors, and judging what a message asks for. Trust boundary: the host treats
//! every byte from a guest as hostile. Anything that is not exactly a known message, in order, with
//! the right code of authentication is a [`WireError`], after which the stream is not used again.
//!
//! ```text
//! host                                   guest (PID 1)
//!  | -- Hello(version, key, targets) ---> |   the only frame without the key
//!  | <-- Ready(mounts as seen inside) --- |
//!  |     identity of every mount checked  |
//!  | -- Start(work, env, cwd, limits) --> |   spawns
//!  | -- Data/Close stdin ---------------> |
//!  | <--------- Data/Close stdout,stderr  |   both within the credit of the receiver
//!  | <-> Data tool                        |   what the broker and a tool's runtime say
//!  | <-- Open(tunnel, name, port) ------- |   a program connects; the host judges that, and dials
//!  | <-> Data/Close/Reset tunnel          |   each way within its own credit
//!  | <-- Missed(name, port) ------------- |   a program asked for a name that the order does not have
//!  | <-> Credit(channel, bytes)           |
//!  | -- Signal -------------------------> |
//!  | <-- Exit(ending, programs, usage) -- |   the last frame; the guest ends
//! ```
//!
//! A guest may be given an order as it is created: it carries it out at once, before any `Hello`, and
//! what it started waits. The one `Start` of that sandbox then has [`Work::Waiting`] and takes it over.

mod bytes;
mod codec;
mod credit;
mod frame;
mod launch;
mod line;
mod message;
mod network;
mod ran;
mod script;
mod start;

pub use bytes::Bytes;
pub use codec::{Decoder, Encoder, Key, Side, WireError};
pub use credit::{Receiver, Sender, TUNNEL_WINDOW, WINDOW};
pub use frame::{
    CONTROL_MAX, Channel, DATA_MAX, Frame, HEADER, Kind, REPORT_MAX, SMALL_MAX, TUNNEL_DATA_MAX,
};
pub use launch::{
    GROUP_LOCK, GUEST_FOLDER, Group, GroupFile, Join, LAUNCH, LaunchFailure, LaunchMount,
    LaunchStep, RECIPE_MAX, Recipe, Right, Scope, Source,
};
pub use line::{
    AndOr, Assignment, Builtin, Class, Command, Joiner, Line, Part, Pipeline, Redirect, RedirectTo,
    Simple, Word,
};
pub use message::{
    Cause, Ending, Exit, Fatal, GuestMessage, Hello, HostMessage, LimitHit, MARK, MARK_MAX, Missed,
    MountSeen, Open, Phase, Ready, Seen, SignalName, Started, StreamTotals, Usage, VERSION,
};
pub use network::{NAMES_MAX, Network, PORTS_MAX};
pub use ran::{NAME_MAX, PROGRAMS_MAX, Programs, Ran};
pub use script::{
    Assume, BROKEN_MAX, Block, Broken, Chain, Does, Expand, Node, Opening, OpeningTo, PathKind,
    Piece, Pipe, Script, Setting, Step, Switch, Why,
};
pub use start::{Port, Start, StartLimits, Stdin, Work};
