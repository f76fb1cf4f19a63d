//! Peers: which requests and connections the `net` rules allow, and on what terms.

use std::cmp::Reverse;
use std::net::IpAddr;
use std::sync::Arc;

use jiff::Timestamp;

use super::{Code, Decision, Query, RuleRef};
use crate::effect::Peer;
use crate::effective::Effective;
use crate::model::{NetRule, Policy, Verdict};
use crate::net::{self, Audience, Count, FigureKey, Kind, Reach, Target, Terms};

/// What the rules say of a peer.
pub(super) struct Answer {
    pub verdict: Verdict,
    pub message: String,
    pub rule: Option<RuleRef>,
    pub reason: Option<String>,
    /// On what terms; for what is not denied.
    pub terms: Option<Terms>,
}

/// A rule and the policy it stands in.
pub(super) type Found<'p> = (&'p Arc<Policy>, &'p NetRule);

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
    let audience = match peer {
        Peer::Request { .. } => Audience::Tools,
        Peer::Connect(_) | Peer::Any => Audience::Arguments,
    };
    let answer = judge(policy, query.now, &peer, audience);
    let code = match answer.verdict {
        Verdict::Allow => Code::Allowed,
        Verdict::Ask => Code::Ask,
        Verdict::Deny if answer.rule.is_some() => Code::DeniedByRule,
        Verdict::Deny => Code::NetDenied,
    };
    let mut decision = Decision::new(policy, answer.verdict, code, answer.message);
    decision.rule = answer.rule;
    decision.reason = answer.reason;
    if let Peer::Request { method, url } = &peer {
        decision.terms = answer.terms;
        // An address in the URL needs no resolving: what dialling would refuse is refused here already.
        let target = net::request(method, url);
        if let (Some(target), Some(terms)) = (target, &decision.terms)
            && let Some(address) = target.address()
            && let Err(refused) = dial_alone(policy, query.now, &target, terms, address)
        {
            decision.decision = Verdict::Deny;
            decision.code = Code::NetAddress;
            decision.message = refused.to_string();
            decision.terms = None;
        }
    }
    decision.approvable = decision.decision == Verdict::Ask;
    decision
}

/// The strictest rule that covers the peer; none means deny.
pub(super) fn judge(policy: &Effective, now: Timestamp, peer: &Peer, audience: Audience) -> Answer {
    let (target, shown) = match peer {
        Peer::Request { method, url } => (net::request(method, url), format!("{method} {url}")),
        Peer::Connect(host) => (net::connection(host), format!("connect {host}")),
        Peer::Any => (None, "a peer that is not known before it runs".to_owned()),
    };
    let answer = |verdict, message: String, found: Option<Found<'_>>| Answer {
        verdict,
        message,
        rule: found.map(|(layer, rule)| reference(layer, rule)),
        reason: found.and_then(|(_, rule)| rule.reason.clone()),
        terms: None,
    };
    let Some(target) = target else {
        // Not known: proof is impossible, and any deny is in doubt; those for commands hold when one connects.
        let doubted = if *peer == Peer::Any { Audience::Tools } else { audience };
        let message = if *peer == Peer::Any {
            format!("it reaches {shown}")
        } else {
            format!("`{shown}` is not a plain target")
        };
        return answer(
            Verdict::Deny,
            message,
            rules(policy, doubted).filter(|(_, rule)| rule.verb == Verdict::Deny).min_by_key(key),
        );
    };
    if let Some(found) = denying(policy, now, &target, audience) {
        return answer(Verdict::Deny, format!("`{shown}` is denied"), Some(found));
    }
    let granted = |verb: Verdict, words: &str| {
        let covering = rules(policy, audience).filter(|(_, rule)| rule.verb == verb);
        let found = covering
            .filter_map(|found| Some((exact(found.1, &target, now)?, found)))
            .min_by_key(|(exact, found)| (Reverse(exact.exactness()), key(found)));
        found.map(|(exact, found)| Answer {
            terms: Some(terms(found, exact)),
            ..answer(verb, format!("`{shown}` {words}"), Some(found))
        })
    };
    granted(Verdict::Ask, "needs approval")
        .or_else(|| granted(Verdict::Allow, "is allowed"))
        .unwrap_or_else(|| answer(Verdict::Deny, format!("no `net` rule allows `{shown}`"), None))
}

/// Whether a rule asks about some peer or denies one.
pub(super) fn restricts(policy: &Effective, now: Timestamp) -> bool {
    // What is for commands is judged when they connect.
    rules(policy, Audience::Tools)
        .any(|(_, rule)| rule.verb != Verdict::Allow && in_force(rule, now))
}

