//! The rules of `commands:`.

use super::sections::{date, identifier, limits};
use crate::effect::{Class, Classes};
use crate::finding::Report;
use crate::grammar::Kind;
use crate::model::{Condition, Expectation, Expected, Rule, Subject, Verdict};
use crate::pattern::Pattern;
use crate::yaml::{Entry, Node, Value};

const KEYS: &[&str] = &[
    "id", "allow", "ask", "deny", "effects", "where", "args", "limits", "until", "reason",
    "examples",
];

/// All rules of a policy.
pub(super) fn rules(node: &Node, report: &mut Report<'_>) -> Vec<Rule> {
    let mut rules: Vec<Rule> = Vec::new();
    for node in report.list(node).unwrap_or_default() {
        if let Some(rule) = rule(node, report) {
            let twice = rule
                .id
                .as_ref()
                .and_then(|id| rules.iter().find(|other| other.id.as_ref() == Some(id)));
            if let Some(first) = twice {
                report.add(
                    "duplicate_id",
                    rule.at,
                    format!("id `{}` stands twice", rule.id.as_deref().unwrap_or_default()),
                    format!("the first is on line {}", first.at.line),
                );
            }
            rules.push(rule);
        }
    }
    rules
}

fn rule(node: &Node, report: &mut Report<'_>) -> Option<Rule> {
    let entries = report.keys(node, KEYS)?;
    let find = |key: &str| entries.iter().find(|entry| entry.key == key);
    let (verb, subject) = verb(node, entries, report)?;
    let id = find("id").and_then(|entry| identifier(&entry.value, "id", report));
    if verb != Verdict::Allow && find("id").is_none() {
        report.add(
            "missing_key",
            node.at,
            format!("a rule that says `{}` needs an `id`", verb.word()),
            "records and alerts refer to it: `id: never-main`".to_owned(),
        );
    }
    if let Some(entry) = find("where") {
        runs_in_a_sandbox(entry, report);
    }
    let effects = effects(find("effects"), verb, report);
    if verb == Verdict::Deny {
        for key in ["effects", "limits", "until", "where"] {
            if let Some(entry) = find(key) {
                report.add(
                    "not_for_deny",
                    entry.at,
                    format!("a deny has no `{key}`"),
                    "a deny is about a command whatever it does, for as long as it stands"
                        .to_owned(),
                );
            }
        }
    }
    let patterns = match &subject {
        Subject::Catalog => "catalog".to_owned(),
        Subject::Patterns(patterns) => {
            patterns.iter().map(|pattern| pattern.text.as_str()).collect::<Vec<_>>().join(" | ")
        }
    };
    Some(Rule {
        id,
        verb,
        subject,
        effects,
        network: find("effects").is_some() && effects.contains(Class::Net),
        args: find("args").map(|entry| conditions(&entry.value, report)).unwrap_or_default(),
        limits: find("limits").map(|entry| limits(&entry.value, report)).unwrap_or_default(),
        until: find("until").and_then(|entry| date(&entry.value, report)),
        reason: find("reason").and_then(|entry| report.text(&entry.value).map(str::to_owned)),
        examples: find("examples").map(|entry| examples(&entry.value, report)).unwrap_or_default(),
        at: node.at,
        text: format!("{} {patterns}", verb.word()),
    })
}

/// `where: sandbox` is the only place that there is.
fn runs_in_a_sandbox(entry: &Entry, report: &mut Report<'_>) {
    match report.text(&entry.value) {
        Some("sandbox") | None => {}
        Some("host") => report.add(
            "forbidden_setting",
            entry.at,
            "no command runs on the host",
            "remove `where: host`: every command runs in a sandbox".to_owned(),
        ),
        Some(other) => report.unknown_word("place", other, entry.value.at, &["sandbox"]),
    }
}

