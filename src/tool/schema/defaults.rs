//! Filling in defaults: what a caller leaves out and the schema gives.
//!
//! Followed are `properties`, `items`, `prefixItems`, `additionalProperties`, `allOf` and references.
//! Alternatives (`anyOf`, `oneOf`, `if`) are not: which of them holds is known only after the check.
//!
//! A default is copied for every object that lacks it, so a small schema and a small value can ask
//! for a huge whole. Each copy is paid for before it is made, each turn of a loop takes a step.

use std::collections::HashMap;
use std::io;
use std::rc::Rc;

use serde::Serialize;
use serde_json::{Map, Value};

use super::references::{References, address};
use crate::json;

/// Most steps of one filling: a schema can give a default whose own parts have defaults, without end.
/// Enough to go to each value that can be read, and to look there for a default.
const MAX_STEPS: usize = 2 * json::MAX_VALUES;

/// Why defaults are not filled in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unfilled {
    /// Defaults in defaults, or more places to look at than steps.
    Endless,
    /// The whole would be larger than what is read from outside.
    TooLarge,
}

impl Unfilled {
    /// What is said of the value.
    pub(super) fn message(self) -> &'static str {
        match self {
            Self::Endless => {
                "has defaults in defaults without an end, or takes too many steps to fill them in"
            }
            Self::TooLarge => "is too large once its defaults are filled in",
        }
    }
}

/// Fills defaults in.
///
/// # Errors
/// There is no end to them, or the whole would be too large.
pub(super) fn fill(references: &References<'_>, value: &mut Value) -> Result<(), Unfilled> {
    let mut filling = Filling::new(references, value);
    filling.walk(references.root, value, 0)
}

/// One filling and what is left of its budget.
struct Filling<'s> {
    references: &'s References<'s>,
    steps: usize,
    values: usize,
    bytes: usize,
    /// Where the references of each schema end, by its address.
    ends: HashMap<usize, &'s Value>,
    /// The defaults that each schema gives its properties, by its address.
    defaults: HashMap<usize, Defaults<'s>>,
}

/// Names and their defaults. Properties without one are gone through once, not for every object.
type Defaults<'s> = Rc<[(&'s String, &'s Value)]>;

impl<'s> Filling<'s> {
    /// A budget for the whole: what the value takes by itself is taken off.
    fn new(references: &'s References<'s>, value: &Value) -> Self {
        Self {
            references,
            steps: MAX_STEPS,
            values: json::MAX_VALUES.saturating_sub(count(value)),
            bytes: json::MAX_BYTES.saturating_sub(size(value)),
            ends: HashMap::new(),
            defaults: HashMap::new(),
        }
    }

    fn walk(&mut self, schema: &'s Value, value: &mut Value, depth: usize) -> Result<(), Unfilled> {
        if depth > 2 * json::MAX_DEPTH {
            return Err(Unfilled::Endless);
        }
        self.step()?;
        let schema = self.end(schema);
        for part in schema.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            self.walk(part, value, depth + 1)?;
        }
        match value {
            Value::Object(map) => self.object(schema, map, depth),
            Value::Array(items) => {
                let first = schema.get("prefixItems").and_then(Value::as_array);
                let first = first.map(Vec::as_slice).unwrap_or_default();
                let rest = schema.get("items").filter(|it| it.is_object());
                // Without `items` nothing is said of what comes after the first ones.
                let said = if rest.is_some() { items.len() } else { first.len() };
                for (at, inner) in items.iter_mut().enumerate().take(said) {
                    if let Some(part) = first.get(at).or(rest) {
                        self.walk(part, inner, depth + 1)?;
                    }
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn object(
        &mut self,
        schema: &'s Value,
        map: &mut Map<String, Value>,
        depth: usize,
    ) -> Result<(), Unfilled> {
        let named = schema.get("properties").and_then(Value::as_object);
        let other = schema.get("additionalProperties").filter(|it| it.is_object());
        if let Some(named) = named {
            for (name, default) in self.defaults(schema, named)?.iter() {
                self.step()?;
                if !map.contains_key(*name) {
                    self.pay(name, default)?;
                    map.insert((*name).clone(), (*default).clone());
                }
            }
        }
        if named.is_none() && other.is_none() {
            return Ok(());
        }
        for (name, inner) in map.iter_mut() {
            match named.and_then(|named| named.get(name)).or(other) {
                Some(part) => self.walk(part, inner, depth + 1)?,
                None => self.step()?,
            }
        }
        Ok(())
    }

    /// Where the references of a schema end.
    fn end(&mut self, schema: &'s Value) -> &'s Value {
        let references = self.references;
        self.ends.entry(address(schema)).or_insert_with(|| references.followed(schema))
    }

    /// The defaults of the `named` properties of a schema.
    fn defaults(
        &mut self,
        schema: &'s Value,
        named: &'s Map<String, Value>,
    ) -> Result<Defaults<'s>, Unfilled> {
        if let Some(known) = self.defaults.get(&address(schema)) {
            return Ok(Rc::clone(known));
        }
        let mut found = Vec::new();
        for (name, property) in named {
            self.step()?;
            // Beside its reference, or where the reference leads.
            let own = property.get("default");
            if let Some(default) = own.or_else(|| self.end(property).get("default")) {
                found.push((name, default));
            }
        }
        let found: Defaults<'s> = found.into();
        self.defaults.insert(address(schema), Rc::clone(&found));
        Ok(found)
    }

    fn step(&mut self) -> Result<(), Unfilled> {
        self.steps = self.steps.checked_sub(1).ok_or(Unfilled::Endless)?;
        Ok(())
    }

    /// Takes what one default adds off the budget, before it is copied.
    fn pay(&mut self, name: &str, default: &Value) -> Result<(), Unfilled> {
        // With the colon and the comma beside it.
        let bytes = size(name).saturating_add(size(default)).saturating_add(2);
        let values = self.values.checked_sub(count(default));
        let bytes = self.bytes.checked_sub(bytes);
        (self.values, self.bytes) = values.zip(bytes).ok_or(Unfilled::TooLarge)?;
        Ok(())
    }
}

/// How many values one is, with all inside it.
fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(map) => map.values().map(count).sum(),
        _ => 0,
    }
}

/// How many bytes something takes as JSON. Nothing is kept of the text.
fn size<T: Serialize + ?Sized>(value: &T) -> usize {
    let mut text = Length(0);
    serde_json::to_writer(&mut text, value).map_or(usize::MAX, |()| text.0)
}

struct Length(usize);

impl io::Write for Length {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.saturating_add(bytes.len());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn filled(schema: &Value, mut value: Value) -> Option<Value> {
        fill(&References::new(schema, &[]), &mut value).ok().map(|()| value)
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

