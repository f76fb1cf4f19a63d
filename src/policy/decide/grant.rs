//! Granting: the rules that cover a command, or the most telling reason why none does.

use std::cmp::Ordering;

use super::judge::Answer;
use super::rules::{is_about, key, met, reference, rules};
use super::{Code, Grant, Network, Query, inside};
use crate::effect::{Caused, Class, Classes};
use crate::effective::Effective;
use crate::model::{Policy, Rule, Subject, Verdict};
use crate::pattern::Certainty;
use crate::reading::Level;

/// The rules that grant the level, or why none does. All of them count, so their order does not.
pub(super) fn grant(
    policy: &Effective,
    query: &Query<'_>,
    level: &Level,
    unread: Option<&Level>,
    effects: &[&Caused],
) -> Answer {
    let mut failed = None;
    for verb in [Verdict::Ask, Verdict::Allow] {
        match by_verb(policy, query, (level, unread), effects, verb, &mut failed) {
            Covered::Granted(answer) => return *answer,
            // An ask that does not cover it must not be passed by an allow.
            Covered::InPart if verb == Verdict::Ask => break,
            Covered::InPart | Covered::Not => {}
        }
    }
    explain_failure(failed, level)
}

/// What the asks say of a level that no rule has to allow: a mere wrapper, or what a program called by a path
/// could be. What it executes is granted where that is judged.
pub(super) fn asked(
    policy: &Effective,
    query: &Query<'_>,
    level: &Level,
    unread: Option<&Level>,
) -> Option<Answer> {
    let effects: Vec<&Caused> = level.effects.iter().collect();
    let mut failed = None;
    let covered = by_verb(policy, query, (level, unread), &effects, Verdict::Ask, &mut failed);
    match covered {
        Covered::Granted(answer) => Some(Answer { granted: None, ..*answer }),
        Covered::InPart => Some(explain_failure(failed, level)),
        Covered::Not => None,
    }
}

/// What the rules with one verb say of a level.
enum Covered {
    /// They cover all that it does.
    Granted(Box<Answer>),
    /// One is about it, and it does more.
    InPart,
    /// None is about it.
    Not,
}

/// Asks the rules with one verb. `failed` keeps the most telling reason why one does not cover it.
fn by_verb<'p>(
    policy: &'p Effective,
    query: &Query<'_>,
    (level, unread): (&Level, Option<&Level>),
    effects: &[&Caused],
    verb: Verdict,
    failed: &mut Option<Failure<'p>>,
) -> Covered {
    let mut note = |failure: Failure<'p>| {
        if failed.as_ref().is_none_or(|known| failure.outranks(known)) {
            *failed = Some(failure);
        }
    };
    let unread = unread.map(|unread| {
        (unread, unread.effects.iter().chain(&level.redirects).collect::<Vec<&Caused>>())
    });
    let certainty = if verb == Verdict::Allow { Certainty::Proof } else { Certainty::Doubt };
    let mut covering: Vec<(&Policy, &Rule)> = Vec::new();
    let mut classes = Classes::default();
    let mut network = Network::default();
    let mut uncovered = false;
    for (index, layer, rule) in rules(policy, level, verb) {
        // A grammar that a policy brings counts for its own grants only.
        let foreign = level.described_by.is_some_and(|by| by != index);
        let (seen, effects) = match &unread {
            Some((unread, effects)) if foreign => (*unread, effects.as_slice()),
            _ => (level, effects),
        };
        if !is_about(rule, seen, query.workspace, certainty) {
            continue;
        }
        if rule.until.is_some_and(|end| query.now >= end) {
            note(Failure::Expired(layer, rule));
            continue;
        }
        if !met(rule, seen, query.workspace, certainty) {
            note(Failure::Args(layer, rule));
            continue;
        }
        let over = effects.iter().find(|caused| {
            inside::class(&caused.effect).is_some_and(|class| !rule.effects.grants(class))
        });
        if let Some(over) = over {
            note(Failure::Effect(layer, rule, (*over).clone()));
            uncovered = true;
        } else {
            covering.push((layer, rule));
            classes = classes.union(needed(rule, seen));
            network = network.max(wanted(seen));
        }
    }
    // Of several rules that cover it, one that lists `net` is enough, as for every other effect.
    if network == Network::Withheld && covering.iter().any(|(_, rule)| rule.network) {
        network = Network::Granted;
    }
    match granted(policy, &covering, (classes, network), level) {
        Some(answer) => Covered::Granted(Box::new(answer)),
        None if uncovered => Covered::InPart,
        None => Covered::Not,
    }
}

/// Who runs code may use all that the rule grants; anyone else gets what was read.
fn needed(rule: &Rule, level: &Level) -> Classes {
    let own = inside::classes(level.effects.iter().chain(&level.redirects));
    if own.contains(Class::Code) || own.contains(Class::Unknown) { rule.effects } else { own }
}

/// Whether a command could use a network, before a rule says whether it gets one.
fn wanted(level: &Level) -> Network {
    let own = inside::classes(level.effects.iter().chain(&level.redirects));
    let uses = [Class::Net, Class::Code, Class::Unknown, Class::System];
    if uses.into_iter().any(|class| own.contains(class)) {
        Network::Withheld
    } else {
        Network::Unneeded
    }
}