/// Why an address is not dialled.
#[derive(Debug, thiserror::Error, Clone, PartialEq, Eq)]
#[error("{}", self.sentence())]
pub struct DialRefused {
    /// The address.
    pub address: IpAddr,
    /// What it is.
    pub kind: Kind,
    /// The rule that denies it, if one does.
    pub rule: Option<RuleRef>,
    pub(super) why: Why,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    Kind,
    Denied,
    Readable,
}

impl DialRefused {
    fn sentence(&self) -> String {
        let Self { address, kind, .. } = self;
        match self.why {
            Why::Kind if kind.can_be_named() => {
                format!("{address} is {}, and no rule names it", kind.words())
            }
            Why::Kind => format!("{address} is {}, which is never dialled", kind.words()),
            Why::Denied => format!("{address} is denied"),
            Why::Readable => {
                format!("what the rule sends would be readable on its way to {address}")
            }
        }
    }
}

/// Whether the address to which a request's host resolved may be dialled. `terms` are those of the decision
/// about the request; every policy that had a say is asked about the address too.
///
/// # Errors
/// It may not.
pub fn dial(
    policy: &Effective,
    now: Timestamp,
    asked: &Target,
    terms: &Terms,
    address: IpAddr,
) -> Result<(), DialRefused> {
    dial_alone(policy, now, asked, terms, address)?;
    policy.within.iter().try_for_each(|other| dial(other, now, asked, terms, address))
}

fn dial_alone(
    policy: &Effective,
    now: Timestamp,
    asked: &Target,
    terms: &Terms,
    address: IpAddr,
) -> Result<(), DialRefused> {
    let kind = net::kind(address);
    let refused = |why, rule| Err(DialRefused { address, kind, rule, why });
    if !terms.reach.admits(kind) {
        return refused(Why::Kind, None);
    }
    // A deny of an address holds by whatever name one gets there.
    if let Some((layer, rule)) = denying(policy, now, &asked.at(address), Audience::Tools) {
        return refused(Why::Denied, Some(reference(layer, rule)));
    }
    if !terms.send.is_empty() && asked.scheme.as_deref() != Some("https") && kind != Kind::Loopback
    {
        return refused(Why::Readable, None);
    }
    Ok(())
}

pub(super) fn rules(policy: &Effective, audience: Audience) -> impl Iterator<Item = Found<'_>> {
    let all =
        policy.layers.iter().flat_map(|layer| layer.net.iter().map(move |rule| (layer, rule)));
    all.filter(move |(_, rule)| rule.is_for(audience))
}

/// The rule that denies a target, by proof or by doubt.
pub(super) fn denying<'p>(
    policy: &'p Effective,
    now: Timestamp,
    asked: &Target,
    audience: Audience,
) -> Option<Found<'p>> {
    let denies = |(_, rule): &Found<'_>| {
        rule.verb == Verdict::Deny
            && in_force(rule, now)
            && rule.targets.iter().any(|target| doubts(target, asked))
    };
    rules(policy, audience).filter(denies).min_by_key(key)
}

/// The most exact target by which a rule covers what is asked.
fn exact<'r>(rule: &'r NetRule, asked: &Target, now: Timestamp) -> Option<&'r Target> {
    if !in_force(rule, now) {
        return None;
    }
    rule.targets.iter().filter(|target| target.covers(asked)).max_by_key(|one| one.exactness())
}

pub(super) fn in_force(rule: &NetRule, now: Timestamp) -> bool {
    rule.until.is_none_or(|end| now < end)
}

/// What a rule grants by one of its targets.
fn terms((layer, rule): Found<'_>, target: &Target) -> Terms {
    // A rule that names an address means it.
    let named = if target.address().is_some() { Reach::Named } else { Reach::Public };
    Terms {
        size: rule.figures.get(FigureKey::Size),
        time: rule.figures.get(FigureKey::Time),
        counts: vec![Count {
            rule: reference(layer, rule).id,
            most: rule.figures.get(FigureKey::Count),
        }],
        reach: rule.reach.max(named),
        send: rule.send.clone(),
    }
}

/// What tells rules apart wherever they stand, to report the same one in any order.
pub(super) fn key<'p>((layer, rule): &Found<'p>) -> (&'p str, Option<&'p str>, &'p str) {
    (&layer.name, rule.id.as_deref(), &rule.text)
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

pub(super) fn reference(layer: &Policy, rule: &NetRule) -> RuleRef {
    let id = rule.id.clone().unwrap_or_else(|| format!("line-{}", rule.at.line));
    RuleRef {
        id: format!("{}/{id}", layer.name),
        file: layer.file.clone(),
        line: rule.at.line,
        text: rule.text.clone(),
    }
}
