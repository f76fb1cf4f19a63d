//! What a command finds inside its own sandbox, where no list of a policy has to name it.
//!
//! A sandbox has a loopback interface and a `/proc` of its own, and nothing of the host is behind either. Only
//! commands in a sandbox are judged here. A tool's request and a broker's path are the host's.

use jiff::Timestamp;

use crate::effect::{Caused, Class, Classes, Effect, Peer, Place};
use crate::effective::Effective;
use crate::{net, procfs};

/// The code of a note that says so.
pub const NO_NETWORK_CODE: &str = "no_network";

/// Why a command that wants the network does not get it, and what has it.
pub const NO_NETWORK: &str = "commands have no network in the sandbox; `net` rules are for tools";

/// The same under a policy with rules for commands.
const NOT_NAMED: &str = "commands reach only what a `net` rule `for: commands` names";

/// Why a command that wants to reach something does not.
pub(super) fn no_network(policy: &Effective, now: Timestamp) -> &'static str {
    if policy.connects(now) { NOT_NAMED } else { NO_NETWORK }
}

/// Whether a command reads no more than facts about its sandbox.
pub(super) fn is_own_proc(place: &Place) -> bool {
    procfs::is_free(place)
}

/// Whether a peer is the sandbox itself.
pub(super) fn is_loopback(peer: &Peer) -> bool {
    let target = match peer {
        Peer::Request { method, url } => net::request(method, url),
        Peer::Connect(host) => net::connection(host),
        Peer::Any => None,
    };
    target.is_some_and(|target| target.is_loopback())
}

/// Whether a command wants to reach something outside its sandbox.
pub(super) fn reaches_out(effect: &Effect) -> bool {
    matches!(effect, Effect::Net(peer) if !is_loopback(peer))
}

/// The class that a rule must grant for an effect; none for talk inside the sandbox.
pub(super) fn class(effect: &Effect) -> Option<Class> {
    match effect {
        Effect::Net(peer) if is_loopback(peer) => None,
        effect => effect.class(),
    }
}

/// The classes that a rule must grant for all of these.
pub(super) fn classes<'c>(effects: impl Iterator<Item = &'c Caused>) -> Classes {
    effects.filter_map(|caused| class(&caused.effect)).collect()
}
