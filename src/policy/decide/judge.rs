//! Commands: every level of a reading against every rule.

use std::cmp::Ordering;
use std::sync::Arc;

use super::{Code, Decision, EffectLine, Grant, Query, RuleRef, files, peers, shown};
use crate::effect::{Caused, Class, Classes, Effect, Place};
use crate::effective::Effective;
use crate::grammar::{Depth, Kind};
use crate::limits::Limits;
use crate::model::{Condition, Policy, Rule, RunPlace, Subject, Verdict};
use crate::pattern::{Certainty, is_word};
use crate::reading::{Level, Reading, Refusal, Scope, Standing};
use crate::{paths, variables};

/// What is said of one level.
struct Answer {
    verdict: Verdict,
    code: Code,
    message: String,
    rule: Option<RuleRef>,
    reason: Option<String>,
    /// What the rules that grant it give.
    granted: Option<Grant>,
    /// The effect that was too much.
    refused: Option<Caused>,
}

/// Decides a command or line.
pub(super) fn command(
    policy: &Effective,
    query: &Query<'_>,
    read: impl Fn(Scope<'_>) -> Result<Reading, Refusal>,
) -> Decision {
    let reading = match read(Scope { cwd: query.cwd, layers: &policy.layers }) {
        Ok(reading) => reading,
        Err(refusal) => return Decision::refused(policy, refusal),
    };
    let answers: Vec<Option<Answer>> =
        reading.levels.iter().map(|level| judge_level(policy, query, level)).collect();
    let effects = effect_lines(&reading, &answers, query.workspace);
    let mut worst: Option<&Answer> = None;
    let mut classes = Classes::default();
    let mut limits: Option<Limits> = None;
    let mut place: Option<RunPlace> = None;
    for answer in answers.iter().flatten() {
        if worst.is_none_or(|worst| answer.verdict > worst.verdict) {
            worst = Some(answer);
        }
        if let Some(grant) = &answer.granted {
            classes = classes.union(grant.classes);
            limits = Some(limits.map_or(grant.limits, |limits| limits.loosest(&grant.limits)));
            place = Some(place.map_or(grant.place, |place| place.and(grant.place)));
        }
    }
    let Some(worst) = worst else {
        // Only wrappers around nothing, or `cd` alone.
        let mut decision = Decision::new(
            policy,
            Verdict::Deny,
            Code::NoRule,
            "there is nothing to run".to_owned(),
        );
        decision.effects = effects;
        return observe(policy, query, &reading, decision);
    };
    let mut decision = Decision::new(policy, worst.verdict, worst.code, worst.message.clone());
    decision.effects = effects;
    decision.rule.clone_from(&worst.rule);
    decision.reason.clone_from(&worst.reason);
    decision.approvable = worst.verdict == Verdict::Ask;
    decision.grant = Grant {
        classes,
        limits: limits.unwrap_or_else(|| policy.limits(&[])),
        place: place.unwrap_or(RunPlace::Sandbox),
    };
    observe(policy, query, &reading, decision)
}

/// `mode: observe`: what would be refused runs in the sandbox all the same, and is recorded.
fn observe(
    policy: &Effective,
    query: &Query<'_>,
    reading: &Reading,
    mut decision: Decision,
) -> Decision {
    if decision.decision == Verdict::Allow || !policy.observes(query.now) {
        return decision;
    }
    // Another refusal may stand before the one that holds for everyone.
    let mut effects = certain(reading).flat_map(|level| effects_of(level, query.workspace));
    if let Some(refused) = effects.find_map(|caused| {
        files::fixed(policy, query.workspace, &caused.effect)
            .map(|refused| path_answer(refused, caused))
    }) {
        decision.decision = refused.verdict;
        decision.code = refused.code;
        decision.message = refused.message;
        decision.approvable = false;
        return decision;
    }
    decision.would = Some((decision.decision, decision.code));
    decision.message =
        format!("observed only; it would be {}: {}", decision.code.word(), decision.message);
    decision.decision = Verdict::Allow;
    decision.code = Code::Allowed;
    decision.approvable = false;
    decision.grant.classes =
        certain(reading).fold(Classes::default(), |all, level| all.union(level.classes()));
    decision.grant.place = RunPlace::Sandbox;
    decision
}

/// The levels that are facts.
fn certain(reading: &Reading) -> impl Iterator<Item = &Level> {
    reading.levels.iter().filter(|level| level.standing == Standing::Certain)
}

/// Judges one level; `None` for a mere wrapper, which is as allowed as what it wraps.
fn judge_level(policy: &Effective, query: &Query<'_>, level: &Level) -> Option<Answer> {
    let unread = level.described_by.map(|_| level.as_unknown());
    let means = |rule: &Rule, seen: &Level| {
        is_about(rule, seen, Certainty::Doubt) && met(rule, seen, query.workspace, Certainty::Doubt)
    };
    let denies = rules(policy, Verdict::Deny).filter(|(index, _, rule)| {
        // A grammar that another policy brings hides nothing from a deny.
        let foreign = unread.as_ref().filter(|_| level.described_by != Some(*index));
        means(rule, level) || foreign.is_some_and(|unread| means(rule, unread))
    });
    if let Some((_, layer, rule)) = denies.min_by_key(|(_, layer, rule)| key(layer, rule)) {
        return Some(Answer {
            verdict: Verdict::Deny,
            code: Code::DeniedByRule,
            message: format!("`{}` is denied by `{}`", level.show(), reference(layer, rule).id),
            rule: Some(reference(layer, rule)),
            reason: rule.reason.clone(),
            granted: None,
            refused: None,
        });
    }
    if level.standing == Standing::Doubted || (level.wrapper && level.redirects.is_empty()) {
        return None;
    }
    let effects = effects_of(level, query.workspace);
    if let Some(refused) = mandatory(policy, query.workspace, &effects) {
        return Some(refused);
    }
    let granted = grant(policy, query, level, unread.as_ref(), &effects);
    if granted.granted.is_none() {
        return Some(granted);
    }
    Some(match fence(policy, query, &effects) {
        // Whoever approves the peer approves what the rule grants, and no more.
        Some(fenced) if fenced.verdict == Verdict::Ask => {
            Answer { granted: granted.granted, ..fenced }
        }
        Some(fenced) => fenced,
        None => granted,
    })
}

/// Effects that are judged: redirections to scratch are free.
fn effects_of<'l>(level: &'l Level, workspace: &str) -> Vec<&'l Caused> {
    let free = |caused: &&Caused| match &caused.effect {
        Effect::Read(Place::Exact(path)) | Effect::Write(Place::Exact(path)) => {
            !paths::is_free(workspace, path)
        }
        _ => true,
    };
    level.effects.iter().chain(level.redirects.iter().filter(free)).collect()
}

