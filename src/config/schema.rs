//! The JSON Schema of a configuration file, made from the tables, for editors.

use serde_json::{Map, Value, json};

use super::figure::{Figure, Unit};
use super::key::{self, AUTO_ACCEPT, CEILING, Found, Leaf, OF_A_TOOL, POLICY, TOOLS, WORKSPACES};
use super::layer::Layer;
use super::server;
use crate::engine::Choice;

/// The JSON Schema.
#[must_use]
pub fn schema() -> Value {
    let mut root = section("", Values::All);
    let ceiling = section("", Values::Figures);
    if let Some(properties) = root.get_mut("properties").and_then(Value::as_object_mut) {
        properties.insert(WORKSPACES.to_owned(), workspaces());
        properties.insert(TOOLS.to_owned(), tools());
        properties.insert(server::MCP.to_owned(), server::schema());
        let mut ceiling = ceiling;
        about(
            &mut ceiling,
            "the loosest figures that anybody can have; managed configuration only",
        );
        properties.insert(CEILING.to_owned(), ceiling);
    }
    let mut schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "runner configuration",
        "description": "config.yml of runner: .runner/config.yml of a project, runner/config.yml in the user's configuration folder, /etc/runner/config.yml",
    });
    if let (Some(schema), Value::Object(root)) = (schema.as_object_mut(), root) {
        schema.extend(root);
    }
    schema
}

/// Which keys a section shows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Values {
    All,
    Figures,
}

fn section(path: &str, values: Values) -> Value {
    let mut properties = Map::new();
    for word in key::words(path) {
        let below = if path.is_empty() { word.to_owned() } else { format!("{path}.{word}") };
        let value = match key::find(&below) {
            Found::Leaf(Leaf::Figure(it)) => Some(figure(it)),
            Found::Leaf(_) if values == Values::Figures => None,
            Found::Leaf(leaf) => Some(other(leaf)),
            Found::Section => Some(section(&below, values)).filter(|it| !is_empty(it)),
            Found::Unknown => None,
        };
        properties.extend(value.map(|value| (word.to_owned(), value)));
    }
    json!({ "type": "object", "additionalProperties": false, "properties": properties })
}

fn is_empty(section: &Value) -> bool {
    section.get("properties").and_then(Value::as_object).is_none_or(Map::is_empty)
}

fn other(leaf: Leaf) -> Value {
    match leaf {
        Leaf::Figure(it) => figure(it),
        Leaf::Flag(flag) => {
            let row = flag.row();
            json!({ "type": "boolean", "default": row.default, "description": row.about })
        }
        Leaf::ScanSkip => json!({
            "type": "array",
            "items": { "type": "string" },
            "default": [],
            "description": "folders of the workspace that are not looked through for denied files; not in a project's file",
        }),
        Leaf::ApprovalClients => json!({
            "type": "array",
            "items": { "type": "string", "pattern": "^[a-z][a-z0-9_-]{0,31}$" },
            "default": [],
            "description": "clients of the MCP server whose users may answer questions there: stdio, socket, or names of tokens; not in a project's file",
        }),
        Leaf::TeamFolder => json!({
            "type": "string",
            "pattern": "^/",
            "description": "folder of the team's tools; managed configuration only",
        }),
        Leaf::Engine => json!({
            "enum": Choice::WORDS,
            "default": Choice::AUTO,
            "description": "what makes the sandboxes; in the managed configuration: nothing else may; not in a project's file",
        }),
        Leaf::Policy => policy(
            "policy of calls that choose none (default: readonly); in a project's file: a policy that these calls never exceed",
        ),
    }
}

fn figure(figure: Figure) -> Value {
    let row = figure.row();
    let bytes = "^[1-9][0-9]*(B|KiB|MiB|GiB)$";
    let time = "^[1-9][0-9]*(ms|s|m|h)$";
    let text = |pattern: &str| json!({ "type": "string", "pattern": pattern });
    let or_none = |form: Value| json!({ "anyOf": [{ "const": "none" }, form] });
    let mut schema = match row.unit {
        Unit::Bytes => text(bytes),
        Unit::Time => text(time),
        Unit::TimeOrNone => or_none(text(time)),
        Unit::Count => json!({ "type": "integer", "minimum": 1 }),
        Unit::CountFromZero => json!({ "type": "integer", "minimum": 0 }),
        Unit::CountOrNone => or_none(json!({ "type": "integer", "minimum": 1 })),
        Unit::Percent => text("^([1-9][0-9]?|100)%$"),
        Unit::Dollars => or_none(json!({ "type": "number", "minimum": 0 })),
    };
    let whose = match row.from {
        Layer::Project | Layer::Default => "",
        Layer::User | Layer::Managed => "; not in a project's file",
    };
    let default = row.unit.show(row.default);
    about(&mut schema, &format!("{} (default: {default}){whose}", row.about));
    schema
}

fn policy(about: &str) -> Value {
    json!({ "type": "string", "pattern": "^[a-z][a-z0-9_-]{0,63}$", "description": about })
}

fn workspaces() -> Value {
    let mut properties = Map::new();
    properties.insert(POLICY.to_owned(), policy("policy of calls there that choose none"));
    json!({
        "type": "object",
        "description": "single workspaces, by the path of a folder that they are or lie in; managed configuration only",
        "propertyNames": { "pattern": "^/" },
        "additionalProperties": {
            "type": "object", "additionalProperties": false, "properties": properties,
        },
    })
}

fn tools() -> Value {
    let mut properties = Map::new();
    let enabled = json!({ "type": "boolean", "description": "whether it can be used" });
    properties.insert("enabled".to_owned(), enabled);
    let text = "whether its own `autoAccept: true` counts; by default not that of a project's tool; not in a project's file";
    let auto_accept = json!({ "type": "boolean", "description": text });
    properties.insert(AUTO_ACCEPT.to_owned(), auto_accept);
    for (word, it) in OF_A_TOOL {
        properties.insert(word.to_owned(), figure(it));
    }
    json!({
        "type": "object",
        "description": "single tools, by name",
        "propertyNames": { "pattern": "^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$" },
        "additionalProperties": {
            "type": "object", "additionalProperties": false, "properties": properties,
        },
    })
}

fn about(schema: &mut Value, text: &str) {
    if let Some(schema) = schema.as_object_mut() {
        schema.insert("description".to_owned(), text.into());
    }
}