/// What the covering rules give together. Those that name the program set figures.
fn granted(
    policy: &Effective,
    covering: &[(&Policy, &Rule)],
    (classes, network): (Classes, Network),
    level: &Level,
) -> Option<Answer> {
    let named = |rule: &Rule| matches!(rule.subject, Subject::Patterns(_));
    let any_named = covering.iter().any(|(_, rule)| named(rule));
    let mut telling = covering.iter().filter(|(_, rule)| named(rule) == any_named);
    let limits = telling
        .clone()
        .map(|(_, rule)| policy.limits(&rule.limits))
        .reduce(|one, other| one.loosest(&other))?;
    let (layer, rule) = telling.by_ref().min_by_key(|(layer, rule)| key(layer, rule)).copied()?;
    let id = reference(layer, rule).id;
    let (code, message) = match rule.verb {
        Verdict::Ask => (Code::Ask, format!("`{}` needs approval by `{id}`", level.show())),
        Verdict::Allow | Verdict::Deny => {
            (Code::Allowed, format!("`{}` is allowed by `{id}`", level.show()))
        }
    };
    Some(Answer {
        verdict: rule.verb,
        code,
        message,
        rule: Some(reference(layer, rule)),
        reason: rule.reason.clone(),
        granted: Some(Grant { classes, limits, network }),
        refused: None,
    })
}

/// Why a rule that is about the command does not grant it.
enum Failure<'p> {
    Args(&'p Policy, &'p Rule),
    Expired(&'p Policy, &'p Rule),
    Effect(&'p Policy, &'p Rule, Caused),
}

impl Failure<'_> {
    /// The most telling failure is reported: a rule that names the program before one that names all.
    fn rank(&self) -> u8 {
        let (rule, base) = match self {
            Self::Expired(_, rule) => (rule, 1),
            Self::Effect(_, rule, _) => (rule, 5),
            Self::Args(_, rule) => (rule, 7),
        };
        base + u8::from(matches!(rule.subject, Subject::Patterns(_)))
    }

    fn rule(&self) -> (&Policy, &Rule) {
        match self {
            Self::Args(layer, rule) | Self::Expired(layer, rule) | Self::Effect(layer, rule, _) => {
                (layer, rule)
            }
        }
    }

    fn outranks(&self, other: &Self) -> bool {
        let place = |failure: &Self| {
            let (layer, rule) = failure.rule();
            (layer.name.clone(), rule.id.clone(), rule.text.clone())
        };
        match self.rank().cmp(&other.rank()) {
            Ordering::Greater => true,
            Ordering::Less => false,
            Ordering::Equal => place(self) < place(other),
        }
    }
}

fn explain_failure(failed: Option<Failure<'_>>, level: &Level) -> Answer {
    let command = level.show();
    let refused = match &failed {
        Some(Failure::Effect(_, _, caused)) => Some(caused.clone()),
        _ => level.effects.first().cloned(),
    };
    let (code, message) = match &failed {
        Some(Failure::Effect(layer, rule, caused)) => {
            let id = reference(layer, rule).id;
            match (&level.unreadable, caused.effect.class()) {
                (Some(unreadable), _) => {
                    (Code::ShellUnreadable, format!("the line is not readable at {unreadable}"))
                }
                (None, Some(Class::Unknown)) if level.known.is_some() => {
                    (Code::UnknownArgument, format!("{} in `{command}`", caused.by))
                }
                _ => {
                    let class = caused.effect.class().map_or("", Class::word);
                    (
                        Code::EffectNotGranted,
                        format!(
                            "`{command}` would {} and `{id}` grants only {}",
                            verb_of(class, &caused.by),
                            granted_words(rule.effects)
                        ),
                    )
                }
            }
        }
        Some(Failure::Args(layer, rule)) => (
            Code::ArgsNotMet,
            format!(
                "`{command}` does not meet the conditions of `{}` on its arguments",
                reference(layer, rule).id
            ),
        ),
        Some(Failure::Expired(layer, rule)) => {
            (Code::RuleExpired, format!("`{}` has ended", reference(layer, rule).id))
        }
        None => match (&level.unreadable, level.known) {
            (Some(unreadable), _) => {
                (Code::ShellUnreadable, format!("the line is not readable at {unreadable}"))
            }
            (None, None) if level.program.contains('/') => (
                Code::ProgramPath,
                format!(
                    "`{}` is a path; rules and catalog know programs by their bare names",
                    level.program
                ),
            ),
            (None, None) => (
                Code::UnknownProgram,
                format!("no rule names `{}` and the catalog does not know it", level.program),
            ),
            (None, Some(_)) => (Code::NoRule, format!("no rule allows `{command}`")),
        },
    };
    let failed = failed.as_ref().map(Failure::rule);
    let rule = failed.map(|(layer, rule)| reference(layer, rule));
    let reason = failed.and_then(|(_, rule)| rule.reason.clone());
    Answer { verdict: Verdict::Deny, code, message, rule, reason, granted: None, refused }
}

fn verb_of(class: &str, by: &str) -> String {
    match class {
        "code" => format!("run code ({by})"),
        "system" => format!("change the system ({by})"),
        "net" => format!("reach the net ({by})"),
        "unknown" => format!("do something unknown ({by})"),
        class => format!("{class} ({by})"),
    }
}

fn granted_words(classes: Classes) -> String {
    let words: Vec<&str> = classes.iter().map(Class::word).collect();
    if words.is_empty() { "nothing".to_owned() } else { words.join(", ") }
}
