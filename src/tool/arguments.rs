//! Arguments as a person types them: JSON as a whole, or `name=value` one by one.
//!
//! A value is read by the type that the schema gives the name, so that a caller need not quote JSON in a
//! shell: `count=3` is a number where a number is wanted, and a text where a text is.

use runner_policy::finding::did_you_mean;
use serde_json::{Map, Value};

use super::schema::{Schema, Violation};
use crate::json;

/// Reads `--args` and every `--arg`, and fills and checks them by the schema.
///
/// # Errors
/// Everything that does not fit.
pub fn read(
    schema: &Schema,
    whole: Option<&str>,
    pairs: &[String],
) -> Result<Value, Vec<Violation>> {
    let mut value = match whole {
        None => Value::Object(Map::new()),
        Some(text) => json::read(text).map_err(|error| {
            vec![Violation::of_the_whole("json", &format!("is not JSON: {error}"))]
        })?,
    };
    let mut violations = Vec::new();
    if !pairs.is_empty() {
        match &mut value {
            Value::Object(map) => {
                let given = map.len();
                for pair in pairs {
                    violations.extend(add(schema, map, pair, given).err());
                }
            }
            _ => violations.push(Violation::of_the_whole("type", "is not an object")),
        }
    }
    if violations.is_empty() { schema.check(value) } else { Err(violations) }
}

/// Adds one `name=value` or `name:=json`. The first `given` entries of the map came as JSON.
fn add(
    schema: &Schema,
    map: &mut Map<String, Value>,
    pair: &str,
    given: usize,
) -> Result<(), Violation> {
    let Some((name, text)) = pair.split_once('=') else {
        let mut violation = at(pair, "type", "has no value");
        violation.help = Some(format!("write `{pair}=VALUE`, or `{pair}:=JSON`"));
        return Err(violation);
    };
    let (name, as_json) = name.strip_suffix(':').map_or((name, false), |name| (name, true));
    let property = schema.property(name);
    if property.is_none() && !schema.is_open() {
        let known = schema.properties().into_iter().flat_map(Map::keys).map(String::as_str);
        let mut violation = at(name, "properties", "is not an argument of this tool");
        violation.help = match did_you_mean(name, known.clone()) {
            Some(near) => Some(format!("did you mean `{near}`?")),
            None => Some(format!("it takes: {}", known.collect::<Vec<_>>().join(", "))),
        };
        return Err(violation);
    }
    let property = property.unwrap_or(&Value::Null);
    let types = types(property);
    let value = if as_json { json_value(name, text)? } else { typed(name, text, &types)? };
    let from_pair = map.keys().position(|known| known == name).is_some_and(|at| at >= given);
    let lists = types.contains(&"array") && !as_json;
    match map.get_mut(name) {
        // A list may be given item by item.
        Some(Value::Array(items)) if lists && from_pair => match value {
            Value::Array(more) => items.extend(more),
            one => items.push(one),
        },
        Some(_) => return Err(at(name, "properties", "is given twice")),
        None if lists && !value.is_array() => {
            map.insert(name.to_owned(), Value::Array(vec![item(name, text, property)?]));
        }
        None => {
            map.insert(name.to_owned(), value);
        }
    }
    Ok(())
}

/// The types that a schema names, of itself or of its alternatives.
fn types(schema: &Value) -> Vec<&str> {
    let mut types: Vec<&str> = match schema.get("type") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    for key in ["anyOf", "oneOf"] {
        let forms = schema.get(key).and_then(Value::as_array);
        types.extend(forms.into_iter().flatten().filter_map(|form| form.get("type")?.as_str()));
    }
    types
}

/// The article before a type's name.
fn article(name: &str) -> &'static str {
    if name.starts_with(['a', 'i', 'o']) { "an" } else { "a" }
}

/// A text by the types that are wanted.
fn typed(name: &str, text: &str, types: &[&str]) -> Result<Value, Violation> {
    let parsed = || json::read(text).ok();
    for kind in types {
        let value = match *kind {
            "number" | "integer" => parsed().filter(Value::is_number),
            "boolean" => parsed().filter(Value::is_boolean),
            "null" => parsed().filter(Value::is_null),
            "array" => parsed().filter(Value::is_array),
            "object" => parsed().filter(Value::is_object),
            _ => None,
        };
        // Where a text is wanted too, only what cannot be meant otherwise is more than a text.
        if let Some(value) = value.filter(|_| !types.contains(&"string")) {
            return Ok(value);
        }
    }
    let text_fits = types.is_empty() || types.contains(&"string") || types.contains(&"array");
    if text_fits {
        return Ok(Value::String(text.to_owned()));
    }
    let wanted = types.join(" or ");
    let mut violation = at(name, "type", &format!("is not {} {wanted}", article(&wanted)));
    if types.contains(&"object") {
        violation.help = Some(format!("write JSON: `{name}={{\"key\": \"value\"}}`"));
    }
    Err(violation)
}

