//! Inspection: TLS of a command's connections ends on the host, and each request is judged.
//!
//! ```text
//! tunnel (name and port were judged, the address was checked)
//!   -> ClientHello: its name must be the tunnel's name
//!   -> TLS with a certificate of the call's own authority
//!   -> request: strict HTTP/1.1 -> checked -> judged (method, path) -> written anew, with the host's credentials
//!   -> TLS to the checked address, verified against the system's roots
//!   -> answer: hop-by-hop headers dropped, credentials masked, counted, timed, recorded
//! ```
//!
//! Duty: no byte of the command's connection reaches the server as it stands. The host parses every request and
//! sends its own: one server name for TLS, `Host` and judgement, no upgrade, no CONNECT, no header that changes the
//! method or the target. Credentials are added after the judgement and are masked in answers. Redirections go to
//! the client, whose next request is judged like any other. Non-goals: HTTP/2, proxies, caches, WebSockets; protocols
//! that are not HTTP. Trust boundary: the client's bytes and the server's bytes are both foreign.
//!
//! | part | duty |
//! | --- | --- |
//! | [`Authority`] | the certificate authority of one call and its server certificates |
//! | `hello` | the client's TLS |
//! | `head` | from a parsed request to the request that is judged and sent; pure |
//! | `answer` | the server's answer: head and body |
//! | `upstream` | the connection to the server, used again for the client's next request |
//! | [`Inspector`] | the steps above, for one tunnel |
//! | [`Judge`], [`Dialer`], [`Records`] | what the call provides |
//! | [`ByPolicy`] | judgement by the policy, with the credentials of rules and registries |
//! | `tunnel` | from a judged connection of [`egress`](crate::broker::egress) to an inspected one |
//! | [`bundle`] | what programs inside trust |

mod answer;
mod authority;
mod by_policy;
mod head;
mod hello;
mod limits;
mod powers;
mod relay;
#[cfg(test)]
mod tests;
mod trust;
mod tunnel;
mod upstream;

pub use authority::{Authority, AuthorityError};
pub use by_policy::ByPolicy;
pub use powers::{Asked, Dialer, Exchange, Granted, Judge, Records, Stream};
pub use relay::{Inspector, Place, Protocol};
pub use trust::bundle;
