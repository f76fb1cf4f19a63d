//! What is looked at before a schema is compiled: bounds, references, patterns, misspelt keywords.
//!
//! The library would accept an unknown keyword (the standard says so) and stop at the first error.
//! Authors are better served by all findings at once, each at its place.

use std::collections::BTreeSet;

use jsonschema::Draft;
use runner_policy::finding::{Report, did_you_mean};
use serde_json::{Map, Value};

use super::keywords::{HOLDERS, PLAIN, held};
use super::references::target;
use super::spans::{Spans, step};
use super::{Role, compile, sentence};
use crate::tool::json;

/// Most schemas inside one: each is compiled.
const MAX_SCHEMAS: usize = 5_000;
/// Most patterns: each is compiled to an automaton of bounded size.
const MAX_PATTERNS: usize = 100;
/// Longest recursion that the compiler can be led into.
const MAX_DEPTH: usize = 1_000;
/// Most keywords of others' that are compared with ours; the rest is taken as it is.
const MAX_FOREIGN: usize = 200;
/// Most findings of the schema of schemas; one mistake often breaks several rules.
const MAX_ERRORS: usize = 20;

const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// Keywords that change what a reference means. Plain references do the same, visibly.
const REFUSED: &[&str] = &[
    "$anchor",
    "$dynamicAnchor",
    "$dynamicRef",
    "$recursiveRef",
    "$recursiveAnchor",
    "$vocabulary",
];

/// Looks at a schema; gives how deep the compiler may recurse. A pattern that cannot match in linear time is
/// dropped where a known `format` asserts the same, as converters write both.
pub(super) fn review(
    json: &mut Value,
    role: Role,
    spans: &Spans,
    report: &mut Report<'_>,
) -> Option<usize> {
    let mut review = Review { spans, report, clean: true, foreign: 0 };
    if !review.shape(json, role) {
        return None;
    }
    let mut schemas = Vec::new();
    if !positions(json, &mut schemas) {
        review.add("too_large", "", format!("more than {MAX_SCHEMAS} schemas in one"), None);
        return None;
    }
    let mut patterns = 0;
    let mut dropped = Vec::new();
    for (pointer, schema) in &schemas {
        review.keywords(pointer, schema);
        review.reference(json, pointer, schema);
        patterns += review.patterns(pointer, schema, &mut dropped);
    }
    if patterns > MAX_PATTERNS {
        review.add("too_large", "", format!("more than {MAX_PATTERNS} patterns"), None);
    }
    let depth = recursion(json, &schemas);
    if depth > MAX_DEPTH {
        let message = "references and schemas are nested too deep to be read".to_owned();
        review.add("too_deep", "", message, None);
    }
    if review.clean {
        // Last, because its sentences are the least helpful ones.
        let meta = jsonschema::draft202012::meta::validator();
        for error in meta.iter_errors(json).take(MAX_ERRORS) {
            let why = sentence::of_schema(&error);
            review.add("bad_schema", &error.instance_path().to_string(), why, None);
        }
    }
    let clean = review.clean;
    drop(schemas);
    for pointer in dropped {
        if let Some(Value::Object(schema)) = json.pointer_mut(&pointer) {
            schema.remove("pattern");
        }
    }
    clean.then_some(depth)
}

struct Review<'a, 't> {
    spans: &'a Spans,
    report: &'a mut Report<'t>,
    clean: bool,
    foreign: usize,
}

impl Review<'_, '_> {
    fn add(&mut self, code: &'static str, pointer: &str, message: String, help: Option<String>) {
        self.clean = false;
        self.report.add(code, self.spans.at(pointer), message, help);
    }

    fn shape(&mut self, json: &Value, role: Role) -> bool {
        let Value::Object(root) = json else {
            self.add("wrong_type", "", "a schema is a mapping".to_owned(), None);
            return false;
        };
        if !json::is_bounded(json) {
            self.add("too_large", "", "the schema is too large or too deep".to_owned(), None);
            return false;
        }
        if role == Role::Arguments && root.get("type").and_then(Value::as_str) != Some("object") {
            let help = "write `type: object` and name the arguments under `properties`".to_owned();
            let message = "the arguments of a tool are an object".to_owned();
            self.add("bad_schema", "/type", message, Some(help));
        }
        let dialect =
            root.get("$schema").and_then(Value::as_str).map(|uri| uri.trim_end_matches('#'));
        if dialect.is_some_and(|uri| uri != DIALECT) {
            let help = format!("remove `$schema`, or write `{DIALECT}`");
            let message = "schemas are read as JSON Schema 2020-12".to_owned();
            self.add("bad_schema", "/$schema", message, Some(help));
        }
        true
    }