    /// An array of that many `{}`.
    fn empty(items: usize) -> Value {
        Value::Array(vec![json!({}); items])
    }

    #[test]
    fn large_defaults_of_many_objects_are_refused_before_they_are_copied() {
        let schema = json!({"items": {"properties": {"x": {"default": "y".repeat(900 << 10)}}}});
        let mut value = empty(45_000);
        let references = References::new(&schema, &[]);
        let mut filling = Filling::new(&references, &value);
        assert_eq!(filling.walk(&schema, &mut value, 0), Err(Unfilled::TooLarge));
        // The fifth one would be too much. Each was charged with a comma that it does not need.
        assert_eq!(size(&value) + filling.bytes + 4, json::MAX_BYTES);
        let copies = value.as_array().unwrap().iter().filter(|item| item.get("x").is_some());
        assert_eq!(copies.count(), 4);
        // Few objects, and many of them with a small default.
        assert!(filled(&schema, empty(4)).is_some());
        let small = json!({"items": {"properties": {"x": {"default": "y"}}}});
        let whole = filled(&small, empty(45_000)).unwrap();
        assert_eq!(whole[44_999], json!({"x": "y"}));
    }

    #[test]
    fn defaults_of_many_values_are_refused() {
        let schema =
            |values: usize| json!({"items": {"properties": {"x": {"default": vec![0; values]}}}});
        // 1 + n objects, and n arrays of zeros.
        let fits = json::MAX_VALUES / 1_000 - 1;
        assert!(filled(&schema(998), empty(fits)).is_some());
        let mut value = empty(fits + 2);
        assert_eq!(fill(&References::new(&schema(998), &[]), &mut value), Err(Unfilled::TooLarge));
        assert!(count(&value) <= json::MAX_VALUES);
        // What is large by itself and gets nothing is not refused here.
        assert!(filled(&schema(998), json!(vec![json!({"x": 1}); 90_000])).is_some());
    }

    #[test]
    fn properties_without_a_default_cost_nothing_per_object() {
        let mut properties: Map<_, _> =
            (0..4_000).map(|at| (format!("p{at}"), json!({"type": "string"}))).collect();
        let schema = json!({"items": {"properties": properties}});
        let mut value = empty(98_000);
        let references = References::new(&schema, &[]);
        let mut filling = Filling::new(&references, &value);
        assert_eq!(filling.walk(&schema, &mut value, 0), Ok(()));
        assert_eq!(MAX_STEPS - filling.steps, 1 + 98_000 + 4_000);
        // With defaults there is work for each object, and its end.
        properties.values_mut().for_each(|property| property["default"] = json!(""));
        let schema = json!({"items": {"properties": properties}});
        assert_eq!(fill(&References::new(&schema, &[]), &mut value), Err(Unfilled::TooLarge));
        assert!(filled(&schema, empty(20)).is_some());
        // Nothing to insert, but every default of every object to look for.
        let full = filled(&schema, empty(1)).unwrap()[0].take();
        let again = vec![json!({"$ref": "#/items"}); 60];
        let all = json!({"allOf": again, "items": schema["items"]});
        let mut value = full.clone();
        assert_eq!(fill(&References::new(&all, &[]), &mut value), Err(Unfilled::Endless));
        assert!(filled(&schema, json!([full])).is_some());
    }
}
