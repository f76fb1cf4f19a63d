//! Bounds that hold whatever a rule says.

use std::time::Duration;

/// How long a client may take to begin TLS and to complete its handshake.
pub(super) const HANDSHAKE: Duration = Duration::from_secs(20);
/// How long a client may take to send the head of a request once it began, and to begin the next one. Package
/// managers keep connections open for some minutes.
pub(super) const HEAD: Duration = Duration::from_secs(300);
/// How long the server may take to complete its handshake.
pub(super) const UPSTREAM: Duration = Duration::from_secs(20);
/// Most headers of a request.
pub(super) const HEADERS: usize = 100;
/// Most bytes of a request's head: a URL of 8 KiB and as much of headers as a tool's request may have.
pub(super) const BUFFER: usize = 64 << 10;
/// Longest path with its query. Servers refuse longer ones.
pub(super) const URL: usize = 8 << 10;
/// Most headers of an answer.
pub(super) const ANSWER_HEADERS: usize = 128;
/// Most bytes of an answer before its body.
pub(super) const ANSWER_HEAD: usize = 64 << 10;
/// Most bytes of one request's body. What git sends to ask for a repository's commits is far smaller.
pub(super) const REQUEST_BODY: u64 = 16 << 20;
/// Most names for which one call makes certificates: a rule of the form `*.example.org` names any number.
pub(super) const NAMES: usize = 1024;
/// How long a call's certificates are valid. No call is longer.
pub(super) const VALID: Duration = Duration::from_secs(24 * 3600);
/// How far a clock may differ: the sandbox has the host's own clock.
pub(super) const SKEW: Duration = Duration::from_secs(300);
