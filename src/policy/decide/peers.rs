//! Peers: which requests and connections the `net` rules allow.

use jiff::Timestamp;

use super::{Code, Decision, Query, RuleRef};
use crate::effect::Peer;
use crate::effective::Effective;
use crate::model::{NetRule, Policy, Verdict};
use crate::net::{self, Target};

/// What the rules say of a peer.
pub(super) struct Answer {
    pub verdict: Verdict,
    pub message: String,
    pub rule: Option<RuleRef>,
    pub reason: Option<String>,
}

/// A question about one peer.
pub(super) fn question(policy: &Effective, query: &Query<'_>, text: &str) -> Decision {
    let peer = match text.split_once(' ') {
        Some(("connect", host)) => Peer::Connect(host.trim().to_owned()),
        Some((method, url)) => {
            Peer::Request { method: method.to_owned(), url: url.trim().to_owned() }
        }
        None if text.contains("://") => {
            Peer::Request { method: "GET".to_owned(), url: text.to_owned() }
        }
        None => Peer::Connect(text.to_owned()),
    };
    let answer = judge(policy, query.now, &peer);
    let code = match answer.verdict {
        Verdict::Allow => Code::Allowed,
        Verdict::Ask => Code::Ask,
        Verdict::Deny if answer.rule.is_some() => Code::DeniedByRule,
        Verdict::Deny => Code::NetDenied,
    };
    let mut decision = Decision::new(policy, answer.verdict, code, answer.message);
    decision.approvable = answer.verdict == Verdict::Ask;
    decision.rule = answer.rule;
    decision.reason = answer.reason;
    decision
}

/// The strictest rule that covers the peer; none means deny.
pub(super) fn judge(policy: &Effective, now: Timestamp, peer: &Peer) -> Answer {
    let (target, shown) = match peer {
        Peer::Request { method, url } => (net::request(method, url), format!("{method} {url}")),
        Peer::Connect(host) => (net::connection(host), format!("connect {host}")),
        Peer::Any => (None, "a peer that is not known before it runs".to_owned()),
    };
    let rules =
        || policy.layers.iter().flat_map(|layer| layer.net.iter().map(move |rule| (layer, rule)));
    let answer =
        |verdict, message: String, found: Option<(&std::sync::Arc<Policy>, &NetRule)>| Answer {
            verdict,
            message,
            rule: found.map(|(layer, rule)| reference(layer, rule)),
            reason: found.and_then(|(_, rule)| rule.reason.clone()),
        };
    let Some(target) = target else {
        // Not known: proof is impossible, and any deny is in doubt.
        let message = if *peer == Peer::Any {
            format!("it reaches {shown}")
        } else {
            format!("`{shown}` is not a plain target")
        };
        return answer(
            Verdict::Deny,
            message,
            rules().filter(|(_, rule)| rule.verb == Verdict::Deny).min_by_key(key),
        );
    };
    let covering = |verb: Verdict| {
        rules().filter(|(_, rule)| rule.verb == verb && covers(rule, &target, now)).min_by_key(key)
    };
    if let Some(found) = covering(Verdict::Deny) {
        return answer(Verdict::Deny, format!("`{shown}` is denied"), Some(found));
    }
    if let Some(found) = covering(Verdict::Ask) {
        return answer(Verdict::Ask, format!("`{shown}` needs approval"), Some(found));
    }
    match covering(Verdict::Allow) {
        Some(found) => answer(Verdict::Allow, format!("`{shown}` is allowed"), Some(found)),
        None => answer(Verdict::Deny, format!("no `net` rule allows `{shown}`"), None),
    }
}

/// What tells rules apart wherever they stand, to report the same one in any order.
fn key<'p>(
    (layer, rule): &(&'p std::sync::Arc<Policy>, &'p NetRule),
) -> (&'p str, Option<&'p str>, &'p str) {
    (&layer.name, rule.id.as_deref(), &rule.text)
}

fn covers(rule: &NetRule, asked: &Target, now: Timestamp) -> bool {
    rule.until.is_none_or(|end| now < end)
        && rule.targets.iter().any(|target| match rule.verb {
            Verdict::Deny => doubts(target, asked),
            Verdict::Allow | Verdict::Ask => target.covers(asked),
        })
}

/// A deny needs only doubt: a connection to a host of which some path is denied could ask for that path.
fn doubts(target: &Target, asked: &Target) -> bool {
    if target.covers(asked) {
        return true;
    }
    let mut open = asked.clone();
    if asked.connect && !target.connect {
        open.connect = false;
        open.methods.clear();
        open.scheme.clone_from(&target.scheme);
        open.path.clone_from(&target.path);
    }
    if open.port.is_none() {
        open.port = target.port;
    }
    // Servers read doubled slashes, encoded letters and parameters each in their own way.
    if asked.path.as_deref().is_some_and(|path| path.contains("//") || path.contains(['%', ';'])) {
        open.path.clone_from(&target.path);
    }
    open != *asked && target.covers(&open)
}

fn reference(layer: &Policy, rule: &NetRule) -> RuleRef {
    let id = rule.id.clone().unwrap_or_else(|| format!("line-{}", rule.at.line));
    RuleRef {
        id: format!("{}/{id}", layer.name),
        file: layer.file.clone(),
        line: rule.at.line,
        text: rule.text.clone(),
    }
}
