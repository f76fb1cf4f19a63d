//! Commands: every level of a reading against the policy.

use super::grant::{asked, grant};
use super::rules::{is_about, key, met, reference, rules};
use super::{
    Code, Decision, EffectLine, Grant, Network, Query, RuleRef, What, files, inside, peers, shown,
};
use crate::effect::{Caused, Classes, Effect, Peer, Place};
use crate::effective::Effective;
use crate::limits::Limits;
use crate::model::{Rule, Verdict};
use crate::net::Audience;
use crate::pattern::{Certainty, is_word};
use crate::reading::{Level, Reading, Refusal, Scope, Standing};
use crate::{paths, variables};

/// What is said of one level.
pub(super) struct Answer {
    pub verdict: Verdict,
    pub code: Code,
    pub message: String,
    pub rule: Option<RuleRef>,
    pub reason: Option<String>,
    /// What the rules that grant it give.
    pub granted: Option<Grant>,
    /// The effect that was too much.
    pub refused: Option<Caused>,
}

/// What a command or line does; `None` for a question about something else.
pub(crate) fn reading(policy: &Effective, query: &Query<'_>) -> Option<Result<Reading, Refusal>> {
    let scope = Scope { cwd: query.cwd, layers: &policy.layers };
    match query.what {
        What::Argv(argv) => {
            let argv: Vec<Vec<u8>> = argv.iter().map(|word| word.clone().into_bytes()).collect();
            Some(crate::reading::read(&argv, scope))
        }
        What::Bytes(argv) => Some(crate::reading::read(argv, scope)),
        What::Line(line) => Some(crate::reading::read_line(line, scope)),
        What::Read(_) | What::Write(_) | What::Net(_) | What::Connect(..) | What::Env(_) => None,
    }
}

/// Decides a command or line.
pub(super) fn command(policy: &Effective, query: &Query<'_>) -> Decision {
    let mut reading = match reading(policy, query).unwrap_or(Err(Refusal::Empty)) {
        Ok(reading) => reading,
        Err(refusal) => return Decision::refused(policy, refusal),
    };
    let mut decision = judged(policy, query, &reading);
    if decision.decision != Verdict::Deny {
        decision.plan = reading.plan.take();
    }
    decision
}

/// Decides what was read.
fn judged(policy: &Effective, query: &Query<'_>, reading: &Reading) -> Decision {
    let answers: Vec<Option<Answer>> =
        reading.levels.iter().map(|level| judge_level(policy, query, level)).collect();
    let effects = effect_lines(reading, &answers, query.workspace);
    let reaches_out = certain(reading)
        .any(|level| level.effects.iter().any(|caused| inside::reaches_out(&caused.effect)));
    let mut worst: Option<&Answer> = None;
    let mut classes = Classes::default();
    let mut limits: Option<Limits> = None;
    let mut network = Network::default();
    for answer in answers.iter().flatten() {
        if worst.is_none_or(|worst| answer.verdict > worst.verdict) {
            worst = Some(answer);
        }
        if let Some(grant) = &answer.granted {
            classes = classes.union(grant.classes);
            network = network.max(grant.network);
            limits = Some(limits.map_or(grant.limits, |limits| limits.loosest(&grant.limits)));
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
        return observe(policy, query, reading, decision);
    };
    let mut decision = Decision::new(policy, worst.verdict, worst.code, worst.message.clone());
    decision.effects = effects;
    decision.rule.clone_from(&worst.rule);
    decision.reason.clone_from(&worst.reason);
    decision.approvable = worst.verdict == Verdict::Ask;
    decision.reaches_out = reaches_out;
    let limits = limits.unwrap_or_else(|| policy.limits(&[]));
    decision.grant = Grant { classes, limits, network };
    observe(policy, query, reading, decision)
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
    // What no rule grants gets no network.
    decision.grant.network = Network::Withheld;
    decision.grant.classes =
        certain(reading).fold(Classes::default(), |all, level| all.union(level.classes()));
    decision
}

/// The levels that are facts.
pub(super) fn certain(reading: &Reading) -> impl Iterator<Item = &Level> {
    reading.levels.iter().filter(|level| level.standing == Standing::Certain)
}

/// Judges one level; `None` for a mere wrapper that no rule denies or asks about: it is as allowed as what it wraps.
fn judge_level(policy: &Effective, query: &Query<'_>, level: &Level) -> Option<Answer> {
    let unread = level.described_by.map(|_| level.as_unknown());
    let means = |rule: &Rule, seen: &Level| {
        is_about(rule, seen, query.workspace, Certainty::Doubt)
            && met(rule, seen, query.workspace, Certainty::Doubt)
    };
    let denies = rules(policy, level, Verdict::Deny).filter(|(index, _, rule)| {
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
        return asked(policy, query, level, unread.as_ref());
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
pub(super) fn effects_of<'l>(level: &'l Level, workspace: &str) -> Vec<&'l Caused> {
    let free = |caused: &&Caused| match &caused.effect {
        Effect::Read(Place::Exact(path)) | Effect::Write(Place::Exact(path)) => {
            !paths::is_free(workspace, path)
        }
        _ => true,
    };
    level.effects.iter().chain(level.redirects.iter().filter(free)).collect()
}

/// What holds for everyone, and the policy's denied files: stronger than any rule.
pub(super) fn mandatory(
    policy: &Effective,
    workspace: &str,
    effects: &[&Caused],
) -> Option<Answer> {
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
/// Scratch is no list's affair: whoever may write at all in a sandbox may write there.
fn fence(policy: &Effective, query: &Query<'_>, effects: &[&Caused]) -> Option<Answer> {
    let mut ask = None;
    for caused in effects {
        let path = |judged: Result<(), files::Refused>| {
            judged.err().map(|refused| path_answer(refused, caused))
        };
        let refused = match &caused.effect {
            Effect::Read(place) if inside::is_own_proc(place) => None,
            Effect::Read(place) => {
                path(files::place(policy, query.workspace, place, files::Access::Read))
            }
            Effect::Write(place) if files::is_scratch(policy, query.workspace, place) => None,
            Effect::Write(place) => {
                path(files::place(policy, query.workspace, place, files::Access::Write))
            }
            Effect::Net(peer) => {
                let answer = peers::judge(policy, query.now, peer, Audience::Arguments);
                // No rule is about it, and whatever it is, it ends in the sandbox.
                let kept_in = answer.rule.is_none()
                    && (inside::is_loopback(peer) || is_open(policy, query, peer));
                let (code, message) = match answer.verdict {
                    Verdict::Allow => continue,
                    Verdict::Deny if kept_in => continue,
                    Verdict::Ask => (Code::Ask, answer.message),
                    Verdict::Deny => {
                        let why = inside::no_network(policy, query.now);
                        (Code::NetDenied, format!("{}; {why}", answer.message))
                    }
                };
                let answer = Answer {
                    verdict: answer.verdict,
                    code,
                    message,
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

/// Whether a peer is not known before the command runs, and no rule could be against it. A rule that grants `net` lets
/// such a command run: its sandbox has no network, and what it wants to reach is not reached.
fn is_open(policy: &Effective, query: &Query<'_>, peer: &Peer) -> bool {
    *peer == Peer::Any && !peers::restricts(policy, query.now)
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
