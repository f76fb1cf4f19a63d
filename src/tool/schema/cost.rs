//! How much work a value makes, counted before it is done.
//!
//! A checker visits pairs of a schema and a value. Alternatives in alternatives visit the same pair
//! again and again; here each pair is counted once and its count reused, so that counting is cheap
//! where checking would not be. The count is never less than the visits of one full pass.

use std::collections::HashMap;

use serde_json::Value;

use super::keywords::{About, held};
use super::references::target;

/// Most visits of one check. Real arguments need some hundreds.
const MAX_VISITS: u64 = 200_000;
/// Longest way from the root: the checker recurses as deep.
const MAX_WAY: usize = 512;

/// Whether checking the value stays within bounds.
pub(super) fn is_affordable(root: &Value, value: &Value) -> bool {
    let mut count = Count { root, seen: HashMap::new(), deep: false };
    let visits = count.visits(root, value, 0);
    !count.deep && visits <= MAX_VISITS
}

struct Count<'s> {
    root: &'s Value,
    /// Visits of each pair by the addresses of its halves; `None` while it is being counted.
    seen: HashMap<(usize, usize), Option<u64>>,
    deep: bool,
}

impl<'s> Count<'s> {
    fn visits(&mut self, schema: &'s Value, value: &Value, way: usize) -> u64 {
        let Value::Object(map) = schema else { return 1 };
        if way > MAX_WAY || self.deep || self.seen.len() as u64 > MAX_VISITS {
            self.deep = true;
            return 1;
        }
        let pair = (std::ptr::from_ref(schema).addr(), std::ptr::from_ref(value).addr());
        match self.seen.get(&pair) {
            Some(Some(known)) => return *known,
            // The checker stops at a circle too.
            Some(None) => return 1,
            None => self.seen.insert(pair, None),
        };
        let mut visits: u64 = 1;
        if let Some(next) = map.get("$ref").and_then(Value::as_str)
            && let Some(next) = target(self.root, next)
        {
            visits = visits.saturating_add(self.visits(next, value, way + 1));
        }
        for (pointer, inner, key, about) in held(map, "") {
            match about {
                About::Same => {
                    visits = visits.saturating_add(self.visits(inner, value, way + 1));
                }
                About::Part => {
                    for part in parts(map, key, &pointer, value) {
                        visits = visits.saturating_add(self.visits(inner, part, way + 1));
                    }
                }
                About::Kept => {}
            }
        }
        self.seen.insert(pair, Some(visits));
        visits
    }
}

/// The parts of a value that a schema under `key` may be about; rather too many than too few.
fn parts<'v>(
    schema: &serde_json::Map<String, Value>,
    key: &str,
    pointer: &str,
    value: &'v Value,
) -> Vec<&'v Value> {
    let last = || pointer.rsplit('/').next().unwrap_or_default();
    match (key, value) {
        ("properties", Value::Object(map)) => {
            map.get(&last().replace("~1", "/").replace("~0", "~")).into_iter().collect()
        }
        ("additionalProperties", Value::Object(map)) => {
            let named = schema.get("properties").and_then(Value::as_object);
            let other = |name: &String| named.is_none_or(|named| !named.contains_key(name));
            map.iter().filter(|(name, _)| other(name)).map(|(_, part)| part).collect()
        }
        ("patternProperties" | "unevaluatedProperties" | "propertyNames", Value::Object(map)) => {
            map.values().collect()
        }
        ("prefixItems", Value::Array(items)) => {
            last().parse().ok().and_then(|at: usize| items.get(at)).into_iter().collect()
        }
        ("items" | "contains" | "unevaluatedItems", Value::Array(items)) => items.iter().collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
}