/// One item of a list.
fn item(name: &str, text: &str, property: &Value) -> Result<Value, Violation> {
    typed(name, text, &types(property.get("items").unwrap_or(&Value::Null)))
}

fn json_value(name: &str, text: &str) -> Result<Value, Violation> {
    json::read(text).map_err(|error| at(name, "json", &format!("is not JSON: {error}")))
}

fn at(name: &str, keyword: &str, message: &str) -> Violation {
    let mut violation = Violation::of_the_whole(keyword, message);
    violation.pointer = format!("/{}", name.replace('~', "~0").replace('/', "~1"));
    violation
}

#[cfg(test)]
mod tests {
    use runner_policy::finding::{At, Report};
    use serde_json::json;

    use super::*;
    use crate::tool::schema::{Role, Spans};

    fn schema() -> Schema {
        let json = json!({"type": "object", "properties": {
            "text": {"type": "string"}, "count": {"type": "integer"}, "ratio": {"type": "number"},
            "deep": {"type": "boolean", "default": false}, "tags": {"type": "array", "items": {"type": "string"}},
            "sizes": {"type": "array", "items": {"type": "integer"}}, "filter": {"type": "object"},
            "either": {"anyOf": [{"type": "integer"}, {"type": "null"}]}, "any": {}
        }});
        let mut report = Report::new("t", "");
        Schema::compile(json, Role::Arguments, &Spans::all_at(At::default()), &mut report).unwrap()
    }

    fn pairs(pairs: &[&str]) -> Result<Value, Vec<String>> {
        let pairs: Vec<String> = pairs.iter().map(|pair| (*pair).to_owned()).collect();
        read(&schema(), None, &pairs).map_err(|all| all.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn values_are_read_by_the_type_that_is_wanted() {
        let value = pairs(&[
            "text=7",
            "count=7",
            "ratio=1.5",
            "deep=true",
            "tags=a",
            "tags=b=c",
            "sizes=[1,2]",
            "filter={\"a\":[1]}",
            "either=null",
            "any=7",
        ]);
        let expected = json!({"text": "7", "count": 7, "ratio": 1.5, "deep": true, "tags": ["a", "b=c"],
            "sizes": [1, 2], "filter": {"a": [1]}, "either": null, "any": "7"});
        assert_eq!(value, Ok(expected));
        assert_eq!(
            pairs(&["any:=[7]", "sizes=3", "text="]),
            Ok(json!({"any": [7], "sizes": [3], "text": "", "deep": false}))
        );
    }

    #[test]
    fn what_does_not_fit_is_said_of_each() {
        let cases: &[(&[&str], &str)] = &[
            (&["cuont=1"], "/cuont is not an argument of this tool; did you mean `count`?"),
            (
                &["zzzzzz=1"],
                "/zzzzzz is not an argument of this tool; it takes: text, count, ratio, deep, tags, sizes, filter, either, any",
            ),
            (&["count=x"], "/count is not an integer"),
            (&["deep=yes"], "/deep is not a boolean"),
            (&["filter=x"], "/filter is not an object; write JSON: `filter={\"key\": \"value\"}`"),
            (&["text"], "/text has no value; write `text=VALUE`, or `text:=JSON`"),
            (
                &["any:={\"a\":1,\"a\":2}"],
                "/any is not JSON: line 1, column 10: the key \"a\" is there twice",
            ),
            (&["text=a", "text=b"], "/text is given twice"),
        ];
        for (given, expected) in cases {
            assert_eq!(pairs(given), Err(vec![(*expected).to_owned()]), "{given:?}");
        }
    }

    #[test]
    fn json_and_pairs_go_together_but_never_over_each_other() {
        let both = |whole: &str, pair: &str| read(&schema(), Some(whole), &[pair.to_owned()]);
        assert_eq!(
            both(r#"{"text":"a"}"#, "count=1"),
            Ok(json!({"text": "a", "count": 1, "deep": false}))
        );
        assert!(
            both(r#"{"text":"a"}"#, "text=b").is_err()
                && both(r#"{"tags":["a"]}"#, "tags=b").is_err()
        );
        assert!(both("[]", "text=b").is_err());
        for whole in ["", "{", r#"{"text":"a","text":"b"}"#, "7", "null"] {
            assert!(read(&schema(), Some(whole), &[]).is_err(), "{whole}");
        }
    }
}
