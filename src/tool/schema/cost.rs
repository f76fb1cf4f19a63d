//! How much work a value makes, counted before it is done.
//!
//! A checker visits pairs of a schema and a value. Alternatives in alternatives visit the same pair
//! again and again; here each pair is counted once and its count reused, so that counting is cheap
//! where checking would not be. The count is never less than the visits of one full pass.
//!
//! A visit looks names up, too: a schema with thousands of properties takes as many lookups in an
//! empty object. Those are counted in the same measure, and so is every turn of a loop in here: the
//! counting itself ends where the bound does.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::keywords::{About, HOLDERS, Shape};
use super::references::{References, address};

/// Most visits of one check. Real arguments need some hundreds.
const MAX_VISITS: u64 = 200_000;
/// What a visit costs, in lookups of a name: it asks for every keyword and remembers its pair.
const VISIT: u64 = 64;
/// Most work of one check, in lookups: all visits, or millions of lookups in fewer of them.
const MAX_WORK: u64 = MAX_VISITS * VISIT;
/// Bytes of a name that are hashed at the price of one lookup.
const NAME_BYTES: usize = 64;
/// Longest way from the root: the checker recurses as deep.
const MAX_WAY: usize = 512;

/// Whether checking the value stays within bounds.
pub(super) fn is_affordable(references: &References<'_>, value: &Value) -> bool {
    Count::new(references).work(references.root, value, 0).is_some()
}

struct Count<'s> {
    references: &'s References<'s>,
    /// Work of each pair by the addresses of its halves; `None` while it is being counted.
    seen: HashMap<(usize, usize), Option<u64>>,
    /// Lookups of each schema by its address, so that its names are gone through once.
    lookups: HashMap<usize, Lookups>,
    /// What was counted for the first time. Never more than the work of the root, hence its bound.
    spent: u64,
}

/// The lookups of one visit that come from the schema, whatever the value holds.
#[derive(Clone, Copy)]
struct Lookups {
    in_any: u64,
    in_object: u64,
}

impl<'s> Count<'s> {
    fn new(references: &'s References<'s>) -> Self {
        Self { references, seen: HashMap::new(), lookups: HashMap::new(), spent: 0 }
    }

    /// The work of one pair; `None` once it is beyond the bound.
    fn work(&mut self, schema: &'s Value, value: &Value, way: usize) -> Option<u64> {
        self.spend(VISIT)?;
        let Value::Object(map) = schema else { return Some(VISIT) };
        if way > MAX_WAY {
            return None;
        }
        let pair = (address(schema), address(value));
        match self.seen.get(&pair) {
            Some(Some(known)) => return Some(*known),
            // The checker stops at a circle too.
            Some(None) => return Some(VISIT),
            None => self.seen.insert(pair, None),
        };
        let lookups = *self.lookups.entry(pair.0).or_insert_with(|| lookups(map));
        let mut total = VISIT;
        self.charge(&mut total, lookups.in_any)?;
        if value.is_object() {
            self.charge(&mut total, lookups.in_object)?;
        }
        if let Some(next) = self.references.target(schema) {
            add(&mut total, self.work(next, value, way + 1)?)?;
        }
        // One of them is chosen, and which is known only on the way.
        let mut most = 0;
        for next in self.references.dynamic(schema) {
            most = self.work(next, value, way + 1)?.max(most);
        }
        add(&mut total, most)?;
        for (key, shape, about) in HOLDERS {
            let Some(held) = map.get(*key) else { continue };
            match (about, shape, held) {
                (About::Same, Shape::List, Value::Array(all)) => {
                    for inner in all {
                        add(&mut total, self.work(inner, value, way + 1)?)?;
                    }
                }
                (About::Same, Shape::Map, Value::Object(all)) => {
                    for inner in all.values() {
                        add(&mut total, self.work(inner, value, way + 1)?)?;
                    }
                }
                (About::Same, Shape::One, inner) => {
                    add(&mut total, self.work(inner, value, way + 1)?)?;
                }
                (About::Part, ..) => {
                    add(&mut total, self.parts(map, key, held, value, way + 1)?)?;
                }
                // What has another form is refused by the schema of schemas.
                (About::Same, Shape::List | Shape::Map, _) | (About::Kept, ..) => {}
            }
        }
        self.seen.insert(pair, Some(total));
        Some(total)
    }

