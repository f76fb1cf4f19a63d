//! How well a tool is made: a list of things that a good one has, what is missing, and a grade.
//!
//! A missing point is no error: the tool runs. Points that are not about a tool (prices of one that costs nothing) do
//! not count.

use serde::Serialize;
use serde_json::Value;

use super::definition::{Body, Definition};
use super::words::{CostModel, Risk, Tier};

/// One point of the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Point {
    /// A stable word.
    pub id: &'static str,
    /// What a good tool has.
    pub what: &'static str,
    /// Whether this one has it.
    pub passed: bool,
    /// What to write.
    pub fix: &'static str,
}

/// All points that are about a tool, and what they come to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Conformance {
    /// `A` to `F`.
    pub grade: Grade,
    /// Parts of a hundred.
    pub score: usize,
    /// The points.
    pub points: Vec<Point>,
}

/// A grade.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[allow(missing_docs, reason = "grades are known by their letters")]
pub enum Grade {
    A,
    B,
    C,
    D,
    F,
}

impl Grade {
    fn of(score: usize) -> Self {
        match score {
            90.. => Self::A,
            80.. => Self::B,
            70.. => Self::C,
            60.. => Self::D,
            _ => Self::F,
        }
    }

    /// The letter.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::A => "A",
            Self::B => "B",
            Self::C => "C",
            Self::D => "D",
            Self::F => "F",
        }
    }
}

impl Conformance {
    /// Of a valid tool.
    #[must_use]
    pub fn of(it: &Definition) -> Self {
        let points = points(it);
        let passed = points.iter().filter(|point| point.passed).count();
        let score = passed * 100 / points.len().max(1);
        Self { grade: Grade::of(score), score, points }
    }

    /// What is missing.
    pub fn missing(&self) -> impl Iterator<Item = &Point> {
        self.points.iter().filter(|point| !point.passed)
    }
}

/// Shortest description that says what a tool does and when to use it.
const SENTENCE: usize = 30;

