//! `net.fetch`: a tool's requests, made by the host under the policy's `net` rules.
//!
//! ```text
//! request -> checked (method, URL, headers) -> decided (rule, terms) -> approved? -> counted
//!         -> resolved once -> every address checked -> the checked address dialled -> TLS by the name
//!         -> sent with the rule's secrets -> answer: redirection? judged anew, from "decided"
//!                                                    else streamed: counted, timed, scrubbed
//! ```
//!
//! Duty: nothing is dialled that was not decided, and what is dialled is the address that was checked, never the
//! name again. Secrets are added here and do not come back: an answer that repeats one has a mask there. Non-goals:
//! proxies (none is taken from the environment), caches, cookies, compression, HTTP/2. Trust boundary: request and
//! answer are both foreign; either can be anything.
//!
//! | part | duty |
//! | --- | --- |
//! | `url`, `headers`, `redirect` | reading and judging text, pure |
//! | `resolve`, `dial`, `tls` | from a name to a connection |
//! | `exchange`, `reply` | one request on it, and the answer's body |
//! | `secrets`, `count` | what a call sends, and how often |
//! | `fetch` | the steps above, in order |

mod count;
mod dial;
mod exchange;
mod fetch;
mod headers;
mod limits;
mod redirect;
mod reply;
pub(in crate::broker) mod resolve;
mod secrets;
#[cfg(test)]
mod tests;
mod tls;
mod url;

pub(crate) use fetch::spelled;
pub use fetch::{AllApproved, Asked, Fetcher, NetApproval, NoneApproved, Sent};
pub(in crate::broker) use secrets::Secrets;
pub(in crate::broker) use tls::Roots;
#[cfg(test)]
pub(in crate::broker) use tls::config as tls_config;
pub(in crate::broker) use url::Url;
