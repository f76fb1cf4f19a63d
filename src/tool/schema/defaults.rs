//! Filling in defaults: what a caller leaves out and the schema gives.
//!
//! Followed are `properties`, `items`, `prefixItems`, `additionalProperties`, `allOf` and references.
//! Alternatives (`anyOf`, `oneOf`, `if`) are not: which of them holds is known only after the check.

use serde_json::Value;

use super::references::followed;
use crate::tool::json;

/// Most steps of one filling: a schema can give a default whose own parts have defaults, without end.
const MAX_STEPS: usize = 100_000;

/// Fills defaults in; `false` if there is no end to them.
pub(super) fn fill(root: &Value, value: &mut Value) -> bool {
    let mut steps = MAX_STEPS;
    walk(root, root, value, 0, &mut steps)
}

fn walk(root: &Value, schema: &Value, value: &mut Value, depth: usize, steps: &mut usize) -> bool {
    if *steps == 0 || depth > 2 * json::MAX_DEPTH {
        return false;
    }
    *steps -= 1;
    let schema = followed(root, schema);
    if let Some(all) = schema.get("allOf").and_then(Value::as_array)
        && !all.iter().all(|part| walk(root, part, value, depth + 1, steps))
    {
        return false;
    }
    match value {
        Value::Object(map) => {
            let named = schema.get("properties").and_then(Value::as_object);
            for (name, property) in named.into_iter().flatten() {
                if !map.contains_key(name)
                    && let Some(default) = default_of(root, property)
                {
                    map.insert(name.clone(), default.clone());
                }
                if let Some(inner) = map.get_mut(name)
                    && !walk(root, property, inner, depth + 1, steps)
                {
                    return false;
                }
            }
            if let Some(other) = schema.get("additionalProperties").filter(|it| it.is_object()) {
                for (name, inner) in map.iter_mut() {
                    let is_named = named.is_some_and(|named| named.contains_key(name));
                    if !is_named && !walk(root, other, inner, depth + 1, steps) {
                        return false;
                    }
                }
            }
            true
        }
        Value::Array(items) => {
            let first = schema.get("prefixItems").and_then(Value::as_array);
            let first = first.map(Vec::as_slice).unwrap_or_default();
            let rest = schema.get("items").filter(|it| it.is_object());
            items.iter_mut().enumerate().all(|(at, inner)| {
                first.get(at).or(rest).is_none_or(|part| walk(root, part, inner, depth + 1, steps))
            })
        }
        _ => true,
    }
}

/// The default of a property: beside its reference, or where the reference leads.
fn default_of<'s>(root: &'s Value, property: &'s Value) -> Option<&'s Value> {
    property.get("default").or_else(|| followed(root, property).get("default"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn filled(schema: &Value, mut value: Value) -> Option<Value> {
        fill(schema, &mut value).then_some(value)
    }

    #[test]
    fn defaults_are_filled_in_where_nothing_was_said() {
        let schema = json!({
            "properties": {
                "a": {"default": 1},
                "b": {"properties": {"c": {"default": "x"}}},
                "d": {"default": {}, "properties": {"e": {"default": [true]}}},
                "f": {"items": {"properties": {"g": {"default": null}}}},
                "h": {"$ref": "#/$defs/h"},
                "i": {}
            },
            "allOf": [{"properties": {"j": {"default": 2}}}],
            "additionalProperties": {"properties": {"k": {"default": 3}}},
            "$defs": {"h": {"default": "ref"}}
        });
        let given = json!({"a": 7, "b": {}, "f": [{}, {"g": 1}, 5], "other": {}});
        let expected = json!({
            "a": 7, "b": {"c": "x"}, "d": {"e": [true]}, "f": [{"g": null}, {"g": 1}, 5],
            "h": "ref", "j": 2, "other": {"k": 3}
        });
        assert_eq!(filled(&schema, given), Some(expected));
    }

    #[test]
    fn defaults_without_an_end_are_refused() {
        let one = json!({"properties": {"a": {"$ref": "#", "default": {}}}});
        let two = json!({"properties": {
            "a": {"$ref": "#", "default": {}}, "b": {"$ref": "#", "default": {}}
        }});
        assert_eq!(filled(&one, json!({})), None);
        assert_eq!(filled(&two, json!({})), None);
        assert_eq!(filled(&json!({"allOf": [{"$ref": "#"}]}), json!({})), None);
    }
}
