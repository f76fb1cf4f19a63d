//! What is looked at before a schema is compiled: bounds, references, patterns, misspelt keywords.
//!
//! The library would accept an unknown keyword (the standard says so) and stop at the first error.
//! Authors are better served by all findings at once, each at its place.

use jsonschema::Draft;
use runner_policy::finding::{Report, did_you_mean};
use serde_json::{Map, Value};

use super::keywords::{ASSERT_FORMAT, HOLDERS, PLAIN};
use super::names::{Link, MAX_SCHEMAS, Problem, survey};
use super::spans::{Spans, step};
use super::{Formats, Role, compile, sentence};
use crate::json;

/// Most patterns: each is compiled to an automaton of bounded size.
const MAX_PATTERNS: usize = 100;
/// Longest recursion that the compiler can be led into.
const MAX_DEPTH: usize = 1_000;
/// Most keywords of others' that are compared with ours; the rest is taken as it is.
const MAX_FOREIGN: usize = 200;
/// Most findings of the schema of schemas; one mistake often breaks several rules.
const MAX_ERRORS: usize = 20;

const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// Keywords that would change what others mean: those of another draft, and those of schemas of schemas.
const REFUSED: &[&str] = &["$recursiveRef", "$recursiveAnchor", "$vocabulary"];

/// What a review found out.
pub(super) struct Reviewed {
    /// How deep the compiler may recurse.
    pub depth: usize,
    /// References that do not lead from the root by a pointer.
    pub links: Vec<Link>,
    /// What is compiled instead, where that differs: formats are asserted in some places only.
    pub instead: Option<Value>,
    /// Whether any format is asserted.
    pub formats: Formats,
}

/// Looks at a schema. A pattern that cannot match in linear time is dropped where a known `format` says the same, as
/// converters write both; there the format is asserted.
pub(super) fn review(
    json: &mut Value,
    role: Role,
    formats: Formats,
    spans: &Spans,
    report: &mut Report<'_>,
) -> Option<Reviewed> {
    let mut review = Review { spans, report, clean: true, foreign: 0 };
    if !review.shape(json, role) {
        return None;
    }
    let Some(found) = survey(json) else {
        review.add("too_large", "", format!("more than {MAX_SCHEMAS} schemas in one"), None);
        return None;
    };
    for (pointer, problem) in &found.problems {
        review.reference(pointer, problem);
    }
    let mut patterns = 0;
    let mut dropped = Vec::new();
    for (pointer, schema) in &found.schemas {
        review.keywords(pointer, schema);
        review.dialect(pointer, schema);
        patterns += review.patterns(pointer, schema, &mut dropped);
    }
    if patterns > MAX_PATTERNS {
        review.add("too_large", "", format!("more than {MAX_PATTERNS} patterns"), None);
    }
    // Every target of a reference can stand once on the compiler's way.
    let heights = found.targets.iter().map(|target| height(target));
    let depth = heights.fold(height(json), usize::saturating_add);
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
    if !review.clean {
        return None;
    }
    let noted: Vec<String> = found
        .schemas
        .iter()
        .filter(|(pointer, schema)| schema.contains_key("format") && !dropped.contains(pointer))
        .map(|(pointer, _)| pointer.clone())
        .collect();
    let links = found.links;
    let asked = json.get(ASSERT_FORMAT) == Some(&Value::Bool(true));
    let formats = if asked { Formats::Asserted } else { formats };
    remove(json, &dropped, "pattern");
    let mut instead = None;
    if formats == Formats::Noted && !dropped.is_empty() && !noted.is_empty() {
        let mut copy = json.clone();
        remove(&mut copy, &noted, "format");
        instead = Some(copy);
    }
    let formats = if dropped.is_empty() { formats } else { Formats::Asserted };
    Some(Reviewed { depth, links, instead, formats })
}

/// Takes a keyword from the schemas at these places.
fn remove(json: &mut Value, pointers: &[String], keyword: &str) {
    for pointer in pointers {
        if let Some(Value::Object(schema)) = json.pointer_mut(pointer) {
            schema.remove(keyword);
        }
    }
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
        let root = match json {
            Value::Object(root) => root,
            Value::Bool(_) if role == Role::Result => return true,
            _ => {
                self.add("wrong_type", "", "a schema is a mapping".to_owned(), None);
                return false;
            }
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
        if root.get(ASSERT_FORMAT).is_some_and(|value| !value.is_boolean()) {
            let message = format!("`{ASSERT_FORMAT}` is true or false");
            self.add("wrong_type", &step("", ASSERT_FORMAT), message, None);
        }
        true
    }

    /// Another draft would be read by other rules, in a part too.
    fn dialect(&mut self, pointer: &str, schema: &Map<String, Value>) {
        let Some(dialect) = schema.get("$schema") else { return };
        if dialect.as_str().is_none_or(|uri| uri.trim_end_matches('#') != DIALECT) {
            let help = format!("remove `$schema`, or write `{DIALECT}`");
            let message = "schemas are read as JSON Schema 2020-12".to_owned();
            self.add("bad_schema", &step(pointer, "$schema"), message, Some(help));
        }
    }

    fn keywords(&mut self, pointer: &str, schema: &Map<String, Value>) {
        for key in schema.keys() {
            let here = step(pointer, key);
            if REFUSED.contains(&key.as_str()) {
                let message = format!("`{key}` is not part of this format");
                self.add("bad_reference", &here, message, None);
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

    fn reference(&mut self, pointer: &str, problem: &Problem) {
        let (message, help) = match problem {
            Problem::Leaves(reference) => (
                format!("`{reference}` leaves the schema; nothing is fetched"),
                Some(
                    "copy what it names to `$defs`, with its `$id`, or write `$ref: \"#/$defs/NAME\"`",
                ),
            ),
            Problem::Nowhere(reference) => (format!("`{reference}` leads to no schema"), None),
            Problem::Malformed(reference) => {
                (format!("`{reference}` is not a URI reference"), None)
            }
            Problem::Twice(name) => (format!("`{name}` names two schemas"), None),
            Problem::Misplaced(key) => (
                format!("`{key}` is at a place where no schema is expected"),
                Some("put the schema under `$defs`"),
            ),
        };
        self.add("bad_reference", pointer, message, help.map(str::to_owned));
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
            format!("`{pattern}` is not a valid pattern"),
            Some(help.to_owned()),
        );
    }
}

/// Whether the engine that is used takes a pattern.
fn is_linear(pattern: &str) -> bool {
    let schema = serde_json::json!({ "pattern": pattern });
    compile(&schema, Draft::Draft202012, Formats::Noted).is_ok()
}

fn height(value: &Value) -> usize {
    let inner = match value {
        Value::Array(items) => items.iter().map(height).max(),
        Value::Object(map) => map.values().map(height).max(),
        _ => None,
    };
    1 + inner.unwrap_or(0)
}
