//! References inside a schema.

use serde_json::Value;

/// Longest chain of references that is followed where only one answer is needed.
const MAX_CHAIN: usize = 32;

/// What `#` or `#/pointer` leads to; `None` for everything else.
pub(super) fn target<'s>(root: &'s Value, reference: &str) -> Option<&'s Value> {
    let fragment = reference.strip_prefix('#')?;
    root.pointer(&decoded(fragment)?)
}

/// The schema that a chain of plain references ends at, or the last one that can be reached.
pub(super) fn followed<'s>(root: &'s Value, schema: &'s Value) -> &'s Value {
    let mut schema = schema;
    for _ in 0..MAX_CHAIN {
        let next = schema.get("$ref").and_then(Value::as_str);
        match next.and_then(|reference| target(root, reference)) {
            Some(next) => schema = next,
            None => break,
        }
    }
    schema
}

/// A fragment without its percent signs.
fn decoded(fragment: &str) -> Option<String> {
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
        assert_eq!(followed(&root, &json!({"$ref": "#/$defs/c"})), &json!({"type": "string"}));
        for text in ["", "x", "http://a/#", "#a", "#/%", "#/%zz", "#/none", "/etc/passwd"] {
            assert_eq!(target(&root, text), None, "{text}");
        }
    }

    #[test]
    fn a_circle_of_references_ends() {
        let root = json!({"a": {"$ref": "#/b"}, "b": {"$ref": "#/a"}});
        assert!(followed(&root, &root["a"]).get("$ref").is_some());
    }
}
