//! References inside a schema.

use std::collections::HashMap;

use serde_json::Value;

use super::names::{Link, Place};

/// Longest chain of references that is followed where only one answer is needed.
const MAX_CHAIN: usize = 32;

/// What `#` or `#/pointer` leads to; `None` for everything else.
pub(super) fn target<'s>(root: &'s Value, reference: &str) -> Option<&'s Value> {
    let fragment = reference.strip_prefix('#')?;
    root.pointer(&decoded(fragment)?)
}

/// The references of a schema, ready to be followed.
pub(super) struct References<'s> {
    pub root: &'s Value,
    /// Targets of `$ref` and `$dynamicRef` that are no pointers from the root, by the address of the schema.
    named: HashMap<usize, (Option<&'s Value>, Vec<&'s Value>)>,
}

impl<'s> References<'s> {
    /// Of a schema, with the links that were found in it.
    pub(super) fn new(root: &'s Value, links: &[Link]) -> Self {
        let named = links.iter().filter_map(|link| {
            let find = |place: &Place| place.find(root);
            let to = link.to.as_ref().and_then(find);
            Some((address(find(&link.from)?), (to, link.dynamic.iter().filter_map(find).collect())))
        });
        Self { root, named: named.collect() }
    }

    /// Where the `$ref` of a schema leads.
    pub(super) fn target(&self, schema: &Value) -> Option<&'s Value> {
        let reference = schema.get("$ref").and_then(Value::as_str)?;
        match self.named.get(&address(schema)) {
            Some((Some(to), _)) => Some(to),
            _ => target(self.root, reference),
        }
    }

    /// Where the `$dynamicRef` of a schema may lead.
    pub(super) fn dynamic(&self, schema: &Value) -> Vec<&'s Value> {
        self.named.get(&address(schema)).map(|(_, to)| to.clone()).unwrap_or_default()
    }

    /// The schema that a chain of references ends at, or the last one that can be reached.
    pub(super) fn followed(&self, schema: &'s Value) -> &'s Value {
        let mut schema = schema;
        for _ in 0..MAX_CHAIN {
            match self.target(schema) {
                Some(next) => schema = next,
                None => break,
            }
        }
        schema
    }
}

/// What tells schemas apart while they stay where they are.
pub(super) fn address(schema: &Value) -> usize {
    std::ptr::from_ref(schema).addr()
}

/// A fragment without its percent signs.
pub(super) fn decoded(fragment: &str) -> Option<String> {
    if !fragment.contains('%') {
        return Some(fragment.to_owned());
    }
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let pair = [rest.next()?, rest.next()?];
            let text = str::from_utf8(&pair).ok()?;
            bytes.push(u8::from_str_radix(text, 16).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn references_stay_inside() {
        let root = json!({"$defs": {"a b": {"type": "string"}, "c": {"$ref": "#/$defs/a%20b"}}});
        assert_eq!(target(&root, "#"), Some(&root));
        let references = References::new(&root, &[]);
        let c = json!({"$ref": "#/$defs/c"});
        assert_eq!(references.followed(&c), &json!({"type": "string"}));
        for text in ["", "x", "http://a/#", "#a", "#/%", "#/%zz", "#/none", "/etc/passwd"] {
            assert_eq!(target(&root, text), None, "{text}");
        }
    }

    #[test]
    fn a_circle_of_references_ends() {
        let root = json!({"a": {"$ref": "#/b"}, "b": {"$ref": "#/a"}});
        let references = References::new(&root, &[]);
        assert!(references.followed(&root["a"]).get("$ref").is_some());
    }
}
