//! Explaining: the decision with the ways out of it.
//!
//! The decision itself is [`decide`](super::decide), untouched; hints are found by deciding again. A hint is never
//! a way around somebody's word: where a rule asks or denies, no other policy is named.

use std::cmp::Reverse;

use super::inside::{NO_NETWORK, NO_NETWORK_CODE};
use super::judge::{certain, effects_of, mandatory, reading};
use super::rules::{is_about, rules};
use super::{Code, Decision, Network, Query, What, decide, instead, peers};
use crate::effect::{Classes, Effect};
use crate::effective::Effective;
use crate::model::Verdict;
use crate::net::Audience;
use crate::pattern::Certainty;
use crate::reading::Level;

/// A decision with its hints.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Explanation {
    /// The decision.
    #[serde(flatten)]
    pub decision: Decision,
    /// Close forms that the same policy allows.
    pub nearest: Vec<String>,
    /// Other policies that would allow it, the narrowest first.
    pub allowed_by: Vec<String>,
    /// What else is worth knowing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Note>,
}

/// Something worth knowing about a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Note {
    /// A stable word.
    pub code: &'static str,
    /// A sentence.
    pub text: &'static str,
}

/// The code of a note that a command gets no network although its policy has rules for commands.
const NETWORK_WITHHELD_CODE: &str = "network_withheld";

/// Why a command gets no network although its policy has rules for commands.
pub const NETWORK_WITHHELD: &str =
    "no network: every part that runs code or reaches out needs a rule whose `effects` list `net`";

/// Decides and looks for ways out. `others` are the policies that the caller may choose instead.
#[must_use]
pub fn explain(policy: &Effective, query: &Query<'_>, others: &[Effective]) -> Explanation {
    let decision = decide(policy, query);
    let notes = notes(policy, query, &decision);
    if decision.decision == Verdict::Allow {
        return Explanation { decision, nearest: Vec::new(), allowed_by: Vec::new(), notes };
    }
    let nearest = instead::forms(policy, query, &decision);
    let allowed_by = allowed_by(policy, query, &decision, others);
    Explanation { decision, nearest, allowed_by, notes }
}

fn notes(policy: &Effective, query: &Query<'_>, decision: &Decision) -> Vec<Note> {
    let about_net = decision.reaches_out || matches!(query.what, What::Net(_));
    if about_net && policy.connects(query.now) {
        let withheld = decision.grant.network == Network::Withheld && decision.reaches_out;
        let note = Note { code: NETWORK_WITHHELD_CODE, text: NETWORK_WITHHELD };
        return withheld.then_some(note).into_iter().collect();
    }
    about_net.then_some(Note { code: NO_NETWORK_CODE, text: NO_NETWORK }).into_iter().collect()
}

fn allowed_by(
    policy: &Effective,
    query: &Query<'_>,
    decision: &Decision,
    others: &[Effective],
) -> Vec<String> {
    if !lacks_a_grant(decision) || is_withheld(policy, query) {
        return Vec::new();
    }
    allowing(policy, query, others, Classes::default(), decision.reaches_out)
}

/// Other policies that allow a command and grant it these classes of effects, the narrowest first. `others` are those
/// that the caller may choose instead.
#[must_use]
pub fn granting(
    policy: &Effective,
    query: &Query<'_>,
    others: &[Effective],
    classes: Classes,
) -> Vec<String> {
    if is_withheld(policy, query) {
        Vec::new()
    } else {
        allowing(policy, query, others, classes, false)
    }
}

fn allowing(
    policy: &Effective,
    query: &Query<'_>,
    others: &[Effective],
    classes: Classes,
    network: bool,
) -> Vec<String> {
    let allows = |decision: &Decision| {
        let granted = decision.grant.classes;
        decision.decision == Verdict::Allow && granted.intersection(classes) == classes
    };
    // A policy that lets a command run that reaches out, and gives it no network, is no way out.
    let connects = |other: &Effective, decision: &Decision| {
        !network || (decision.grant.network == Network::Granted && other.connects(query.now))
    };
    // A tool's own permissions hold under every policy: what they refuse, none would allow.
    if policy.narrowings().iter().any(|own| !allows(&decide(own, query))) {
        return Vec::new();
    }
    let mut allowing: Vec<(&Effective, Decision)> = others
        .iter()
        .filter(|other| other.digest != policy.digest)
        .map(|other| (other, decide(other, query)))
        .filter(|(other, decision)| allows(decision) && connects(other, decision))
        .filter(|(_, decision)| decision.would.is_none())
        .collect();
    allowing.sort_by_key(|(other, decision)| {
        let granted = decision.grant.classes.iter().count();
        (granted, other.breadth(), Reverse(other.isolation()), other.name().to_owned())
    });
    allowing.into_iter().map(|(other, _)| other.name().to_owned()).collect()
}

/// Whether the policy merely does not grant it. A denied path, for one, is a decision of the policy's owner.
fn lacks_a_grant(decision: &Decision) -> bool {
    match decision.code {
        Code::NoRule
        | Code::EffectNotGranted
        | Code::UnknownProgram
        | Code::UnknownArgument
        | Code::ProgramPath
        | Code::ShellUnreadable
        | Code::PathOutside
        | Code::PathNotReadable
        | Code::PathNotWritable
        | Code::NetDenied
        | Code::EnvDenied
        | Code::RuleExpired
        | Code::ArgsNotMet => true,
        Code::Allowed
        | Code::Ask
        | Code::DeniedByRule
        | Code::PathDenied
        | Code::PathReadonly
        | Code::ProtectedPath
        | Code::KeyMaterial
        | Code::NetAddress
        | Code::EmptyCommand
        | Code::BadArgument
        | Code::TooLarge
        | Code::TooDeep => false,
    }
}

/// Whether some part of a command is asked about or denied by the policy or one that it stays within, whatever
/// part of it was reported.
fn is_withheld(policy: &Effective, query: &Query<'_>) -> bool {
    let own = match reading(policy, query) {
        Some(Ok(reading)) => certain(&reading).any(|level| level_is_withheld(policy, query, level)),
        Some(Err(_)) => true,
        None => false,
    };
    own || policy.within.iter().any(|other| is_withheld(other, query))
}

fn level_is_withheld(policy: &Effective, query: &Query<'_>, level: &Level) -> bool {
    // Conditions on arguments do not count: who asks about `git commit` without `--no-verify` does not want
    // `git commit --no-verify` to run unasked.
    let by_rule = [Verdict::Ask, Verdict::Deny].into_iter().any(|verb| {
        rules(policy, level, verb)
            .filter(|(.., rule)| rule.until.is_none_or(|end| query.now < end))
            .any(|(.., rule)| is_about(rule, level, query.workspace, Certainty::Doubt))
    });
    let effects = effects_of(level, query.workspace);
    let by_peer = |effect: &Effect| {
        matches!(effect, Effect::Net(peer)
            if peers::judge(policy, query.now, peer, Audience::Arguments).rule.is_some())
    };
    by_rule
        || mandatory(policy, query.workspace, &effects).is_some()
        || effects.iter().any(|caused| by_peer(&caused.effect))
}
