//! A tool as its server offers it, and what changed since.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Most tools of one server: every one is shown to agents.
pub const MAX_TOOLS: usize = 256;
/// Most pages of one list.
pub(super) const MAX_PAGES: usize = 64;
/// Longest name that is kept, even of a tool that cannot be used.
const MAX_NAME: usize = 256;

/// What is kept of a tool: what an agent is shown, and what a call is checked by. Anything else may change with every
/// answer (icons, notes of the server to itself).
const KEPT: [&str; 5] = ["title", "description", "inputSchema", "outputSchema", "annotations"];

/// A tool as its server offers it. Whether it can be used is found out when it is read as a definition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Offered {
    /// The server's own name for it.
    pub name: String,
    /// Everything about it that counts.
    pub said: Map<String, Value>,
}

impl Offered {
    /// Takes one entry of a list. What has no name that could be kept is kept without one: it is broken, not hidden.
    pub(super) fn read(value: Value) -> Self {
        let Value::Object(mut map) = value else {
            return Self { name: String::new(), said: Map::new() };
        };
        let name = match map.remove("name") {
            Some(Value::String(name)) => name.chars().take(MAX_NAME + 1).collect(),
            _ => String::new(),
        };
        map.retain(|key, _| KEPT.contains(&key.as_str()));
        Self { name, said: map }
    }

    /// The same as a text: what the registry reads, and what findings point into.
    #[must_use]
    pub fn text(&self) -> String {
        let mut whole = Map::new();
        whole.insert("name".to_owned(), self.name.clone().into());
        whole.extend(self.said.clone());
        serde_json::to_string_pretty(&Value::Object(whole)).unwrap_or_default()
    }

    /// Stands for all that is kept, however its keys are ordered.
    #[must_use]
    pub fn digest(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        hasher.update(self.name.as_bytes());
        hasher.update(&[0]);
        hasher.update(sorted(&Value::Object(self.said.clone())).to_string().as_bytes());
        hasher.finalize().to_hex().to_string()
    }
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut keys: Vec<&String> = map.keys().collect();
            keys.sort();
            keys.into_iter().map(|key| (key.clone(), sorted(&map[key]))).collect()
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        other => other.clone(),
    }
}

/// How a tool differs from what was remembered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// It was not there.
    Added,
    /// It is not there any more.
    Removed,
    /// It says something else now.
    Changed {
        /// In which of its parts.
        parts: Vec<&'static str>,
    },
}

/// What changed between two lists, by the tools' own names.
#[must_use]
pub fn changes(before: &[Offered], now: &[Offered]) -> Vec<(String, Change)> {
    let find = |list: &[Offered], name: &str| list.iter().find(|it| it.name == name).cloned();
    let mut found = Vec::new();
    for tool in now {
        match find(before, &tool.name) {
            None => found.push((tool.name.clone(), Change::Added)),
            Some(old) if old.digest() != tool.digest() => {
                let differs = |part: &&&str| {
                    old.said.get(**part).map(sorted) != tool.said.get(**part).map(sorted)
                };
                let parts = KEPT.iter().filter(differs).copied().collect();
                found.push((tool.name.clone(), Change::Changed { parts }));
            }
            Some(_) => {}
        }
    }
    let gone = before.iter().filter(|tool| find(now, &tool.name).is_none());
    found.extend(gone.map(|tool| (tool.name.clone(), Change::Removed)));
    found
}
