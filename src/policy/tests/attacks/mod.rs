//! Attacks on the engine: what must never be allowed, one way in a row.
//!
//! Each table is a class of bypass, with a control beside it that must stay allowed.
#![allow(missing_docs, clippy::unwrap_used, reason = "a test binary")]

mod composition;
mod conditions;
mod later;
mod lines;
mod options;
mod patterns;
mod scripts;
mod size;
mod ways_out;

use jiff::Timestamp;
use runner_policy::{
    Decision, Effective, Origin, PolicySet, Query, Source, Verdict, What, decide, parse,
};

/// Reading and nothing else.
pub const LOOK: &str = r#"
policy: 1
name: look
files: { read: ["**"], deny: ["**/.env", "secrets.yml"] }
commands:
  - { id: look, allow: catalog }
"#;

pub fn moment() -> Timestamp {
    "2026-06-01T00:00:00Z".parse().unwrap()
}

/// The first of these policies, with the others around it.
pub fn policy(texts: &[&str]) -> Effective {
    let mut set = PolicySet::default();
    let mut first = None;
    for text in texts {
        let parsed = parse(Source { file: "t.yml", text, origin: Origin::Managed }).unwrap();
        first.get_or_insert_with(|| parsed.name.clone());
        set.add(parsed).unwrap();
    }
    set.effective(&first.unwrap()).unwrap()
}

pub fn line(policy: &Effective, text: &str) -> Decision {
    ask(policy, "/w", What::Line(text))
}

pub fn ask(policy: &Effective, cwd: &str, what: What<'_>) -> Decision {
    decide(policy, &Query { workspace: "/w", cwd, now: moment(), what })
}

/// Every line is refused, and every control is allowed.
pub fn refused(policy: &Effective, lines: &[&str], controls: &[&str]) {
    let mut wrong = Vec::new();
    for text in lines {
        let decision = line(policy, text);
        if decision.decision == Verdict::Allow {
            wrong.push(format!("allowed: {text}\n  {:?}", decision.effects));
        }
    }
    for text in controls {
        let decision = line(policy, text);
        if decision.decision != Verdict::Allow {
            wrong.push(format!("control refused: {text}\n  {}", decision.message));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
