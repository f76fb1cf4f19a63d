//! Schemas of arguments and results: JSON Schema 2020-12, without surprises.
//!
//! Duty: read a foreign schema, check values, fill in its defaults, and say every
//! violation with its JSON pointer. Non-goals: other drafts, references that leave the schema.
//! Trust boundary: schema and value both come from the adversary (a repository's tool, an agent's
//! arguments, a tool's result). So references stay inside, patterns match in linear time, sizes
//! are bounded before anything is compiled, and the work that a value makes is counted before
//! it is done: nested alternatives could otherwise double it level by level.

mod cost;
mod defaults;
mod keywords;
mod names;
mod references;
mod review;
mod sentence;
mod spans;

pub use sentence::Violation;
pub use spans::Spans;

use jsonschema::{Draft, PatternOptions, Validator};
use runner_policy::finding::Report;
use serde_json::{Map, Value};

use crate::json;
use names::Link;
use references::References;
use review::Reviewed;

/// Largest compiled form of one pattern, in bytes.
const PATTERN_BYTES: usize = 512 << 10;
/// Most violations that are listed; a reader fixes no more at once.
const MAX_VIOLATIONS: usize = 100;
/// The keyword of what is not checked because it is too much.
pub const BOUNDS: &str = "bounds";
/// Recursion of the compiler up to which its caller's stack is surely enough.
const SHALLOW: usize = 60;
/// Stack for compiling what is nested deeper, and still within the bounds of [`review`].
const DEEP_STACK: usize = 64 << 20;

/// What a schema is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Named arguments: an object.
    Arguments,
    /// A result: anything.
    Result,
}

/// What `format` means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Formats {
    /// Nothing, as the standard has it, unless the schema asks with `x-assert-format: true`.
    Noted,
    /// A text must have the format.
    Asserted,
}

/// A schema that can check.
#[derive(Debug)]
pub struct Schema {
    json: Value,
    links: Vec<Link>,
    validator: Validator,
}

impl Schema {
    /// Begins to build the schema of schemas, in a thread of its own: it takes longer than finding the first schema that is
    /// held against it.
    pub fn get_ready() {
        // It is built at its first use otherwise.
        let _ =
            std::thread::Builder::new().spawn(|| drop(jsonschema::draft202012::meta::validator()));
    }

    /// Compiles a schema. Everything that is wrong with it becomes a finding at its place.
    #[must_use]
    pub fn compile(
        json: Value,
        role: Role,
        spans: &Spans,
        report: &mut Report<'_>,
    ) -> Option<Self> {
        Self::compile_with(json, role, Formats::Noted, spans, report)
    }

    /// The same, where the caller says what `format` means.
    #[must_use]
    pub fn compile_with(
        mut json: Value,
        role: Role,
        formats: Formats,
        spans: &Spans,
        report: &mut Report<'_>,
    ) -> Option<Self> {
        let reviewed = review::review(&mut json, role, formats, spans, report)?;
        let validator = match build(&json, &reviewed) {
            Ok(validator) => validator,
            Err(Refused { pointer, why }) => {
                let at = spans.at(&pointer);
                report.add("bad_schema", at, format!("not a valid schema: {why}"), None);
                return None;
            }
        };
        Some(Self { json, links: reviewed.links, validator })
    }

    /// A schema of this program's own, which tests have looked at as at any other. It says nothing that an older draft
    /// reads otherwise; and the library holds every schema against the schema of its draft's schemas, which takes a
    /// tenth of the time to build for that one.
    #[must_use]
    pub fn ours(json: Value) -> Option<Self> {
        let validator = compile(&json, Draft::Draft7, Formats::Asserted).ok()?;
        Some(Self { json, links: Vec::new(), validator })
    }

    /// A schema for tools that take no arguments.
    #[must_use]
    pub fn nothing() -> Option<Self> {
        let json = serde_json::json!({
            "type": "object", "properties": {}, "additionalProperties": false
        });
        Self::ours(json)
    }

    /// The schema itself.
    #[must_use]
    pub fn json(&self) -> &Value {
        &self.json
    }

    /// The named properties of the value it describes.
    #[must_use]
    pub fn properties(&self) -> Option<&Map<String, Value>> {
        self.json.get("properties").and_then(Value::as_object)
    }

