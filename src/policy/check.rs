//! Checking: a policy's own examples and tests.
//!
//! They run whenever a policy is loaded (the caller may remember by digest that they passed): a policy
//! that fails them does not load.

use jiff::Timestamp;

use crate::decide::{Code, Query, What, decide};
use crate::effective::Effective;
use crate::finding::{Finding, Report};
use crate::model::{Expectation, Expected, Verdict};

/// A workspace for examples: its content does not matter, only names do.
pub const WORKSPACE: &str = "/workspace";

/// How many examples and tests ran, and what failed.
#[derive(Debug, Default)]
pub struct Checked {
    /// How many ran.
    pub ran: usize,
    /// Those that failed.
    pub findings: Vec<Finding>,
}

/// Runs the examples and tests of the policy itself, not those of what it extends. `text` is its source, for excerpts.
#[must_use]
pub fn check(policy: &Effective, text: &str, now: Timestamp) -> Checked {
    let Some(own) = policy.layers.first() else { return Checked::default() };
    let mut report = Report::new(&own.file, text);
    let mut ran = 0;
    for (index, rule) in own.commands.iter().enumerate() {
        let alone = policy.alone(index);
        for example in &rule.examples {
            ran += 1;
            let decision = decide(&alone, &query(example, now));
            // With this one rule, a deny that is not its own has another code.
            let matched = match rule.verb {
                Verdict::Deny => decision.code == Code::DeniedByRule,
                Verdict::Allow | Verdict::Ask => decision.decision == rule.verb,
            };
            match (example.expected, matched) {
                (Expected::Match, false) => report.add(
                    "example_failed",
                    example.at,
                    format!("this must match the rule, but: {}", decision.message),
                    None,
                ),
                (Expected::Reject, true) => report.add(
                    "example_failed",
                    example.at,
                    "this must not match the rule, but it does".to_owned(),
                    None,
                ),
                _ => {}
            }
        }
    }
    for test in &own.tests {
        ran += 1;
        let decision = decide(policy, &query(test, now));
        let wanted = match test.expected {
            Expected::Verdict(verdict) => verdict,
            Expected::Match => Verdict::Allow,
            Expected::Reject => Verdict::Deny,
        };
        let got = decision.would.map_or(decision.decision, |(verdict, _)| verdict);
        if got != wanted {
            report.add(
                "test_failed",
                test.at,
                format!(
                    "expected {}, but it is {}: {}",
                    wanted.word(),
                    got.word(),
                    decision.message
                ),
                None,
            );
        }
    }
    Checked { ran, findings: report.finish() }
}

fn query<'a>(expectation: &'a Expectation, now: Timestamp) -> Query<'a> {
    Query { workspace: WORKSPACE, cwd: WORKSPACE, now, what: What::Line(&expectation.line) }
}
