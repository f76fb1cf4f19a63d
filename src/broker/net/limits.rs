//! Bounds that hold whatever a rule says.

use std::time::Duration;

/// Longest URL. Servers refuse longer ones.
pub(super) const URL: usize = 8 << 10;
/// Most headers of a request.
pub(super) const HEADERS: usize = 100;
/// Most bytes of a request's headers together.
pub(super) const HEADER_BYTES: usize = 32 << 10;
/// Largest body of a request: it is kept to be sent again where a redirection asks for it.
pub(super) const BODY: usize = 16 << 20;
/// Most headers of an answer.
pub(super) const ANSWER_HEADERS: usize = 128;
/// Most bytes of an answer before its body.
pub(super) const ANSWER_HEAD: usize = 64 << 10;
/// Most redirections, as the fetch standard has it.
pub(super) const REDIRECTS: usize = 20;
/// Most requests of a call at once; others wait.
pub(super) const AT_ONCE: usize = 8;
/// Most addresses of a name that are looked at.
pub(super) const ADDRESSES: usize = 16;
/// How long one address may take to answer before the next is tried.
pub(super) const CONNECT: Duration = Duration::from_secs(5);
/// How long a name may take to resolve.
pub(super) const RESOLVE: Duration = Duration::from_secs(10);
