//! Between a file's tree and JSON: schemas in YAML become JSON, descriptions in JSON become a tree.

use runner_policy::finding::{At, Report};
use runner_policy::yaml::{Entry, Node, Style, Value as Tree};
use serde_json::{Map, Value};

use super::schema::Spans;
use crate::json;

/// A node as JSON; where each part stands is noted by its pointer. Words that YAML readers disagree on must
/// be quoted: `no` is a text to one and false to another.
pub(super) fn to_json(
    node: &Node,
    pointer: &str,
    spans: &mut Spans,
    report: &mut Report<'_>,
) -> Option<Value> {
    spans.note(pointer, node.at);
    match &node.value {
        Tree::Scalar { text, style: Style::Plain } => match text.as_str() {
            "true" => Some(Value::Bool(true)),
            "false" => Some(Value::Bool(false)),
            "null" => Some(Value::Null),
            text => match number(text) {
                Some(number) => Some(number),
                None => report.text(node).map(|text| Value::String(text.to_owned())),
            },
        },
        Tree::Scalar { text, style: Style::Quoted | Style::Block } => {
            Some(Value::String(text.clone()))
        }
        Tree::List(items) => {
            let mut list = Vec::with_capacity(items.len());
            for (at, item) in items.iter().enumerate() {
                list.push(to_json(item, &format!("{pointer}/{at}"), spans, report)?);
            }
            Some(Value::Array(list))
        }
        Tree::Map(entries) => {
            let mut map = Map::new();
            for entry in entries {
                let here = format!("{pointer}/{}", entry.key.replace('~', "~0").replace('/', "~1"));
                let value = to_json(&entry.value, &here, spans, report)?;
                spans.note(&here, entry.at);
                map.insert(entry.key.clone(), value);
            }
            Some(Value::Object(map))
        }
    }
}

/// A number as JSON writes it.
fn number(text: &str) -> Option<Value> {
    let begins = text.starts_with(|c: char| c.is_ascii_digit() || c == '-');
    if begins { json::read(text).ok().filter(Value::is_number) } else { None }
}

/// A JSON value as a tree, all of it at one place, so that one reader serves both forms of tools.
pub(super) fn to_tree(value: &Value, at: At) -> Node {
    let scalar = |text: String, style: Style| Tree::Scalar { text, style };
    let value = match value {
        Value::Null => scalar("null".to_owned(), Style::Plain),
        Value::Bool(flag) => scalar(flag.to_string(), Style::Plain),
        Value::Number(number) => scalar(number.to_string(), Style::Plain),
        Value::String(text) => scalar(text.clone(), Style::Quoted),
        Value::Array(items) => Tree::List(items.iter().map(|item| to_tree(item, at)).collect()),
        Value::Object(map) => Tree::Map(
            map.iter()
                .map(|(key, value)| Entry { key: key.clone(), at, value: to_tree(value, at) })
                .collect(),
        ),
    };
    Node { at, value }
}

#[cfg(test)]
mod tests {
    use runner_policy::yaml;
    use serde_json::json;

    use super::*;

    fn read(text: &str) -> Result<Value, Vec<&'static str>> {
        let mut report = Report::new("t.yml", text);
        let mut spans = Spans::default();
        let root = yaml::read(text, &mut report).unwrap();
        let value = to_json(&root, "", &mut spans, &mut report);
        value.ok_or_else(|| report.finish().iter().map(|finding| finding.code).collect())
    }

    #[test]
    fn yaml_scalars_become_the_json_that_is_meant() {
        let text = "a: 1\nb: -2.5\nc: 1e3\nd: true\ne: null\nf: text\ng: \"1\"\nh: 'true'\ni: [x, {j: 0}]\n";
        let expected = json!({"a":1,"b":-2.5,"c":1000.0,"d":true,"e":null,"f":"text","g":"1","h":"true","i":["x",{"j":0}]});
        assert_eq!(read(text), Ok(expected));
    }

    #[test]
    fn words_that_readers_disagree_on_are_findings() {
        for text in ["a: no", "a: ~", "a:", "a: 0x1F", "a: 12:30:00", "a: .5", "a: +1", "a: [y]"] {
            assert_eq!(read(text), Err(vec!["ambiguous_scalar"]), "{text}");
        }
    }

    #[test]
    fn json_survives_the_way_through_a_tree() {
        let value = json!({"a": [1, 2.5, true, null, "no", "1"], "b": {"c": {}}});
        let at = At { line: 1, column: 1, width: 1 };
        let mut report = Report::new("t", "");
        let back = to_json(&to_tree(&value, at), "", &mut Spans::default(), &mut report);
        assert_eq!(back, Some(value));
    }
}