/// What holds for everyone, and the policy's denied files: stronger than any rule.
fn mandatory(policy: &Effective, workspace: &str, effects: &[&Caused]) -> Option<Answer> {
    effects.iter().find_map(|caused| {
        let judged = match &caused.effect {
            Effect::Read(place) => files::place(policy, workspace, place, files::Access::Read),
            Effect::Write(place) => files::place(policy, workspace, place, files::Access::Write),
            _ => Ok(()),
        };
        let refused = judged.err().filter(|refused| {
            matches!(refused.code, Code::ProtectedPath | Code::KeyMaterial | Code::PathDenied)
        })?;
        Some(path_answer(refused, caused))
    })
}

/// The lists of files, peers and variables, which hold for every rule of the policy.
fn fence(policy: &Effective, query: &Query<'_>, effects: &[&Caused]) -> Option<Answer> {
    let mut ask = None;
    for caused in effects {
        let path = |judged: Result<(), files::Refused>| {
            judged.err().map(|refused| path_answer(refused, caused))
        };
        let refused = match &caused.effect {
            Effect::Read(place) => {
                path(files::place(policy, query.workspace, place, files::Access::Read))
            }
            Effect::Write(place) => {
                path(files::place(policy, query.workspace, place, files::Access::Write))
            }
            Effect::Net(peer) => {
                let answer = peers::judge(policy, query.now, peer);
                let code = match answer.verdict {
                    Verdict::Allow => continue,
                    Verdict::Ask => Code::Ask,
                    Verdict::Deny => Code::NetDenied,
                };
                let answer = Answer {
                    verdict: answer.verdict,
                    code,
                    message: answer.message,
                    rule: answer.rule,
                    reason: answer.reason,
                    granted: None,
                    refused: Some((*caused).clone()),
                };
                if answer.verdict == Verdict::Ask {
                    ask = Some(answer);
                    continue;
                }
                Some(answer)
            }
            Effect::Env(name) if !accepts(policy, name) => Some(denial(
                Code::EnvDenied,
                format!("`{name}` is not among the variables that a command may set"),
                caused,
            )),
            Effect::Env(_) | Effect::Code | Effect::System | Effect::Unknown => None,
        };
        if refused.is_some() {
            return refused;
        }
    }
    ask
}

