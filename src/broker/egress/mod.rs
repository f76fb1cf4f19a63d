//! The network of commands: each connection is judged by the name and port that the program asked for, resolved
//! once, and made to the address that was checked.
//!
//! ```text
//! guest: Open(name, port) -> pump -> judged (rule, terms) -> counted -> inspect? -> `inspect`
//!                                                             |
//!                              443: first bytes are a ClientHello with that name
//!                                                             |
//!                              resolved once -> every address checked -> the checked one dialled -> bytes both ways
//! ```
//!
//! Duty: nothing is dialled that no rule `for: commands` names, and every connection is recorded. Non-goals: what is
//! said on a connection, which is `inspect`'s part where a rule wants that. Trust boundary: names, ports and bytes are
//! the sandbox's; the guest's own judgement of them counts for nothing.
//!
//! | part | duty |
//! | --- | --- |
//! | `egress` | the connections of a call, from the pump's opening to what came of them |
//! | `carry` | one connection, step by step |
//! | `hello` | which host the first bytes of TLS mean |
//! | `dial`, `own` | from a name to a checked address |
//! | `metered`, `record` | bytes, bounds, and what is kept of each connection |
//! | `tunnel` | what is handed to the part that ends TLS |

mod carry;
mod dial;
#[expect(clippy::module_inception, reason = "the type of that name is what this part is about")]
mod egress;
mod hello;
mod metered;
mod own;
mod record;
#[cfg(test)]
mod tests;
mod tunnel;

pub use egress::Egress;
pub use record::{Connection, Failed, Reached};
pub use tunnel::{Dial, Dialled, Inspect, NotConnected, Stream, Tunnel};
