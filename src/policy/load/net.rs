//! The rules of `net:`.

use super::sections::{date, identifier};
use crate::finding::Report;
use crate::model::{NetRule, Verdict};
use crate::net;
use crate::yaml::Node;

/// All rules of a policy.
pub(super) fn rules(node: &Node, report: &mut Report<'_>) -> Vec<NetRule> {
    let nodes = report.list(node).unwrap_or_default();
    nodes.iter().filter_map(|node| rule(node, report)).collect()
}

fn rule(node: &Node, report: &mut Report<'_>) -> Option<NetRule> {
    let entries = report.keys(node, &["id", "allow", "ask", "deny", "reason", "until"])?;
    let find = |key: &str| entries.iter().find(|entry| entry.key == key);
    let verbs = [("allow", Verdict::Allow), ("ask", Verdict::Ask), ("deny", Verdict::Deny)];
    let mut given = verbs.iter().filter_map(|(key, verb)| find(key).map(|entry| (entry, *verb)));
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
    let texts = report.one_or_more(&entry.value)?;
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
    Some(NetRule {
        id: find("id").and_then(|entry| identifier(&entry.value, "id", report)),
        verb,
        targets,
        reason: find("reason").and_then(|entry| report.text(&entry.value).map(str::to_owned)),
        until: find("until").and_then(|entry| date(&entry.value, report)),
        at: node.at,
        text: format!("{} {shown}", verb.word()),
    })
}
