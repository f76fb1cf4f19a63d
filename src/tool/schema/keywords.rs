//! The keywords of JSON Schema 2020-12, and which of them hold further schemas.

use serde_json::{Map, Value};

use super::spans::step;

/// How a keyword holds schemas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// One.
    One,
    /// A list of them.
    List,
    /// Some by name.
    Map,
}

/// Which value a held schema is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum About {
    /// The same value.
    Same,
    /// A part of it.
    Part,
    /// Nothing by itself; references lead there.
    Kept,
}

/// The keywords that hold schemas.
pub(super) const HOLDERS: &[(&str, Shape, About)] = &[
    ("allOf", Shape::List, About::Same),
    ("anyOf", Shape::List, About::Same),
    ("oneOf", Shape::List, About::Same),
    ("not", Shape::One, About::Same),
    ("if", Shape::One, About::Same),
    ("then", Shape::One, About::Same),
    ("else", Shape::One, About::Same),
    ("dependentSchemas", Shape::Map, About::Same),
    ("properties", Shape::Map, About::Part),
    ("patternProperties", Shape::Map, About::Part),
    ("additionalProperties", Shape::One, About::Part),
    ("unevaluatedProperties", Shape::One, About::Part),
    ("propertyNames", Shape::One, About::Part),
    ("prefixItems", Shape::List, About::Part),
    ("items", Shape::One, About::Part),
    ("contains", Shape::One, About::Part),
    ("unevaluatedItems", Shape::One, About::Part),
    ("contentSchema", Shape::One, About::Kept),
    ("$defs", Shape::Map, About::Kept),
    ("definitions", Shape::Map, About::Kept),
];

/// The other keywords, and what other formats add that does no harm.
pub(super) const PLAIN: &[&str] = &[
    "$schema",
    "$id",
    "$ref",
    "$anchor",
    "$dynamicRef",
    "$dynamicAnchor",
    "$comment",
    "type",
    "enum",
    "const",
    "multipleOf",
    "maximum",
    "exclusiveMaximum",
    "minimum",
    "exclusiveMinimum",
    "maxLength",
    "minLength",
    "pattern",
    "maxItems",
    "minItems",
    "uniqueItems",
    "maxContains",
    "minContains",
    "maxProperties",
    "minProperties",
    "required",
    "dependentRequired",
    "format",
    "contentEncoding",
    "contentMediaType",
    "title",
    "description",
    "default",
    "deprecated",
    "readOnly",
    "writeOnly",
    "examples",
    "example",
    "id",
    "nullable",
    ASSERT_FORMAT,
];

/// At the root of a schema: whether `format` is asserted. The standard only notes it.
pub(super) const ASSERT_FORMAT: &str = "x-assert-format";

/// Every schema that one holds directly: its pointer and itself.
pub(super) fn held<'s>(schema: &'s Map<String, Value>, pointer: &str) -> Vec<(String, &'s Value)> {
    let mut found = Vec::new();
    for (key, shape, _) in HOLDERS {
        let Some(value) = schema.get(*key) else { continue };
        let here = step(pointer, key);
        match (shape, value) {
            (Shape::List, Value::Array(items)) => {
                for (at, item) in items.iter().enumerate() {
                    found.push((step(&here, &at.to_string()), item));
                }
            }
            (Shape::Map, Value::Object(items)) => {
                for (name, item) in items {
                    found.push((step(&here, name), item));
                }
            }
            // What has another form is refused by the schema of schemas.
            (Shape::One, item) => found.push((here, item)),
            (Shape::List | Shape::Map, _) => {}
        }
    }
    found
}
