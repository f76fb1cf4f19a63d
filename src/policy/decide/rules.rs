//! Which rules are about a command: subject and conditions on arguments, by proof or by doubt.

use std::sync::Arc;

use super::RuleRef;
use crate::effective::Effective;
use crate::grammar::Kind;
use crate::model::{Condition, Policy, Rule, Subject, Verdict};
use crate::paths;
use crate::pattern::{Certainty, is_word};
use crate::reading::Level;

/// The rules with this verb that could be about a command, and the position of their layer.
pub(super) fn rules<'p>(
    policy: &'p Effective,
    level: &Level,
    verb: Verdict,
) -> impl Iterator<Item = (usize, &'p Arc<Policy>, &'p Rule)> {
    policy.rules_about(level).into_iter().filter_map(move |(index, at)| {
        let layer = policy.layers.get(index)?;
        let rule = layer.commands.get(at).filter(|rule| rule.verb == verb)?;
        Some((index, layer, rule))
    })
}

/// Whether a rule is about the command.
pub(super) fn is_about(rule: &Rule, level: &Level, workspace: &str, certainty: Certainty) -> bool {
    match &rule.subject {
        Subject::Catalog => {
            level.known.is_some() && level.described_by.is_none() && level.unreadable.is_none()
        }
        Subject::Patterns(patterns) => {
            patterns.iter().any(|pattern| pattern.matches(level, workspace, certainty))
        }
    }
}

/// Whether the rule's conditions on arguments hold: proved for an allow, possible for a deny.
pub(super) fn met(rule: &Rule, level: &Level, workspace: &str, certainty: Certainty) -> bool {
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

pub(super) fn reference(layer: &Policy, rule: &Rule) -> RuleRef {
    let id = rule.id.clone().unwrap_or_else(|| format!("line-{}", rule.at.line));
    RuleRef {
        id: format!("{}/{id}", layer.name),
        file: layer.file.clone(),
        line: rule.at.line,
        text: rule.text.clone(),
    }
}

/// What tells rules apart wherever they stand, to report the same one in any order.
pub(super) fn key<'p>(layer: &'p Policy, rule: &'p Rule) -> (&'p str, Option<&'p str>, &'p str) {
    (&layer.name, rule.id.as_deref(), &rule.text)
}
