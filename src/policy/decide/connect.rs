//! Connections of commands: by the name and port that a program asked for, and then by the address found for it.

use std::collections::BTreeSet;
use std::net::IpAddr;

use jiff::Timestamp;

use super::peers::{DialRefused, Found, Why, denying, in_force, key, reference, rules};
use super::{Code, Decision, Query, RuleRef};
use crate::effective::Effective;
use crate::model::{NetRule, Verdict};
use crate::net::{self, Audience, Bounded, Passage, Reach, RegistryHost};

/// Why a connection is not made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.sentence())]
pub struct ConnectRefused {
    /// What was asked for: `HOST:PORT`.
    pub asked: String,
    /// The rule that denies it, if one does.
    pub rule: Option<Box<RuleRef>>,
    /// That rule's reason.
    pub reason: Option<String>,
    /// The policy that says so.
    pub said_by: String,
    /// Ports of the same name that are allowed.
    pub ports: Vec<u16>,
}

impl ConnectRefused {
    fn sentence(&self) -> String {
        let Self { asked, rule, said_by, .. } = self;
        match rule {
            Some(rule) => format!("`connect {asked}` is denied by `{}`", rule.id),
            None if !self.ports.is_empty() => {
                let ports: Vec<String> = self.ports.iter().map(u16::to_string).collect();
                format!(
                    "no `net` rule of `{said_by}` allows commands `connect {asked}`, only port {}",
                    ports.join(", ")
                )
            }
            None => format!("no `net` rule of `{said_by}` allows commands `connect {asked}`"),
        }
    }
}

/// What names and ports the guest answers: as wide as the rules of the policy itself. Each connection is judged anew.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reachable {
    /// Names, with `*.` before some, or `*`.
    pub names: BTreeSet<String>,
    /// Ports.
    pub ports: BTreeSet<u16>,
}

/// The names and ports that rules for commands allow at this moment; what the policy stays within may allow less.
#[must_use]
pub fn reachable(policy: &Effective, now: Timestamp, registries: &[RegistryHost]) -> Reachable {
    let mut reachable = Reachable::default();
    for (_, rule) in allowing(policy, now) {
        for (name, port) in targets(rule, registries) {
            reachable.names.insert(name.to_owned());
            reachable.ports.insert(port);
        }
    }
    reachable
}

/// Whether a command may connect to a name, and on what terms. The policy and all that it stays within must agree.
///
/// # Errors
/// It may not.
pub fn connect(
    policy: &Effective,
    now: Timestamp,
    registries: &[RegistryHost],
    name: &str,
    port: u16,
) -> Result<Passage, ConnectRefused> {
    let own = connect_alone(policy, now, registries, name, port)?;
    policy.within.iter().try_fold(own, |passage, other| {
        Ok(passage.within(connect(other, now, registries, name, port)?))
    })
}

fn connect_alone(
    policy: &Effective,
    now: Timestamp,
    registries: &[RegistryHost],
    name: &str,
    port: u16,
) -> Result<Passage, ConnectRefused> {
    let asked = format!("{name}:{port}");
    let refused = |found: Option<Found<'_>>| ConnectRefused {
        asked: asked.clone(),
        rule: found.map(|(layer, rule)| Box::new(reference(layer, rule))),
        reason: found.and_then(|(_, rule)| rule.reason.clone()),
        said_by: policy.name().to_owned(),
        ports: Vec::new(),
    };
    let target = net::connection(&asked)
        .filter(|target| target.address().is_none() && target.host == name)
        .ok_or_else(|| refused(None))?;
    if let Some(found) = denying(policy, now, &target, Audience::Commands) {
        return Err(refused(Some(found)));
    }
    let covering = || {
        let all = allowing(policy, now);
        all.filter(|(_, rule)| {
            targets(rule, registries).any(|(host, known)| known == port && covers(host, name))
        })
    };
    // What says where the host is comes before what does not; then the rule that names it exactly.
    let best = covering().min_by_key(|found| {
        let (_, rule) = found;
        let at = rule.commands.as_ref().is_none_or(|own| own.at.is_none());
        let exact = targets(rule, registries).any(|(host, known)| known == port && host == name);
        (at, !exact, key(found))
    });
    let Some((layer, rule)) = best else {
        let all = allowing(policy, now).flat_map(|(_, rule)| targets(rule, registries));
        let ports: BTreeSet<u16> =
            all.filter(|(host, _)| covers(host, name)).map(|(_, port)| port).collect();
        return Err(ConnectRefused { ports: ports.into_iter().collect(), ..refused(None) });
    };
    let Some(own) = &rule.commands else { return Err(refused(None)) };
    let named = if own.at.is_some() { Reach::Named } else { Reach::Public };
    let id = reference(layer, rule).id;
    Ok(Passage {
        counted: vec![Bounded { rule: id.clone(), bounds: own.bounds }],
        rule: id,
        reach: rule.reach.max(named),
        at: own.at,
        inspect: covering().any(|(_, rule)| rule.commands.as_ref().is_some_and(|own| own.inspect)),
        registry: own.registry,
    })
}

