//! From what a module says of itself to a [`Definition`].
//!
//! A module's metadata is known only after its code ran, in a sandbox. What it answered is untrusted
//! JSON: it goes through the same reader as the YAML form, so both mean the same and neither can
//! ask for more.

use runner_policy::finding::{At, Finding, Report};
use runner_policy::yaml::Entry;
use serde_json::{Map, Value};

use super::data::to_tree;
use super::definition::{Body, Definition, Described};
use super::members;
use super::read;
use crate::ids::ToolName;
use crate::json;
use crate::text::counted;

/// Largest description, as JSON text. More would fill an agent's context.
const MAX_BYTES: usize = 1 << 20;
/// Most members: each is looked for in the module's text.
const MAX_MEMBERS: usize = 64;
/// Most hooks.
const MAX_ITEMS: usize = 100;

/// What a description may hold.
const KEYS: &[&str] = &[
    "name",
    "description",
    "enabled",
    "tokenCost",
    "permissions",
    "version",
    "category",
    "securityTier",
    "files",
    "net",
    "env",
    "limits",
    "timeout",
    "parameters",
    "returnType",
    "documentation",
    "capabilities",
    "requiredAuth",
    "costInfo",
    "tags",
    "retry",
];
/// What the runtime adds to the members of the module.
const ADDED: &[&str] = &["hooks", "health", "unread"];
/// What is kept to be shown and means nothing here.
const NOTES: &[&str] = &["retry", "health"];
/// What a module may do besides `execute`.
const HOOKS: &[&str] =
    &["initialize", "validate", "handleError", "cleanup", "healthCheck", "testMethod"];

/// Why a description cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DescribeError {
    /// It is no JSON object.
    #[error("it is not a JSON object")]
    NotAnObject,
    /// It is larger or deeper than any description.
    #[error("it has more than {MAX_BYTES} bytes or {MAX_MEMBERS} members, or is too deep")]
    TooLarge,
    /// Something in it is wrong.
    #[error("{}", counted(.0.len(), "finding"))]
    Refused(Vec<Finding>),
}

impl DescribeError {
    /// What is wrong in it.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        match self {
            Self::Refused(findings) => findings,
            Self::NotAnObject | Self::TooLarge => &[],
        }
    }
}

/// Reads a description. `stem` is the name that the file has, `text` the module itself, where findings point.
///
/// # Errors
/// It is no description of a tool, with everything that is wrong.
pub fn from_description(
    description: &Value,
    file: &str,
    text: &str,
    stem: &ToolName,
) -> Result<Definition, DescribeError> {
    let Value::Object(map) = description else { return Err(DescribeError::NotAnObject) };
    let large = map.len() > MAX_MEMBERS || !json::is_bounded(description);
    if large || description.to_string().len() > MAX_BYTES {
        return Err(DescribeError::TooLarge);
    }
    let mut report = Report::new(file, text);
    let entries = entries(map, text, &mut report);
    let described = described(map, text, &mut report);
    let common = read::common(
        &entries,
        At::default(),
        stem,
        (file, text),
        read::Author::Others,
        &mut report,
    );
    let definition =
        common.zip(described).map(|(common, described)| common.with(Body::Module(described)));
    read::finish(definition, report).map_err(DescribeError::Refused)
}

/// The entries that both forms have, under the names of the YAML form.
fn entries(map: &Map<String, Value>, text: &str, report: &mut Report<'_>) -> Vec<Entry> {
    let mut entries = Vec::new();
    for (key, value) in map.iter().filter(|(key, _)| !ADDED.contains(&key.as_str())) {
        let at = place(text, key);
        let mut entry = Entry { key: key.clone(), at, value: to_tree(value, at) };
        if !KEYS.contains(&key.as_str()) {
            members::unknown(&entry, KEYS, report);
            continue;
        }
        entry.key = match key.as_str() {
            "parameters" => "schema".to_owned(),
            "returnType" => "returns".to_owned(),
            _ => entry.key,
        };
        entries.push(entry);
    }
    if let Some(told) = map.get("unread") {
        members::unread(told, KEYS, |name| place(text, name), report);
    }
    entries
}