fn points(it: &Definition) -> Vec<Point> {
    let about = &it.metadata;
    let open_world = it.tier == Tier::ExternalApi;
    let acts = it.tier >= Tier::Execute && it.risk >= Risk::Medium;
    let looks = matches!(it.tier, Tier::ReadOnly | Tier::Write);
    let free = about.cost_info.as_ref().is_some_and(|cost| cost.model == CostModel::Free);
    let hooks: &[String] = match &it.body {
        Body::Yaml { .. } | Body::BuiltIn(_) | Body::Mcp(_) => &[],
        Body::Module(described) => &described.hooks,
    };
    let module = matches!(it.body, Body::Module(_));
    // A module tells it in its notes: its runtime tries again, not we.
    let retries =
        matches!(&it.body, Body::Module(described) if described.notes.get("retry").is_some());
    let schema = it.schema.json();
    let properties = it.schema.properties().is_some_and(|properties| !properties.is_empty());
    let mut points = Vec::new();
    let mut add = |applies: bool, id, what, passed, fix| {
        if applies {
            points.push(Point { id, what, passed, fix });
        }
    };
    let wrote = |key: &str| it.written.iter().any(|written| written == key);
    add(true, "version", "a version", it.version.is_some(), "version: 1.0.0");
    add(true, "category", "a category that it is found by", wrote("category"), "category: search");
    add(
        true,
        "tier",
        "a tier that it says itself",
        wrote("securityTier"),
        "securityTier: read_only",
    );
    add(
        true,
        "description",
        "a description that a model can choose it by",
        it.description.len() >= SENTENCE,
        "say in a sentence or two what it does, when to use it, and what it returns",
    );
    add(
        true,
        "documentation",
        "a page where more is written",
        about.documentation.is_some(),
        "documentation: https://… or documentation: docs/tool.md",
    );
    add(
        true,
        "capabilities",
        "a list of what it can do",
        !about.capabilities.is_empty(),
        "capabilities: [{ action: read, description: … }]",
    );
    add(
        properties,
        "parameters_described",
        "a description of every parameter",
        described(&it.schema),
        "description: … below each property of the schema",
    );
    add(
        true,
        "parameters_closed",
        "a schema that refuses what it does not know",
        schema.get("additionalProperties") == Some(&Value::Bool(false)),
        "additionalProperties: false",
    );
    add(
        true,
        "returns",
        "a schema of its result",
        it.returns.is_some(),
        "returns: { type: object, … }",
    );
    add(true, "timeout", "a time after which it is ended", it.timeout.is_some(), "timeout: 30s");
    add(
        true,
        "estimated_time",
        "how long it takes, about",
        about.capabilities.iter().any(|it| it.estimated_time.is_some()),
        "estimatedTime: 1000 in a capability",
    );
    add(
        looks,
        "files_named",
        "the files that it reads, named",
        it.permissions.read.is_some(),
        "files: { read: ['src/**'] }",
    );
    add(
        acts,
        "approval",
        "approval for each call that can do harm",
        !it.auto_accept,
        "permissions: { autoAccept: false }",
    );
    add(
        open_world && !free,
        "required_auth",
        "the credentials that it needs, and where to get them",
        about.required_auth.as_ref().is_some_and(|auth| auth.setup_url.is_some()),
        "requiredAuth: { type: api_key, configKey: SERVICE_TOKEN, setupUrl: https://… }",
    );
    add(
        open_world,
        "cost_info",
        "what a call costs",
        about.cost_info.is_some(),
        "costInfo: { model: free }",
    );
    add(
        open_world,
        "retry",
        "when it is tried again, or that it is not",
        wrote("retry") || retries,
        "retry: STANDARD, or retry: NONE",
    );
    add(
        module && open_world,
        "error_handling",
        "its own words for the errors of what it reaches",
        hooks.iter().any(|hook| hook == "handleError"),
        "handleError(error) { return { code, message, recoverable, suggestion } }",
    );
    add(
        module && open_world,
        "health",
        "a check whether it could work now",
        hooks.iter().any(|hook| hook == "healthCheck"),
        "healthCheck() { return { healthy: true } }",
    );
    points
}

fn described(schema: &super::schema::Schema) -> bool {
    let Some(properties) = schema.properties() else { return true };
    properties.iter().all(|(key, value)| {
        let own = |it: &Value| it.get("description").is_some();
        own(value) || schema.property(key).is_some_and(own)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graded(more: &str) -> Conformance {
        let text = format!("name: probe\n{more}\ncode: export const execute = 1\n");
        let name = "probe".parse().unwrap();
        Conformance::of(&super::super::read::parse("t", &text, &name).unwrap())
    }

    #[test]
    fn a_bare_tool_fails_and_a_whole_one_does_not() {
        let bare = graded("description: x");
        assert_eq!(bare.grade, Grade::F);
        assert!(bare.missing().any(|point| point.id == "version"));
        assert!(bare.points.iter().all(|point| point.id != "cost_info"), "it reaches nothing");
        let whole = graded(
            "version: 1.0.0\ndescription: Asks a service how it is, and says so.\ndocumentation: https://a.example/\ncapabilities: [{ action: ask, estimatedTime: 100 }]\ncategory: api\nsecurityTier: external_api\nretry: STANDARD\nschema: { type: object, additionalProperties: false, properties: { id: { type: string, description: Which. } } }\nreturns: { type: object }\ntimeout: 5s\nnet: ['GET https://a.example/**']\nrequiredAuth: { type: api_key, configKey: A_TOKEN, setupUrl: 'https://a.example/' }\ncostInfo: { model: usage_based }",
        );
        assert_eq!(whole.missing().collect::<Vec<_>>(), Vec::<&Point>::new());
        assert_eq!((whole.grade, whole.score), (Grade::A, 100));
    }
}