fn verb(node: &Node, entries: &[Entry], report: &mut Report<'_>) -> Option<(Verdict, Subject)> {
    let verbs = [("allow", Verdict::Allow), ("ask", Verdict::Ask), ("deny", Verdict::Deny)];
    let mut given = verbs.iter().filter_map(|(key, verb)| {
        entries.iter().find(|entry| entry.key == *key).map(|entry| (entry, *verb))
    });
    let Some((entry, verb)) = given.next() else {
        report.add(
            "missing_key",
            node.at,
            "a rule says `allow`, `ask` or `deny`",
            "such as `allow: \"cargo test ...\"`".to_owned(),
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
    let texts = report.one_or_more_patterns(&entry.value)?;
    if texts.is_empty() && matches!(&entry.value.value, Value::List(items) if items.is_empty()) {
        report.add("empty", entry.value.at, "no pattern at all", None);
        return None;
    }
    if let [("catalog", _)] = texts.as_slice() {
        return Some((verb, Subject::Catalog));
    }
    let mut patterns = Vec::new();
    for (text, at) in texts {
        match Pattern::parse(text) {
            _ if text == "catalog" => report.add(
                "bad_pattern",
                at,
                "`catalog` stands alone",
                "make a rule of its own for it".to_owned(),
            ),
            Ok(pattern) => patterns.push(pattern),
            Err(why) => report.add(
                "bad_pattern",
                at,
                format!("`{text}` is no pattern: {why}"),
                "words; `*` inside a word, `{a,b}` alternatives, a final `...` for further words"
                    .to_owned(),
            ),
        }
    }
    Some((verb, Subject::Patterns(patterns)))
}

/// The ceiling of a rule: `[read]` for an allow, everything for an ask.
fn effects(entry: Option<&Entry>, verb: Verdict, report: &mut Report<'_>) -> Classes {
    let Some(entry) = entry else {
        return if verb == Verdict::Allow {
            [Class::Read].into_iter().collect()
        } else {
            Classes::ANY
        };
    };
    let mut classes = Classes::default();
    for (word, at) in report.one_or_more(&entry.value).unwrap_or_default() {
        match Class::by_word(word) {
            _ if word == "any" => classes = Classes::ANY,
            Some(Class::Unknown) | None => {
                let known: Vec<&str> = Class::ALL
                    .iter()
                    .map(|(word, _)| *word)
                    .filter(|word| *word != "unknown")
                    .chain(["any"])
                    .collect();
                report.unknown_word("effect", word, at, &known);
            }
            Some(class) => classes = classes.with(class),
        }
    }
    classes
}

fn conditions(node: &Node, report: &mut Report<'_>) -> Vec<Condition> {
    let mut conditions = Vec::new();
    for entry in report.map(node).unwrap_or_default() {
        let Some(kind) = Kind::by_word(&entry.key).filter(|kind| *kind != Kind::Text) else {
            let known: Vec<&str> =
                Kind::ALL.iter().map(|(word, _)| *word).filter(|word| *word != "none").collect();
            report.unknown_word("kind of argument", &entry.key, entry.at, &known);
            continue;
        };
        let mut condition = Condition { kind, only: Vec::new(), not: Vec::new() };
        for (text, at) in report.one_or_more_patterns(&entry.value).unwrap_or_default() {
            match text.strip_prefix('!') {
                Some("") => report.add("bad_pattern", at, "`!` alone excludes nothing", None),
                Some(text) => condition.not.push(text.to_owned()),
                None => condition.only.push(text.to_owned()),
            }
        }
        conditions.push(condition);
    }
    conditions
}

fn examples(node: &Node, report: &mut Report<'_>) -> Vec<Expectation> {
    let mut examples = Vec::new();
    for entry in report.keys(node, &["match", "reject"]).unwrap_or_default() {
        let expected = if entry.key == "match" { Expected::Match } else { Expected::Reject };
        for (line, at) in report.one_or_more(&entry.value).unwrap_or_default() {
            examples.push(Expectation { line: line.to_owned(), expected, at });
        }
    }
    examples
}