/// Where a module seems to say something: the first `key:`, `key =` or `key(` of its text.
fn place(text: &str, key: &str) -> At {
    let small = |figure: usize| u32::try_from(figure).unwrap_or(u32::MAX);
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    for (number, line) in text.lines().enumerate() {
        for (start, _) in line.match_indices(key) {
            let after = line[start + key.len()..].trim_start();
            let alone = !line[..start].ends_with(is_word);
            let begins = after.starts_with([':', '=', '(']) && !key.is_empty();
            if alone && begins {
                let column = line[..start].chars().count() + 1;
                let width = small(key.chars().count());
                return At { line: small(number + 1), column: small(column), width };
            }
        }
    }
    At::default()
}

/// What a module's text seems to say of itself: the first text after a key, such as `description:`, that stands
/// furthest to the left. For lists only; what holds is what the module says when it is asked.
#[must_use]
pub fn glimpse(text: &str, key: &str) -> Option<String> {
    let mut found: Option<(usize, &str)> = None;
    let mut offset = 0;
    for line in text.split_inclusive('\n') {
        let indent = line.len() - line.trim_start().len();
        let after = line[indent..].strip_prefix(key).filter(|rest| rest.starts_with(':'));
        if after.is_some() && found.is_none_or(|(left, _)| indent < left) {
            found = Some((indent, &text[offset + indent + key.len() + 1..]));
        }
        offset += line.len();
    }
    let mut value = found?.1.trim_start();
    let mut whole = String::new();
    loop {
        let quote = value.chars().next().filter(|c| matches!(c, '"' | '\'' | '`'))?;
        let (inner, after) = value[1..].split_once(quote)?;
        if inner.contains(['\\', '\n']) {
            return None;
        }
        whole.push_str(inner);
        match after.trim_start().strip_prefix('+') {
            Some(next) => value = next.trim_start(),
            None => break,
        }
    }
    (!whole.is_empty() && whole.len() <= read::MAX_DESCRIPTION).then_some(whole)
}