    /// The schema of one named property, references followed.
    #[must_use]
    pub fn property(&self, name: &str) -> Option<&Value> {
        let schema = self.properties()?.get(name)?;
        Some(self.references().followed(schema))
    }

    /// Whether names beyond [`properties`](Self::properties) are spoken of.
    #[must_use]
    pub fn is_open(&self) -> bool {
        let closed =
            |key: &str| self.json.get(key).is_none_or(|value| *value == Value::Bool(false));
        !closed("additionalProperties") || self.json.get("patternProperties").is_some()
    }

    fn references(&self) -> References<'_> {
        References::new(&self.json, &self.links)
    }

    /// Checks a value as it is.
    ///
    /// # Errors
    /// Everything that does not fit, each with its place.
    pub fn validate(&self, value: &Value) -> Result<(), Vec<Violation>> {
        bounded(value)?;
        if !cost::is_affordable(&self.references(), value) {
            let message = "takes too many steps to be checked against its schema";
            return Err(vec![Violation::of_the_whole(BOUNDS, message)]);
        }
        if self.validator.is_valid(value) {
            return Ok(());
        }
        let errors = self.validator.iter_errors(value).take(MAX_VIOLATIONS);
        let mut violations: Vec<_> =
            errors.map(|error| sentence::violation(&error, &self.json)).collect();
        violations.dedup();
        Err(violations)
    }

    /// Checks a value, and gives it with the defaults filled in. What fits as it is stays as it is if a default would
    /// not fit; what lacks something required gets it from a default.
    ///
    /// # Errors
    /// Everything that does not fit, each with its place.
    pub fn check(&self, value: Value) -> Result<Value, Vec<Violation>> {
        bounded(&value)?;
        let mut filled = value.clone();
        defaults::fill(&self.references(), &mut filled)
            .map_err(|why| vec![Violation::of_the_whole(BOUNDS, why.message())])?;
        // A default can be as deep as the value that it is filled into, and make as much work.
        match self.validate(&filled) {
            Ok(()) => Ok(filled),
            Err(violations)
                if filled == value || violations.iter().any(|it| it.keyword == BOUNDS) =>
            {
                Err(violations)
            }
            Err(violations) => match self.validate(&value) {
                Ok(()) => Ok(value),
                Err(_) => Err(violations),
            },
        }
    }
}

fn bounded(value: &Value) -> Result<(), Vec<Violation>> {
    let message = "is nested too deep or has too many values to be checked";
    if json::is_bounded(value) {
        return Ok(());
    }
    Err(vec![Violation::of_the_whole(BOUNDS, message)])
}

/// Why the library refuses a schema.
struct Refused {
    pointer: String,
    why: String,
}

fn build(json: &Value, reviewed: &Reviewed) -> Result<Validator, Refused> {
    let json = reviewed.instead.as_ref().unwrap_or(json);
    let compiled = || compile(json, Draft::Draft202012, reviewed.formats);
    if reviewed.depth <= SHALLOW && reviewed.links.is_empty() {
        return compiled();
    }
    // The compiler recurses along references; a long chain of them must not end the process, and neither must a name
    // that it reads otherwise than it expects.
    let failed = |why: &str| Refused { pointer: String::new(), why: why.to_owned() };
    std::thread::scope(|scope| {
        let builder = std::thread::Builder::new().stack_size(DEEP_STACK);
        let thread = builder.spawn_scoped(scope, compiled);
        let joined = thread.map_err(|_| failed("it is nested too deep to be read here"))?.join();
        joined.unwrap_or_else(|_| Err(failed("it cannot be read")))
    })
}

fn compile(json: &Value, draft: Draft, formats: Formats) -> Result<Validator, Refused> {
    let patterns = PatternOptions::regex().size_limit(PATTERN_BYTES).dfa_size_limit(PATTERN_BYTES);
    jsonschema::options()
        .with_draft(draft)
        .offline()
        .with_pattern_options(patterns)
        .should_validate_formats(formats == Formats::Asserted)
        .should_ignore_unknown_formats(true)
        .build(json)
        .map_err(|error| Refused {
            pointer: error.instance_path().to_string(),
            why: sentence::of_schema(&error),
        })
}

#[cfg(test)]
pub(crate) mod suite;
#[cfg(test)]
mod suite_tests;
#[cfg(test)]
mod tests;