    /// The work of what is `held` under `key` with the parts it may be about; rather too much than too little.
    fn parts(
        &mut self,
        schema: &Map<String, Value>,
        key: &str,
        held: &'s Value,
        value: &Value,
        way: usize,
    ) -> Option<u64> {
        let mut total = 0;
        match (key, held, value) {
            ("properties", Value::Object(named), Value::Object(given))
                if given.len() <= named.len() =>
            {
                for (name, part) in given {
                    self.charge(&mut total, lookup(name))?;
                    if let Some(inner) = named.get(name) {
                        add(&mut total, self.work(inner, part, way)?)?;
                    }
                }
            }
            // Every turn of this one is in the lookups of the schema.
            ("properties", Value::Object(named), Value::Object(given)) => {
                for (name, inner) in named {
                    if let Some(part) = given.get(name) {
                        add(&mut total, self.work(inner, part, way)?)?;
                    }
                }
            }
            ("patternProperties", Value::Object(named), Value::Object(given)) => {
                for inner in named.values() {
                    self.charge(&mut total, 1)?;
                    for part in given.values() {
                        add(&mut total, self.work(inner, part, way)?)?;
                    }
                }
            }
            ("additionalProperties", inner, Value::Object(given)) => {
                let named = schema.get("properties").and_then(Value::as_object);
                for (name, part) in given {
                    self.charge(&mut total, lookup(name))?;
                    if named.is_none_or(|named| !named.contains_key(name)) {
                        add(&mut total, self.work(inner, part, way)?)?;
                    }
                }
            }
            ("unevaluatedProperties" | "propertyNames", inner, Value::Object(given)) => {
                for part in given.values() {
                    add(&mut total, self.work(inner, part, way)?)?;
                }
            }
            ("prefixItems", Value::Array(first), Value::Array(items)) => {
                for (inner, part) in first.iter().zip(items) {
                    add(&mut total, self.work(inner, part, way)?)?;
                }
            }
            ("items" | "contains" | "unevaluatedItems", inner, Value::Array(items)) => {
                for part in items {
                    add(&mut total, self.work(inner, part, way)?)?;
                }
            }
            _ => {}
        }
        Some(total)
    }

    /// Counts work that is met for the first time, and adds it up.
    fn charge(&mut self, total: &mut u64, work: u64) -> Option<()> {
        self.spend(work)?;
        add(total, work)
    }

    fn spend(&mut self, work: u64) -> Option<()> {
        add(&mut self.spent, work)
    }
}

fn add(total: &mut u64, work: u64) -> Option<()> {
    *total = total.saturating_add(work);
    (*total <= MAX_WORK).then_some(())
}

/// What it costs to look a name up.
fn lookup(name: &str) -> u64 {
    1 + (name.len() / NAME_BYTES) as u64
}

