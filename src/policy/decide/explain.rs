//! Explaining: the decision with the ways out of it.
//!
//! The decision itself is [`decide`](super::decide), untouched; hints are found by deciding again.

use super::{Code, Decision, Query, What, decide};
use crate::effective::Effective;
use crate::model::Verdict;
use crate::pattern::Pattern;
use crate::reading::Scope;
use crate::word::{Word, quoted};

/// Most forms that are offered.
const MAX_NEAREST: usize = 3;
/// Longest command for which other forms are tried.
const MAX_TRIED: usize = 64;

/// A decision with its hints.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Explanation {
    /// The decision.
    #[serde(flatten)]
    pub decision: Decision,
    /// Close forms that the same policy allows.
    pub nearest: Vec<String>,
    /// Shipped policies that would allow it.
    pub allowed_by: Vec<String>,
}

/// Decides and looks for ways out. `others` are the shipped policies.
#[must_use]
pub fn explain(policy: &Effective, query: &Query<'_>, others: &[Effective]) -> Explanation {
    let decision = decide(policy, query);
    if decision.decision == Verdict::Allow {
        return Explanation { decision, nearest: Vec::new(), allowed_by: Vec::new() };
    }
    let nearest = nearest(policy, query, &decision);
    let allowed_by = others
        .iter()
        .filter(|other| {
            other.digest != policy.digest && decide(other, query).decision == Verdict::Allow
        })
        // A tool's own permissions hold under every policy: what they refuse, none would allow.
        .filter(|_| {
            policy.narrowings().iter().all(|it| decide(it, query).decision == Verdict::Allow)
        })
        .map(|other| other.name().to_owned())
        .collect();
    Explanation { decision, nearest, allowed_by }
}

fn nearest(policy: &Effective, query: &Query<'_>, decision: &Decision) -> Vec<String> {
    let argv: Option<Vec<String>> = match query.what {
        What::Argv(argv) => Some(argv.to_vec()),
        What::Words(words) => words.iter().map(|word| word.text().map(str::to_owned)).collect(),
        What::Line(_) | What::Read(_) | What::Write(_) | What::Net(_) | What::Env(_) => None,
    };
    let Some(argv) = argv else { return Vec::new() };
    let mut forms: Vec<Vec<String>> = Vec::new();
    if argv.len() <= MAX_TRIED && !argv.is_empty() {
        if decision.code == Code::ProgramPath {
            let mut bare = argv.clone();
            bare[0] = bare[0].rsplit('/').next().unwrap_or_default().to_owned();
            forms.push(bare);
        }
        // The same command without one option, without it and its value, or up to it.
        for at in (1..argv.len()).filter(|at| argv[*at].starts_with('-')) {
            for taken in [1, 2, argv.len() - at] {
                if at + taken <= argv.len() {
                    let mut without = argv.clone();
                    without.drain(at..at + taken);
                    forms.push(without);
                }
            }
        }
        // A value that is left behind would be a new operand, and a command about nothing is not the one that was meant.
        let most = operands(&argv, query);
        forms.retain(|form| match operands(form, query) {
            0 => most == 0,
            some => some <= most,
        });
        forms.sort_by_key(|form| std::cmp::Reverse(form.len()));
    }
    let program = argv.first().map(String::as_str).unwrap_or_default();
    let mut found: Vec<String> = Vec::new();
    let mut offer = |words: &[String]| {
        let asked = Query { what: What::Argv(words), ..*query };
        let shown = words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
        if found.len() < MAX_NEAREST
            && !found.contains(&shown)
            && decide(policy, &asked).decision == Verdict::Allow
        {
            found.push(shown);
        }
    };
    forms.iter().for_each(|form| offer(form));
    // What rules give as examples for the same program.
    for rule in policy.layers.iter().flat_map(|layer| &layer.commands) {
        let named = matches!(&rule.subject, crate::model::Subject::Patterns(patterns) if patterns.iter().flat_map(Pattern::programs).any(|name| name == program));
        for example in &rule.examples {
            let words: Vec<String> = example.line.split_whitespace().map(str::to_owned).collect();
            if example.expected == crate::model::Expected::Match
                && words.first().is_some_and(|first| first == program || named)
                && !example.line.contains(['\'', '"', '|', '&', ';', '>', '<', '\\'])
            {
                offer(&words);
            }
        }
    }
    found
}

/// How many operands a command has, by its own grammar.
fn operands(argv: &[String], query: &Query<'_>) -> usize {
    let words: Vec<Word> = argv.iter().map(Word::lit).collect();
    let scope = Scope { cwd: query.cwd, layers: &[] };
    let reading = crate::reading::read(&words, scope);
    reading
        .ok()
        .and_then(|reading| reading.levels.first().map(|level| level.operands.len()))
        .unwrap_or(usize::MAX)
}
