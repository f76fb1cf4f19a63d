//! A decision for people: what was asked, what it does, the answer, why, and the ways out.
//!
//! The JSON form is the engine's own, with the question added. Everything shown is foreign text.

use std::fmt;

use runner_policy::decide::{Decision, EffectLine, Explanation, RuleRef};
use runner_policy::limits::Unit;
use runner_policy::model::Verdict;
use runner_policy::net::{Reach, Terms};
use serde::Serialize;

use crate::cli::style;
use crate::cli::visible::visible;
use crate::exit::{Ending, Kind};
use crate::policy_files::{Configured, DEFAULT, Named};

/// A decision with its question. `explain` shows it; so does a refused call.
#[derive(Debug, Serialize)]
pub struct View<'a> {
    /// What was asked, as one line.
    pub asked: &'a str,
    /// The decision and the ways out.
    #[serde(flatten)]
    pub explanation: &'a Explanation,
    /// The configuration that made the policy the default, if one did.
    #[serde(rename = "default", skip_serializing_if = "Option::is_none")]
    pub configured: Option<&'a Configured>,
}

/// How a run ends that goes no further than this decision.
#[must_use]
pub fn ending(decision: &Decision) -> Ending {
    match decision.decision {
        Verdict::Allow => Ending::ok(),
        Verdict::Ask => Ending::of_kind(Kind::ApprovalNeeded, decision.code.into()),
        Verdict::Deny => Ending::of_kind(Kind::Denied, decision.code.into()),
    }
}

impl fmt::Display for View<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { explanation, configured, .. } = self;
        let Explanation { decision, nearest, allowed_by, notes } = explanation;
        let colour = colour(decision.decision);
        let (strong, faint) = (style::STRONG, style::FAINT);
        let (word, asked) = (decision.decision.word(), visible(self.asked));
        write!(f, "{colour}{word}{colour:#}  {strong}{asked}{strong:#}")?;
        writeln!(f, "  {faint}[{}]{faint:#}", decision.code.word())?;
        field(f, "because", &visible(&decision.message))?;
        if let Some(reason) = &decision.reason {
            field(f, "", &visible(reason))?;
        }
        effects(f, &decision.effects)?;
        if let Some(RuleRef { id, file, line, text }) = &decision.rule {
            let place = format!("{}  {faint}{}:{line}{faint:#}", visible(id), visible(file));
            field(f, "rule", &place)?;
            field(f, "", &visible(text))?;
        }
        if let Some(terms) = &decision.terms {
            terms_of(f, terms)?;
        }
        for (at, form) in nearest.iter().enumerate() {
            field(f, if at == 0 { "instead" } else { "" }, &visible(form))?;
        }
        if decision.decision != Verdict::Allow {
            if !allowed_by.is_empty() {
                field(f, "allowed by", &visible(&allowed_by.join(", ")))?;
            }
            let approval = if decision.approvable { "can unlock it" } else { "cannot unlock it" };
            field(f, "approval", approval)?;
        }
        for note in notes {
            field(f, "note", note.text)?;
        }
        if let Some((verdict, code)) = decision.would {
            let text = format!("only observed: it would be {} [{}]", verdict.word(), code.word());
            field(f, "mode", &text)?;
        }
        let owner = decision
            .owner
            .as_ref()
            .map(|owner| format!("  of {}", visible(owner)))
            .unwrap_or_default();
        let digest = decision.digest.get(..16).unwrap_or(&decision.digest);
        field(
            f,
            "policy",
            &format!("{}{owner}  {faint}{digest}{faint:#}", visible(&decision.policy)),
        )?;
        configured.map_or(Ok(()), |it| default(f, it))
    }
}

/// Where the default policy comes from.
fn default(f: &mut fmt::Formatter<'_>, configured: &Configured) -> fmt::Result {
    let told = |named: &Named| format!("{}  {}", visible(&named.name), visible(&named.place()));
    let text = configured.default.as_ref().map_or_else(|| DEFAULT.to_owned(), told);
    field(f, "default", &text)?;
    match &configured.within {
        Some(named) => field(f, "within", &told(named)),
        None => Ok(()),
    }
}

/// On what terms a request is let through.
fn terms_of(f: &mut fmt::Formatter<'_>, terms: &Terms) -> fmt::Result {
    let most = terms.counts.iter().map(|count| count.most).min().unwrap_or_default();
    let (size, time) = (Unit::Bytes.show(terms.size), Unit::Time.show(terms.time));
    field(f, "limits", &format!("size: {size}, count: {most}, time: {time}"))?;
    let reach = match terms.reach {
        Reach::Public => "public addresses only, checked when the name is resolved",
        Reach::Private => "private addresses too",
        Reach::Named => "the address that the rule names",
    };
    field(f, "reaches", reach)?;
    for (at, send) in terms.send.iter().enumerate() {
        let text = format!("{}: {}", send.header, send.template);
        field(f, if at == 0 { "sends" } else { "" }, &visible(&text))?;
    }
    Ok(())
}

fn colour(verdict: Verdict) -> anstyle::Style {
    match verdict {
        Verdict::Allow => style::GOOD,
        Verdict::Ask => style::WARN,
        Verdict::Deny => style::BAD,
    }
}

/// What it does, command by command.
fn effects(f: &mut fmt::Formatter<'_>, lines: &[EffectLine]) -> fmt::Result {
    let (bad, faint) = (style::BAD, style::FAINT);
    let several = lines.iter().any(|line| line.command != lines[0].command);
    let mut current = None;
    for (at, line) in lines.iter().enumerate() {
        let name = if at == 0 { "does" } else { "" };
        let EffectLine { command, effect, object, by, refused } = line;
        if several && current != Some(command) {
            field(f, name, &format!("{faint}{}:{faint:#}", visible(command)))?;
            current = Some(command);
        }
        let indent = if several { "  " } else { "" };
        let name = if several { "" } else { name };
        let mut text = format!("{indent}{effect:<7} {}", visible(object)).trim_end().to_owned();
        if !by.is_empty() && by != object {
            text = format!("{text}  {faint}by {}{faint:#}", visible(by));
        }
        if *refused {
            text = format!("{text}  {bad}too much{bad:#}");
        }
        field(f, name, &text)?;
    }
    Ok(())
}

/// A name in a narrow column and its value. The value is already safe to show.
fn field(f: &mut fmt::Formatter<'_>, name: &str, value: &str) -> fmt::Result {
    writeln!(f, "  {name:<10}  {value}")
}