fn described(map: &Map<String, Value>, text: &str, report: &mut Report<'_>) -> Option<Described> {
    let mut wrong = |key: &str, form: &str| {
        report.add("wrong_type", place(text, key), format!("`{key}` is {form}"), None);
    };
    let hooks = match map.get("hooks") {
        None => Some(Vec::new()),
        Some(Value::Array(items)) if items.len() <= MAX_ITEMS => items
            .iter()
            .map(|item| item.as_str().filter(|hook| HOOKS.contains(hook)).map(str::to_owned))
            .collect(),
        Some(_) => None,
    };
    if hooks.is_none() {
        wrong("hooks", "a list of names of hooks");
    }
    let kept = NOTES.iter().filter_map(|key| Some(((*key).to_owned(), map.get(*key)?.clone())));
    let notes = Value::Object(kept.collect());
    Some(Described { hooks: hooks?, notes })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tool::words::Tier;

    const TEXT: &str =
        "export const tool = {\n  name: 'probe',\n  description: 'x',\n  permissions: {},\n};\n";

    fn read(description: &Value) -> Result<Definition, DescribeError> {
        from_description(description, "probe.tool.ts", TEXT, &"probe".parse().unwrap())
    }

    fn full() -> Value {
        json!({
            "name": "probe", "version": "1.0.0", "category": "api", "securityTier": "external_api",
            "description": "Asks a service.", "documentation": "https://example.org/",
            "capabilities": [{"action": "ask", "description": "asks", "requiresConfirmation": false}],
            "permissions": {"allowlist": ["git log*"], "riskLevel": "low"}, "net": ["GET https://api.example/**"],
            "parameters": {"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "properties": {"id": {"type": "string"}}},
            "returnType": {"type": "object"}, "hooks": ["validate", "cleanup"], "retry": {"maxAttempts": 3}, "timeout": 5000
        })
    }

    #[test]
    fn a_description_is_the_same_definition() {
        let definition = read(&full()).map_err(|error| format!("{error:?}")).unwrap();
        assert_eq!((definition.tier, definition.timeout), (Tier::ExternalApi, Some(5000)));
        assert_eq!(definition.permissions.net, ["GET https://api.example/**"]);
        assert!(definition.returns.is_some() && !definition.auto_accept);
        let Body::Module(described) = &definition.body else { panic!("a module") };
        assert_eq!(described.hooks, ["validate", "cleanup"]);
        assert_eq!(described.notes["retry"]["maxAttempts"], 3);
    }

    #[test]
    fn a_capability_that_wants_confirmation_is_asked_about() {
        let with = |confirm: bool| {
            json!({"name": "probe", "description": "x", "parameters": {"type": "object"},
                "capabilities": [{"action": "a", "requiresConfirmation": confirm}]})
        };
        assert!(read(&with(false)).unwrap().auto_accept);
        assert!(!read(&with(true)).unwrap().auto_accept);
    }

    #[test]
    fn what_is_wrong_points_into_the_module() {
        let cases = [
            ("name", json!("other"), "name_differs", 2),
            ("description", json!(["x"]), "wrong_type", 3),
            ("permissions", json!({"allowlist": ["rm; ls"]}), "bad_pattern", 4),
            ("permissions", json!({"privileged": true}), "unknown_key", 4),
            ("hooks", json!(["eval"]), "wrong_type", 0),
            ("capabilities", json!({"a": 1}), "wrong_type", 0),
            ("parameters", json!({"type": "array"}), "bad_schema", 0),
            ("__proto__", json!({}), "unknown_key", 0),
            ("schema", json!({}), "unknown_key", 0),
            ("preconditions", json!([]), "not_supported", 0),
            ("unread", json!([{"path": ["permissions", "x"], "is": "function"}]), "wrong_type", 0),
            ("unread", json!([{"path": ["name"], "is": "instance"}]), "wrong_type", 2),
            ("unread", json!({}), "wrong_type", 0),
        ];
        for (key, value, code, line) in cases {
            let mut description = full();
            description[key] = value;
            let Err(DescribeError::Refused(findings)) = read(&description) else { panic!("{key}") };
            assert_eq!(
                (findings[0].code, findings[0].at.line),
                (code, line),
                "{key}: {findings:?}"
            );
        }
    }

    #[test]
    fn a_glimpse_is_the_outermost_description() {
        assert_eq!(glimpse(TEXT, "description"), Some("x".to_owned()));
        let nested = "  parameters: {\n    description: 'inner',\n  },\n  description:\n    \"What it does.\" +\n    ' More.',\n";
        assert_eq!(glimpse(nested, "description"), Some("What it does. More.".to_owned()));
        for text in ["", "description: {", "description", "description: \"a\\\"b\""] {
            assert_eq!(glimpse(text, "description"), None, "{text}");
        }
    }

    #[test]
    fn what_is_no_description_is_an_error() {
        for value in [json!(null), json!([]), json!("x"), json!(1)] {
            assert!(matches!(read(&value), Err(DescribeError::NotAnObject)));
        }
        let mut deep = json!(1);
        for _ in 0..100 {
            deep = json!([deep]);
        }
        assert!(matches!(read(&json!({"retry": deep})), Err(DescribeError::TooLarge)));
        let many: Map<String, Value> =
            (0..=MAX_MEMBERS).map(|at| (format!("a{at}"), json!(1))).collect();
        assert!(matches!(read(&Value::Object(many)), Err(DescribeError::TooLarge)));
        let long = json!({"description": "x".repeat(MAX_BYTES)});
        assert!(matches!(read(&long), Err(DescribeError::TooLarge)));
    }
}
