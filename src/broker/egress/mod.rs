//! The network of commands: each connection is judged by the name and port that the program asked for, resolved
//! once, and made to the address that was checked.
//!
//! Duty: nothing is dialled that no rule `for: commands` names, and every connection is recorded. Non-goals: what is
//! said on a connection, which is `inspect`'s part where a rule wants that. Trust boundary: names, ports and bytes are
//! the sandbox's; the guest's own judgement of them counts for nothing.

mod tunnel;

pub use tunnel::{Dial, Dialled, Inspect, NotConnected, Stream, Tunnel};