/// Whether the address that was found for a name may be dialled. Every policy that had a say is asked about it too.
///
/// # Errors
/// It may not.
pub fn dial_connection(
    policy: &Effective,
    now: Timestamp,
    (name, port): (&str, u16),
    passage: &Passage,
    address: IpAddr,
) -> Result<(), DialRefused> {
    let kind = net::kind(address);
    if !passage.reach.admits(kind) {
        return Err(DialRefused { address, kind, rule: None, why: Why::Kind });
    }
    let Some(target) = net::connection(&format!("{name}:{port}")) else {
        return Err(DialRefused { address, kind, rule: None, why: Why::Denied });
    };
    // A deny of an address holds by whatever name one gets there.
    if let Some((layer, rule)) = denying(policy, now, &target.at(address), Audience::Commands) {
        let rule = Some(reference(layer, rule));
        return Err(DialRefused { address, kind, rule, why: Why::Denied });
    }
    policy
        .within
        .iter()
        .try_for_each(|other| dial_connection(other, now, (name, port), passage, address))
}

/// A question about one connection of a command: `HOST:PORT`.
pub(super) fn question(
    policy: &Effective,
    query: &Query<'_>,
    text: &str,
    registries: &[RegistryHost],
) -> Decision {
    let asked = text.strip_prefix("connect ").unwrap_or(text).trim();
    let place = net::connection(asked).and_then(|target| Some((target.port?, target)));
    let Some((port, target)) = place else {
        return Decision::new(
            policy,
            Verdict::Deny,
            Code::BadArgument,
            format!("`{asked}` is no connection: write HOST:PORT"),
        );
    };
    match connect_alone(policy, query.now, registries, &target.host, port) {
        Ok(passage) => {
            let message = format!("commands may `connect {asked}` by `{}`", passage.rule);
            let mut decision = Decision::new(policy, Verdict::Allow, Code::Allowed, message);
            decision.rule = allowing(policy, query.now)
                .map(|(layer, rule)| reference(layer, rule))
                .find(|rule| rule.id == passage.rule);
            decision
        }
        Err(refused) => {
            let code = match &refused.rule {
                Some(_) => Code::DeniedByRule,
                None => Code::NetDenied,
            };
            let mut decision = Decision::new(policy, Verdict::Deny, code, refused.to_string());
            decision.rule = refused.rule.map(|rule| *rule);
            decision.reason = refused.reason;
            decision
        }
    }
}

impl Effective {
    /// Whether some rule of the policy itself lets commands connect.
    #[must_use]
    pub fn connects(&self, now: Timestamp) -> bool {
        allowing(self, now).next().is_some()
    }

    /// The package managers whose registries its rules for commands allow.
    #[must_use]
    pub fn registries(&self, now: Timestamp) -> BTreeSet<net::Registry> {
        allowing(self, now)
            .filter_map(|(_, rule)| rule.commands.as_ref().and_then(|own| own.registry))
            .collect()
    }
}

pub(super) fn allowing(policy: &Effective, now: Timestamp) -> impl Iterator<Item = Found<'_>> {
    rules(policy, Audience::Commands)
        .filter(move |(_, rule)| rule.verb == Verdict::Allow && in_force(rule, now))
}

/// Names and ports of a rule: of its targets, or of the registries that it stands for.
fn targets<'r>(
    rule: &'r NetRule,
    registries: &'r [RegistryHost],
) -> impl Iterator<Item = (&'r str, u16)> {
    let meant = rule.commands.as_ref().and_then(|own| own.registry);
    let registries = registries
        .iter()
        .filter(move |host| meant == Some(host.registry))
        .map(|host| (host.host.as_str(), host.port));
    let own = rule.targets.iter().filter_map(|target| Some((target.host.as_str(), target.port?)));
    own.chain(registries)
}

/// Whether a name, or a name with a star, stands for this one.
fn covers(pattern: &str, name: &str) -> bool {
    match pattern.strip_prefix('*') {
        Some("") => true,
        Some(parent) => name.len() > parent.len() && name.ends_with(parent),
        None => pattern == name,
    }
}

/// Whether a host and port are of the registries of a package manager.
pub(super) fn host_matches(
    registry: net::Registry,
    registries: &[RegistryHost],
    host: &str,
    port: Option<u16>,
) -> bool {
    registries
        .iter()
        .any(|one| one.registry == registry && one.host == host && Some(one.port) == port)
}