/// The rules that grant the level, or why none does. All of them count, so their order does not.
fn grant<'p>(
    policy: &'p Effective,
    query: &Query<'_>,
    level: &Level,
    unread: Option<&Level>,
    effects: &[&Caused],
) -> Answer {
    let mut failed: Option<Failure<'p>> = None;
    let mut note = |failure: Failure<'p>| {
        if failed.as_ref().is_none_or(|known| failure.outranks(known)) {
            failed = Some(failure);
        }
    };
    let unread = unread.map(|unread| {
        (unread, unread.effects.iter().chain(&level.redirects).collect::<Vec<&Caused>>())
    });
    for verb in [Verdict::Ask, Verdict::Allow] {
        let certainty = if verb == Verdict::Allow { Certainty::Proof } else { Certainty::Doubt };
        let mut covering: Vec<(&Policy, &Rule)> = Vec::new();
        let mut classes = Classes::default();
        let mut uncovered = false;
        for (index, layer, rule) in rules(policy, verb) {
            // A grammar that a policy brings counts for its own grants only.
            let foreign = level.described_by.is_some_and(|by| by != index);
            let (seen, effects) = match &unread {
                Some((unread, effects)) if foreign => (*unread, effects.as_slice()),
                _ => (level, effects),
            };
            if !is_about(rule, seen, certainty) {
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
                caused.effect.class().is_some_and(|class| !rule.effects.grants(class))
            });
            if let Some(over) = over {
                note(Failure::Effect(layer, rule, (*over).clone()));
                uncovered = true;
            } else if rule.place == RunPlace::Host && !is_proved(seen) {
                note(Failure::Host(layer, rule));
                uncovered = true;
            } else {
                covering.push((layer, rule));
                classes = classes.union(needed(rule, seen));
            }
        }
        if let Some(answer) = granted(policy, &covering, classes, level) {
            return answer;
        }
        if verb == Verdict::Ask && uncovered {
            // An ask that does not cover it must not be passed by an allow.
            break;
        }
    }
    explain_failure(failed, level)
}

/// Who runs code may use all that the rule grants; anyone else gets what was read.
fn needed(rule: &Rule, level: &Level) -> Classes {
    let own = level
        .classes()
        .union(level.redirects.iter().filter_map(|caused| caused.effect.class()).collect());
    if own.contains(Class::Code) || own.contains(Class::Unknown) { rule.effects } else { own }
}

/// What the covering rules give together. Those that name the program set figures and place.
fn granted(
    policy: &Effective,
    covering: &[(&Policy, &Rule)],
    classes: Classes,
    level: &Level,
) -> Option<Answer> {
    let named = |rule: &Rule| matches!(rule.subject, Subject::Patterns(_));
    let any_named = covering.iter().any(|(_, rule)| named(rule));
    let mut telling = covering.iter().filter(|(_, rule)| named(rule) == any_named);
    let limits = telling
        .clone()
        .map(|(_, rule)| policy.limits(&rule.limits))
        .reduce(|one, other| one.loosest(&other))?;
    let place = if telling.clone().any(|(_, rule)| rule.place == RunPlace::Host) {
        RunPlace::Host
    } else {
        RunPlace::Sandbox
    };
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
        granted: Some(Grant { classes, limits, place }),
        refused: None,
    })
}

