//! A decision as it is shown: the fields of the JSON object, and the text that a person reads.

use std::fmt;

use serde::Serialize;

use crate::cli::style;
use crate::cli::visible::visible;
use crate::exit::{Ending, Kind};

/// The answer of a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// Go ahead.
    Allow,
    /// A person has to say yes.
    Ask,
    /// No.
    Deny,
}

/// One decision with everything that explains it. `explain` shows it; so does a refused call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DecisionView {
    /// The answer.
    pub decision: Answer,
    /// Stable name of the reason.
    pub code: String,
    /// What was asked, as one line.
    pub asked: String,
    /// What it does.
    pub effects: Vec<EffectView>,
    /// The rule that decided.
    pub rule: Option<RuleView>,
    /// Why, in the words of the rule or of the engine.
    pub reason: Option<String>,
    /// Whom to ask.
    pub owner: Option<String>,
    /// Forms that would be allowed.
    pub nearest: Vec<String>,
    /// Shipped policies that would allow it.
    pub allowed_by: Vec<String>,
    /// Whether a person's approval can unlock it.
    pub approval_can_unlock: bool,
    /// The policy that was asked.
    pub policy: PolicyView,
    /// What else the reader should know.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// One effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EffectView {
    /// Its class: `read`, `write`, `exec`, `env`, `net`, `code`, `system`, `unknown`.
    pub effect: String,
    /// What it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// The words that cause it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Whether it is what went too far.
    #[serde(skip_serializing_if = "is_false")]
    pub too_much: bool,
}

/// The rule that decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RuleView {
    /// `policy/id`.
    pub id: String,
    /// The file.
    pub file: String,
    /// Its line.
    pub line: u32,
    /// The rule as written.
    pub text: String,
}

/// The policy that was asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PolicyView {
    /// Its name.
    pub name: String,
    /// Digest of all it is made of.
    pub digest: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_false(flag: &bool) -> bool {
    !*flag
}

impl DecisionView {
    /// How a run ends that goes no further than this decision.
    #[must_use]
    pub fn ending(&self) -> Ending {
        match self.decision {
            Answer::Allow => Ending::ok(),
            Answer::Ask => Ending::of_kind(Kind::ApprovalNeeded, &*self.code),
            Answer::Deny => Ending::of_kind(Kind::Denied, &*self.code),
        }
    }
}

impl fmt::Display for DecisionView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (word, colour) = match self.decision {
            Answer::Allow => ("allow", style::GOOD),
            Answer::Ask => ("ask", style::WARN),
            Answer::Deny => ("deny", style::BAD),
        };
        let (strong, faint) = (style::STRONG, style::FAINT);
        let asked = visible(&self.asked);
        writeln!(
            f,
            "{colour}{word}{colour:#}  {strong}{asked}{strong:#}  {faint}[{}]{faint:#}",
            self.code
        )?;
        for (at, effect) in self.effects.iter().enumerate() {
            effect.line(f, if at == 0 { "does" } else { "" })?;
        }
        if self.effects.is_empty() && self.decision == Answer::Allow {
            field(f, "does", "nothing beyond its own output")?;
        }
        if let Some(reason) = &self.reason {
            field(f, "because", &visible(reason))?;
        }
        if let Some(RuleView {
            id,
            file,
            line,
            text,
        }) = &self.rule
        {
            let place = format!("{}  {faint}{}:{line}{faint:#}", visible(id), visible(file));
            field(f, "rule", &place)?;
            field(f, "", &visible(text))?;
        }
        if let Some(owner) = &self.owner {
            field(f, "owner", &visible(owner))?;
        }
        for (at, form) in self.nearest.iter().enumerate() {
            field(f, if at == 0 { "instead" } else { "" }, &visible(form))?;
        }
        if self.decision != Answer::Allow {
            if !self.allowed_by.is_empty() {
                field(f, "allowed by", &visible(&self.allowed_by.join(", ")))?;
            }
            let approval = if self.approval_can_unlock {
                "can unlock it"
            } else {
                "cannot unlock it"
            };
            field(f, "approval", approval)?;
        }
        for (at, note) in self.notes.iter().enumerate() {
            field(f, if at == 0 { "note" } else { "" }, &visible(note))?;
        }
        let policy = format!(
            "{}  {faint}{}{faint:#}",
            visible(&self.policy.name),
            visible(&self.policy.digest)
        );
        field(f, "policy", &policy)
    }
}

impl EffectView {
    fn line(&self, f: &mut fmt::Formatter<'_>, name: &str) -> fmt::Result {
        let (bad, faint) = (style::BAD, style::FAINT);
        let mut text = visible(&self.effect).into_owned();
        if let Some(target) = &self.target {
            text = format!("{text:<7} {}", visible(target));
        }
        if let Some(by) = &self.by {
            text = format!("{text}  {faint}by {}{faint:#}", visible(by));
        }
        if self.too_much {
            text = format!("{text}  {bad}too much{bad:#}");
        }
        field(f, name, &text)
    }
}

/// A name in a narrow column and its value. The value is already safe to show.
fn field(f: &mut fmt::Formatter<'_>, name: &str, value: &str) -> fmt::Result {
    writeln!(f, "  {name:<10}  {value}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn denial() -> DecisionView {
        DecisionView {
            decision: Answer::Deny,
            code: "effect_not_granted".to_owned(),
            asked: "sort -o out \u{1b}[1Aa".to_owned(),
            effects: vec![
                EffectView {
                    effect: "read".into(),
                    target: Some("a".into()),
                    by: None,
                    too_much: false,
                },
                EffectView {
                    effect: "write".into(),
                    target: Some("out".into()),
                    by: Some("-o out".into()),
                    too_much: true,
                },
            ],
            rule: Some(RuleView {
                id: "readonly/look".into(),
                file: "policies/readonly.yml".into(),
                line: 12,
                text: "allow: catalog".into(),
            }),
            reason: Some("Looking around changes nothing.".into()),
            owner: Some("sec@example.org".into()),
            nearest: vec!["sort a".into()],
            allowed_by: vec!["contained".into()],
            approval_can_unlock: false,
            policy: PolicyView {
                name: "readonly".into(),
                digest: "b3:00".into(),
            },
            notes: Vec::new(),
        }
    }

    #[test]
    fn a_denial_reads_as_a_whole() {
        let text = anstream::adapter::strip_str(&denial().to_string()).to_string();
        let expected = "\
deny  sort -o out \\x1b[1Aa  [effect_not_granted]
  does        read    a
              write   out  by -o out  too much
  because     Looking around changes nothing.
  rule        readonly/look  policies/readonly.yml:12
              allow: catalog
  owner       sec@example.org
  instead     sort a
  allowed by  contained
  approval    cannot unlock it
  policy      readonly  b3:00
";
        assert_eq!(text, expected);
    }

    #[test]
    fn the_exit_code_follows_the_answer() {
        let code = |decision| {
            DecisionView {
                decision,
                ..denial()
            }
            .ending()
            .exit
            .get()
        };
        assert_eq!(
            [Answer::Allow, Answer::Ask, Answer::Deny].map(code),
            [0, 77, 126]
        );
    }
}
