//! The rules of `net:`.

use super::secrets::sent;
use super::sections::{date, identifier};
use super::{Origin, egress};
use crate::finding::{At, Report};
use crate::model::{NetRule, Verdict};
use crate::net::{self, Audience, FIGURES, Figures, Reach, Secret, Target};
use crate::yaml::{Entry, Node};

const KEYS: &[&str] = &[
    "id", "allow", "ask", "deny", "for", "registry", "inspect", "at", "limits", "send", "private",
    "reason", "until",
];

/// All rules of a policy.
pub(super) fn rules(
    node: &Node,
    origin: Origin,
    secrets: &[(Secret, At)],
    report: &mut Report<'_>,
) -> Vec<NetRule> {
    let mut rules: Vec<NetRule> = Vec::new();
    for node in report.list(node).unwrap_or_default() {
        let Some(rule) = rule(node, origin, secrets, report) else { continue };
        // A count is kept by the rule's id, and so are records.
        let same = |other: &&NetRule| rule.id.is_some() && other.id == rule.id;
        if let Some(first) = rules.iter().find(same) {
            report.add(
                "duplicate_id",
                rule.at,
                format!("id `{}` stands twice", rule.id.as_deref().unwrap_or_default()),
                format!("the first is on line {}", first.at.line),
            );
        }
        rules.push(rule);
    }
    rules
}

fn rule(
    node: &Node,
    origin: Origin,
    secrets: &[(Secret, At)],
    report: &mut Report<'_>,
) -> Option<NetRule> {
    let entries = report.keys(node, KEYS)?;
    let find = |key: &str| entries.iter().find(|entry| entry.key == key);
    let verbs = [("allow", Verdict::Allow), ("ask", Verdict::Ask), ("deny", Verdict::Deny)];
    let mut given = verbs.iter().filter_map(|(key, verb)| find(key).map(|entry| (entry, *verb)));
    let audience = egress::audience(entries, report);
    if audience == Audience::Commands && find("registry").is_some() && given.clone().count() == 0 {
        return egress::registry_rule(node, entries, origin, report);
    }
    let Some((entry, verb)) = given.next() else {
        report.add(
            "missing_key",
            node.at,
            "a rule says `allow`, `ask` or `deny`",
            "such as `allow: \"connect registry.example:443\"`".to_owned(),
        );
        return None;
    };
    if let Some((second, _)) = given.next() {
        report.add(
            "two_verbs",
            second.at,
            "a rule has one verb",
            "make two rules of it".to_owned(),
        );
    }
    if verb != Verdict::Allow && find("id").is_none() {
        report.add(
            "missing_key",
            node.at,
            format!("a rule that says `{}` needs an `id`", verb.word()),
            None,
        );
    }
    if verb == Verdict::Deny {
        for entry in ["limits", "send", "private"].into_iter().filter_map(find) {
            report.add(
                "not_for_deny",
                entry.at,
                format!("a deny has no `{}`", entry.key),
                "a deny lets nothing through that could be bounded or added to".to_owned(),
            );
        }
    }
    let texts = report.one_or_more_patterns(&entry.value)?;
    let mut targets = Vec::new();
    for (text, at) in &texts {
        match net::rule(text) {
            Ok(target) => targets.push(target),
            Err(form) => report.add(
                "bad_target",
                *at,
                format!("`{text}` is no target"),
                format!("write {form}"),
            ),
        }
    }
    let shown = texts.iter().map(|(text, _)| *text).collect::<Vec<_>>().join(" | ");
    let commands = match audience {
        Audience::Commands => Some(egress::for_commands(verb, entries, &targets, origin, report)),
        Audience::Tools | Audience::Arguments => None,
    };
    let limits = find("limits").filter(|_| commands.is_none());
    Some(NetRule {
        id: find("id").and_then(|entry| identifier(&entry.value, "id", report)),
        verb,
        figures: limits.map(|entry| figures(&entry.value, report)).unwrap_or_default(),
        reach: reach(find("private"), origin, &targets, report),
        send: find("send")
            .filter(|_| verb != Verdict::Deny)
            .map(|entry| sent(entry, origin, &targets, secrets, report))
            .unwrap_or_default(),
        commands,
        targets,
        reason: find("reason").and_then(|entry| report.text(&entry.value).map(str::to_owned)),
        until: find("until").and_then(|entry| date(&entry.value, report)),
        at: node.at,
        text: format!("{} {shown}", verb.word()),
    })
}

/// Which addresses the rule's names may lead to.
pub(super) fn reach(
    entry: Option<&Entry>,
    origin: Origin,
    targets: &[Target],
    report: &mut Report<'_>,
) -> Reach {
    let private = entry.and_then(|entry| report.flag(&entry.value));
    if origin == Origin::Tool {
        // A tool says which names it wants; where they may lead is for those who grant them to say.
        return Reach::Named;
    }
    let Some((entry, true)) = entry.zip(private) else { return Reach::Public };
    if targets.iter().any(|target| target.host == "*") {
        report.add(
            "bad_target",
            entry.at,
            "`private` needs a host: with `*` it would open every private network",
            "name the hosts that lead to private addresses".to_owned(),
        );
    }
    Reach::Private
}

/// `limits: { size: 1MiB, count: 10, time: 5s }`
fn figures(node: &Node, report: &mut Report<'_>) -> Figures {
    let mut figures = Figures::default();
    for entry in report.keys(node, &FIGURES.map(|row| row.key)).unwrap_or_default() {
        let Some(row) = FIGURES.iter().find(|row| row.key == entry.key) else { continue };
        let Some(text) = report.figure(&entry.value) else { continue };
        match row.unit.parse(text) {
            Ok(figure) if figure > row.ceiling => report.add(
                "over_ceiling",
                entry.value.at,
                format!("`{}: {text}` is beyond the ceiling", row.key),
                format!("at most {}", row.unit.show(row.ceiling)),
            ),
            Ok(figure) => figures.set(row.figure, figure),
            Err(form) => report.add(
                "bad_figure",
                entry.value.at,
                format!("`{text}` is no figure for `{}`", row.key),
                format!("write {form}"),
            ),
        }
    }
    figures
}