/// What tells rules apart wherever they stand, to report the same one in any order.
fn key<'p>(layer: &'p Policy, rule: &'p Rule) -> (&'p str, Option<&'p str>, &'p str) {
    (&layer.name, rule.id.as_deref(), &rule.text)
}

/// Why a rule that is about the command does not grant it.
enum Failure<'p> {
    Args(&'p Policy, &'p Rule),
    Host(&'p Policy, &'p Rule),
    Expired(&'p Policy, &'p Rule),
    Effect(&'p Policy, &'p Rule, Caused),
}

impl Failure<'_> {
    /// The most telling failure is reported: a rule that names the program before one that names all.
    fn rank(&self) -> u8 {
        let (rule, base) = match self {
            Self::Expired(_, rule) => (rule, 1),
            Self::Host(_, rule) => (rule, 3),
            Self::Effect(_, rule, _) => (rule, 5),
            Self::Args(_, rule) => (rule, 7),
        };
        base + u8::from(matches!(rule.subject, Subject::Patterns(_)))
    }

    fn rule(&self) -> (&Policy, &Rule) {
        match self {
            Self::Args(layer, rule)
            | Self::Host(layer, rule)
            | Self::Expired(layer, rule)
            | Self::Effect(layer, rule, _) => (layer, rule),
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
        Some(Failure::Host(layer, rule)) => (
            Code::HostNotProved,
            format!(
                "`{command}` is not fully read, and `{}` runs it on the host",
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

/// Whether the command is fully read, for running on the host without a sandbox.
fn is_proved(level: &Level) -> bool {
    let named = |place: &Place| matches!(place, Place::Exact(_));
    level.complete
        && level.known == Some(Depth::Full)
        && crate::catalog::lookup(&level.program).is_some_and(|program| program.ambient.is_empty())
        && level.effects.iter().all(|caused| match &caused.effect {
            Effect::Read(place) | Effect::Write(place) => named(place),
            Effect::Net(_) | Effect::Env(_) => true,
            Effect::Code | Effect::System | Effect::Unknown => false,
        })
}

/// The rules with this verb, and the position of their layer.
fn rules(policy: &Effective, verb: Verdict) -> impl Iterator<Item = (usize, &Arc<Policy>, &Rule)> {
    policy.layers.iter().enumerate().flat_map(move |(index, layer)| {
        let own = layer.commands.iter().enumerate();
        own.filter(move |(at, rule)| rule.verb == verb && policy.considers(index, *at))
            .map(move |(_, rule)| (index, layer, rule))
    })
}

/// Whether a rule is about the command.
fn is_about(rule: &Rule, level: &Level, certainty: Certainty) -> bool {
    match &rule.subject {
        Subject::Catalog => {
            level.known.is_some() && level.described_by.is_none() && level.unreadable.is_none()
        }
        Subject::Patterns(patterns) => {
            patterns.iter().any(|pattern| pattern.matches(level, certainty))
        }
    }
}

/// Whether the rule's conditions on arguments hold: proved for an allow, possible for a deny.
fn met(rule: &Rule, level: &Level, workspace: &str, certainty: Certainty) -> bool {
    rule.args.iter().all(|condition| {
        if !level.complete {
            return certainty == Certainty::Doubt;
        }
        if condition.kind == Kind::Option {
            option_met(condition, level)
        } else {
            value_met(condition, level, workspace, certainty)
        }
    })
}

/// Options are there or not.
fn option_met(condition: &Condition, level: &Level) -> bool {
    let given = |wanted: &String| {
        level.options.iter().any(|option| option.names.iter().any(|name| is_word(wanted, name)))
    };
    (condition.only.is_empty() || condition.only.iter().any(given))
        && !condition.not.iter().any(given)
}

fn value_met(condition: &Condition, level: &Level, workspace: &str, certainty: Certainty) -> bool {
    let listed = |patterns: &[String], value: &str| {
        let short =
            (condition.kind == Kind::Path).then(|| paths::below(workspace, value)).flatten();
        patterns
            .iter()
            .any(|pattern| is_word(pattern, value) || short.is_some_and(|s| is_word(pattern, s)))
    };
    let fits = |value: &String| {
        (condition.only.is_empty() || listed(&condition.only, value))
            && !listed(&condition.not, value)
    };
    let mut values = level
        .args
        .iter()
        .filter(|arg| arg.kind == condition.kind)
        .map(|arg| arg.value.as_ref())
        .peekable();
    match certainty {
        Certainty::Proof => {
            let some = values.peek().is_some();
            (some || condition.only.is_empty()) && values.all(|value| value.is_some_and(fits))
        }
        Certainty::Doubt => {
            (values.peek().is_none() && condition.only.is_empty())
                || values.any(|value| value.is_none_or(fits))
        }
    }
}

/// A question about one variable.
pub(super) fn variable(policy: &Effective, name: &str) -> Decision {
    if !variables::is_name(name) {
        return Decision::new(
            policy,
            Verdict::Deny,
            Code::BadArgument,
            format!("`{name}` is no name of a variable"),
        );
    }
    if variables::loads_code(name) {
        return Decision::new(
            policy,
            Verdict::Deny,
            Code::EffectNotGranted,
            format!(
                "`{name}` can make programs load or run code; it needs a rule that grants `code` to the command"
            ),
        );
    }
    if accepts(policy, name) {
        Decision::new(policy, Verdict::Allow, Code::Allowed, format!("a command may set `{name}`"))
    } else {
        Decision::new(
            policy,
            Verdict::Deny,
            Code::EnvDenied,
            format!("`{name}` is not in `env.accept`"),
        )
    }
}

fn accepts(policy: &Effective, name: &str) -> bool {
    variables::is_name(name)
        && policy
            .layers
            .iter()
            .flat_map(|layer| &layer.env.accept)
            .any(|pattern| is_word(pattern, name))
}

fn reference(layer: &Policy, rule: &Rule) -> RuleRef {
    let id = rule.id.clone().unwrap_or_else(|| format!("line-{}", rule.at.line));
    RuleRef {
        id: format!("{}/{id}", layer.name),
        file: layer.file.clone(),
        line: rule.at.line,
        text: rule.text.clone(),
    }
}

fn path_answer(refused: files::Refused, caused: &Caused) -> Answer {
    let mut answer = denial(refused.code, refused.message, caused);
    answer.rule = refused.rule;
    answer
}

fn denial(code: Code, message: String, caused: &Caused) -> Answer {
    Answer {
        verdict: Verdict::Deny,
        code,
        message,
        rule: None,
        reason: None,
        granted: None,
        refused: Some(caused.clone()),
    }
}

fn effect_lines(reading: &Reading, answers: &[Option<Answer>], workspace: &str) -> Vec<EffectLine> {
    let mut lines = Vec::new();
    let levels = reading.levels.iter().zip(answers);
    for (level, answer) in levels.filter(|(level, _)| level.standing == Standing::Certain) {
        let refused = answer.as_ref().and_then(|answer| answer.refused.as_ref());
        let command = shortened(level.show());
        for caused in level.effects.iter().chain(&level.redirects) {
            let (effect, object) = shown(&caused.effect, workspace);
            lines.push(EffectLine {
                command: command.clone(),
                effect,
                object,
                by: caused.by.clone(),
                refused: refused == Some(caused),
            });
        }
    }
    lines
}

/// A command as it stands beside each of its effects: thousands of effects must not each carry
/// thousands of words.
fn shortened(mut command: String) -> String {
    const SHOWN: usize = 400;
    if let Some((at, _)) = command.char_indices().nth(SHOWN) {
        command.truncate(at);
        command.push('…');
    }
    command
}