    fn keywords(&mut self, pointer: &str, schema: &Map<String, Value>) {
        for key in schema.keys() {
            let here = step(pointer, key);
            if REFUSED.contains(&key.as_str()) || (key == "$id" && !pointer.is_empty()) {
                let help = "refer to a part by its pointer: `$ref: \"#/$defs/NAME\"`".to_owned();
                self.add(
                    "bad_reference",
                    &here,
                    format!("`{key}` is not part of this format"),
                    Some(help),
                );
                continue;
            }
            let known = || HOLDERS.iter().map(|(key, ..)| *key).chain(PLAIN.iter().copied());
            if known().any(|known| known == key) || self.foreign >= MAX_FOREIGN {
                continue;
            }
            self.foreign += 1;
            if let Some(near) = did_you_mean(key, known()) {
                let help = format!("did you mean `{near}`?");
                self.add("unknown_key", &here, format!("unknown keyword `{key}`"), Some(help));
            }
        }
    }

    fn reference(&mut self, root: &Value, pointer: &str, schema: &Map<String, Value>) {
        let Some(reference) = schema.get("$ref").and_then(Value::as_str) else { return };
        let here = step(pointer, "$ref");
        if !reference.starts_with('#') {
            let help =
                "copy what it names to `$defs` and write `$ref: \"#/$defs/NAME\"`".to_owned();
            let message = format!("`{reference}` leaves the schema; nothing is fetched");
            self.add("bad_reference", &here, message, Some(help));
        } else if target(root, reference).is_none_or(|it| !it.is_object() && !it.is_boolean()) {
            self.add("bad_reference", &here, format!("`{reference}` leads to no schema"), None);
        }
    }

    /// Checks patterns; gives how many there are.
    fn patterns(
        &mut self,
        pointer: &str,
        schema: &Map<String, Value>,
        dropped: &mut Vec<String>,
    ) -> usize {
        let mut count = 0;
        if let Some(pattern) = schema.get("pattern").and_then(Value::as_str) {
            count += 1;
            let format = schema.get("format").and_then(Value::as_str);
            let asserted = format.is_some_and(|format| {
                jsonschema::options().is_known_format(Draft::Draft202012, format)
            });
            if !is_linear(pattern) {
                if asserted {
                    dropped.push(pointer.to_owned());
                } else {
                    self.pattern(&step(pointer, "pattern"), pattern);
                }
            }
        }
        let names = schema.get("patternProperties").and_then(Value::as_object);
        for pattern in names.into_iter().flat_map(Map::keys) {
            count += 1;
            if !is_linear(pattern) {
                self.pattern(&step(&step(pointer, "patternProperties"), pattern), pattern);
            }
        }
        count
    }

    fn pattern(&mut self, pointer: &str, pattern: &str) {
        let help = "no look-around, no back-references, no huge repetitions; patterns match in linear time";
        self.add(
            "bad_pattern",
            pointer,
            format!("`{pattern}` is no usable pattern"),
            Some(help.to_owned()),
        );
    }
}

/// Whether the engine that is used takes a pattern.
fn is_linear(pattern: &str) -> bool {
    compile(&serde_json::json!({ "pattern": pattern }), Draft::Draft202012).is_ok()
}

/// Every place where a schema stands; `false` if there are too many.
fn positions<'s>(json: &'s Value, found: &mut Vec<(String, &'s Map<String, Value>)>) -> bool {
    let mut open = vec![(String::new(), json)];
    while let Some((pointer, value)) = open.pop() {
        let Value::Object(schema) = value else { continue };
        if found.len() >= MAX_SCHEMAS {
            return false;
        }
        open.extend(held(schema, &pointer));
        found.push((pointer, schema));
    }
    true
}

/// How deep a compiler may recurse: every target of a reference can stand once on its way.
fn recursion(root: &Value, schemas: &[(String, &Map<String, Value>)]) -> usize {
    let mut targets = BTreeSet::new();
    let mut depth = height(root);
    for (_, schema) in schemas {
        let reference = schema.get("$ref").and_then(Value::as_str);
        if let Some(reference) = reference
            && targets.insert(reference)
            && let Some(next) = target(root, reference)
        {
            depth = depth.saturating_add(height(next));
        }
    }
    depth
}

fn height(value: &Value) -> usize {
    let inner = match value {
        Value::Array(items) => items.iter().map(height).max(),
        Value::Object(map) => map.values().map(height).max(),
        _ => None,
    };
    1 + inner.unwrap_or(0)
}