fn lookups(schema: &Map<String, Value>) -> Lookups {
    let list = |key: &str| schema.get(key).and_then(Value::as_array).into_iter().flatten();
    let named = |key: &str| schema.get(key).and_then(Value::as_object).into_iter().flatten();
    let in_list = |value: &Value| -> u64 {
        let names = value.as_array().into_iter().flatten();
        names.map(|name| name.as_str().map_or(1, lookup)).sum()
    };
    let reference = schema.get("$ref").and_then(Value::as_str).map_or(0, lookup);
    Lookups {
        in_any: reference + list("enum").count() as u64,
        in_object: schema.get("required").map_or(0, in_list)
            + named("properties").map(|(name, _)| lookup(name)).sum::<u64>()
            + named("dependentSchemas").map(|(name, _)| lookup(name)).sum::<u64>()
            + named("dependentRequired").map(|(name, of)| lookup(name) + in_list(of)).sum::<u64>(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn is_affordable(schema: &Value, value: &Value) -> bool {
        super::is_affordable(&References::new(schema, &[]), value)
    }

    #[test]
    fn alternatives_that_double_are_counted_and_not_walked() {
        // Each level asks the next one twice: 2^40 visits, 40 pairs.
        let mut defs = serde_json::Map::new();
        for at in 0..40 {
            let next = json!({"$ref": format!("#/$defs/d{}", at + 1)});
            defs.insert(format!("d{at}"), json!({"anyOf": [next, next]}));
        }
        defs.insert("d40".to_owned(), json!({"type": "string"}));
        let schema = json!({"$defs": defs, "$ref": "#/$defs/d0"});
        assert!(!is_affordable(&schema, &json!(1)));
        assert!(is_affordable(&schema["$defs"]["d40"], &json!(1)));
    }

    #[test]
    fn a_tree_of_ordinary_size_is_affordable() {
        let schema = json!({"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#"}}}});
        let mut value = json!({"children": []});
        for _ in 0..20 {
            value = json!({"children": [value, {"children": []}]});
        }
        assert!(is_affordable(&schema, &value));
    }

    #[test]
    fn a_circle_ends() {
        assert!(is_affordable(&json!({"$ref": "#"}), &json!(1)));
        assert!(is_affordable(&json!({"allOf": [{"$ref": "#"}, {"$ref": "#"}]}), &json!(1)));
    }

    /// An array of objects with that many properties, and what was counted for that many `{}`.
    fn counted(schema: &Value, items: usize) -> (Option<u64>, u64) {
        let value = Value::Array(vec![json!({}); items]);
        let references = References::new(schema, &[]);
        let mut count = Count::new(&references);
        (count.work(schema, &value, 0), count.spent)
    }

    #[test]
    fn many_properties_of_many_objects_are_refused_as_soon_as_the_bound_is_met() {
        let properties: Map<_, _> = (0..4_000).map(|at| (format!("p{at}"), json!({}))).collect();
        let schema = json!({"items": {"properties": properties}});
        let (work, spent) = counted(&schema, 98_000);
        assert_eq!(work, None);
        assert!(spent <= MAX_WORK + VISIT + 4_000, "{spent}");
        // The same schema with fewer items, and as many items with fewer properties.
        assert_eq!(counted(&schema, 1_000).0, Some(VISIT + 1_000 * (VISIT + 4_000)));
        let few = json!({"items": {"properties": {"a": {}, "b": {}}}});
        assert_eq!(counted(&few, 98_000).0, Some(VISIT + 98_000 * (VISIT + 2)));
    }

    #[test]
    fn every_list_that_a_visit_goes_through_is_counted() {
        let names: Vec<_> = (0..4_000).map(|at| format!("p{at}")).collect();
        let lists = [
            json!({"allOf": vec![true; 4_000]}),
            json!({"enum": names}),
            json!({"required": names}),
            json!({"dependentRequired": {"a": names}}),
            json!({"properties": {"x".repeat(4_000 * NAME_BYTES): true}}),
        ];
        for list in lists {
            let schema = json!({ "items": list });
            let (work, spent) = counted(&schema, 98_000);
            assert!(work.is_none() && spent <= MAX_WORK + VISIT + 8_000, "{spent}");
            assert!(counted(&schema, 20).0.is_some());
        }
    }

    #[test]
    fn properties_are_found_from_either_side() {
        let schema = json!({"properties": {"a": {"properties": {"b": {}}}, "c": {}}});
        let references = References::new(&schema, &[]);
        let inner = |given: Value| Count::new(&references).work(&schema, &given, 0);
        // Fewer names than properties: by the value's names; more of them: by the schema's.
        assert_eq!(inner(json!({"a": {}})), Some(2 * VISIT + 4));
        assert_eq!(inner(json!({"a": {"b": 1}, "x": 1, "y": 1})), Some(3 * VISIT + 4));
    }
}
