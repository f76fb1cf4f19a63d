//! A tool that an MCP server offers, as a [`Definition`].
//!
//! Duty: the name under which the registry has it, and the same reading as for every other tool: bounds, schema, findings.
//! Trust boundary: all of it is the server's word. What it says about its own harmlessness (annotations) counts for nothing: a
//! call runs a program, so the tier is `execute`, and each call needs an approval.

use std::path::Path;
use std::sync::Arc;

use runner_policy::finding::{At, Finding, Report};
use runner_policy::word::quoted;
use runner_policy::yaml::Entry;
use serde_json::{Value, json};

use super::data::to_tree;
use super::definition::{Body, Definition};
use super::read;
use super::words::Tier;
use crate::config::{BETWEEN, Server, ServerName};
use crate::ids::ToolName;
use crate::ids::tool_name::FORM;
use crate::json;
use crate::mcp_client::{Identity, Moved, Offered};

/// Which tool of which server, as it was remembered.
#[derive(Debug)]
pub struct FromServer {
    /// The server.
    pub name: ServerName,
    /// How it is started.
    pub server: Server,
    /// What it was made from when it was asked.
    pub identity: Identity,
    /// What it offered.
    pub offered: Offered,
}

impl FromServer {
    /// Stands for the server and for all that it says of the tool.
    #[must_use]
    pub fn digest(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        hasher.update(self.identity.digest.as_bytes());
        hasher.update(self.offered.digest().as_bytes());
        hasher.finalize().to_hex().to_string()
    }

    /// The server's command, as one line.
    #[must_use]
    pub fn command(&self) -> String {
        let words: Vec<String> = self.server.command.iter().map(|word| quoted(word)).collect();
        words.join(" ")
    }

    /// Whether the server is still made from what it was made from when it was asked.
    ///
    /// # Errors
    /// What is not.
    pub fn verify(&self, root: &Path) -> Result<(), Moved> {
        self.identity.same(&self.identity.again(&self.name, &self.server, root))
    }

    /// Every part of that, by what it is: what an approval is bound to.
    #[must_use]
    pub fn inputs(&self) -> Vec<(String, String)> {
        let what = format!("mcp:{}/{}", self.name, self.offered.name);
        let parts = self.identity.inputs.iter().map(|it| (it.path.clone(), it.digest.clone()));
        std::iter::once((what, self.offered.digest())).chain(parts).collect()
    }
}

/// The name in the registry: the server's and the tool's own, with what other names may hold and ours may not as `_`.
pub(super) fn name(server: &ServerName, tool: &str) -> Option<ToolName> {
    let own: String = tool.chars().map(|c| if matches!(c, '.' | '/') { '_' } else { c }).collect();
    if own.is_empty() { None } else { format!("{server}{BETWEEN}{own}").parse().ok() }
}

/// Of a tool whose name is none.
pub(super) fn bad_name(server: &ServerName, tool: &str, file: &str) -> Finding {
    let message = match tool {
        "" => format!("the server {server} offers a tool without a name"),
        tool => format!("`{tool}` is not a tool name that fits after `{server}{BETWEEN}`"),
    };
    let help = Some(format!("with the server's name: {FORM}"));
    let (file, excerpt) = (file.to_owned(), String::new());
    Finding { code: "bad_name", file, at: At::default(), message, help, excerpt }
}

/// Reads what a server said of a tool.
pub(super) fn read(
    from: &Arc<FromServer>,
    file: &str,
    text: &str,
    stem: &ToolName,
) -> Result<Definition, Vec<Finding>> {
    let mut report = Report::new(file, text);
    let entries = entries(from, text, stem, &mut report);
    let common = entries.and_then(|entries| {
        read::common(&entries, At::default(), stem, (file, text), read::Author::Others, &mut report)
    });
    let definition = common.map(|common| common.with(Body::Mcp(Arc::clone(from))));
    read::finish(definition, report)
}

/// What the other forms have, under their names.
fn entries(
    from: &FromServer,
    text: &str,
    stem: &ToolName,
    report: &mut Report<'_>,
) -> Option<Vec<Entry>> {
    let said = &from.offered.said;
    if !json::is_bounded(&Value::Object(said.clone())) {
        report.add("too_large", At::default(), "the tool is too large or too deep", None);
        return None;
    }
    let about = ["description", "title"].into_iter().find_map(|key| {
        let text = said.get(key)?.as_str()?;
        (!text.trim().is_empty()).then(|| (key, text.to_owned()))
    });
    let (about_key, about) = about.unwrap_or_else(|| {
        let tool = &from.offered.name;
        ("name", format!("`{tool}` of the server {}, which does not say what it does.", from.name))
    });
    let Some(schema) = said.get("inputSchema") else {
        let help = "the protocol wants `\"inputSchema\": { \"type\": \"object\" }`".to_owned();
        report.add("missing_key", place(text, "name"), "`inputSchema` is missing", help);
        return None;
    };
    let entry = |key: &str, value: Value, at: At| Entry {
        key: key.to_owned(),
        at,
        value: to_tree(&value, at),
    };
    let mut entries = vec![
        entry("name", json!(stem), place(text, "name")),
        entry("description", about.into(), place(text, about_key)),
        entry("securityTier", Tier::Execute.word().into(), At::default()),
        entry("tags", json!(["mcp", from.name]), At::default()),
        entry("schema", modern(schema.clone()), place(text, "inputSchema")),
    ];
    if let Some(schema) = said.get("outputSchema").filter(|schema| !schema.is_null()) {
        entries.push(entry("returns", modern(schema.clone()), place(text, "outputSchema")));
    }
    Some(entries)
}

/// The first line of the text that has this key.
fn place(text: &str, key: &str) -> At {
    let small = |figure: usize| u32::try_from(figure).unwrap_or(u32::MAX);
    let word = format!("\"{key}\":");
    let mut lines = text.lines().enumerate();
    let found = lines.find_map(|(number, line)| Some((number, line.find(&word)?)));
    found.map_or_else(At::default, |(number, column)| At {
        line: small(number + 1),
        column: small(column + 1),
        width: small(key.len() + 2),
    })
}

/// Many servers write schemas of an older draft. One that says nothing which means something else today is read as of
/// today; any other is left as it is, and refused.
fn modern(mut schema: Value) -> Value {
    let older = |uri: &str| {
        let uri = uri.trim_end_matches('#');
        ["http://json-schema.org/draft-07/schema", "http://json-schema.org/draft-06/schema"]
            .contains(&uri)
    };
    let is_older = schema.get("$schema").and_then(Value::as_str).is_some_and(older);
    if is_older
        && means_the_same(&schema)
        && let Some(schema) = schema.as_object_mut()
    {
        schema.remove("$schema");
    }
    schema
}

/// Whether no keyword stands in it whose meaning has changed since. A property may have such a name: then it is
/// refused needlessly, which is harmless.
fn means_the_same(schema: &Value) -> bool {
    match schema {
        Value::Object(map) => map.iter().all(|(key, value)| {
            let changed = matches!(key.as_str(), "additionalItems" | "dependencies")
                || (key == "items" && value.is_array());
            !changed && means_the_same(value)
        }),
        Value::Array(items) => items.iter().all(means_the_same),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(tool: &str, said: Value) -> Arc<FromServer> {
        let server = Server {
            command: vec!["node".to_owned()],
            env: [].into(),
            policy: None,
            tools: None,
            timeout: None,
        };
        let name: ServerName = "s".parse().unwrap();
        let identity = Identity::of(&name, &server, std::path::Path::new("/nowhere"), None, None);
        let said = said.as_object().unwrap().clone();
        let offered = Offered { name: tool.to_owned(), said };
        Arc::new(FromServer { name, server, identity, offered })
    }

    fn definition(said: Value) -> Result<Definition, Vec<&'static str>> {
        let from = from("t", said);
        let stem = name(&from.name, &from.offered.name).unwrap();
        read(&from, "mcp:s/t", &from.offered.text(), &stem)
            .map_err(|found| found.iter().map(|it| it.code).collect())
    }

    #[test]
    fn a_name_is_of_one_server_and_fits() {
        let server = "s".parse().unwrap();
        let named = |tool: &str| name(&server, tool).map(|it| it.to_string());
        assert_eq!(named("read").as_deref(), Some("s__read"));
        assert_eq!(named("fs.read/all").as_deref(), Some("s__fs_read_all"));
        for tool in ["", "a b", "a\u{1b}[2J", "a\n", "ä", &"x".repeat(64)] {
            assert_eq!(named(tool), None, "{tool:?}");
        }
    }

    #[test]
    fn a_servers_word_about_its_harmlessness_counts_for_nothing() {
        let said = json!({
            "description": "Reads.", "inputSchema": { "type": "object" },
            "annotations": { "readOnlyHint": true, "destructiveHint": false },
        });
        let it = definition(said).unwrap();
        assert_eq!((it.tier, it.auto_accept), (Tier::Execute, false));
        assert_eq!(it.name.as_str(), "s__t");
        let silent = definition(json!({ "inputSchema": { "type": "object" } })).unwrap();
        assert!(silent.description.contains("does not say"), "{}", silent.description);
    }

    #[test]
    fn what_cannot_be_used_has_findings() {
        for (said, code) in [
            (json!({ "description": "x" }), "missing_key"),
            (json!({ "inputSchema": [] }), "wrong_type"),
            (json!({ "inputSchema": { "type": "string" } }), "bad_schema"),
            (
                json!({ "inputSchema": { "type": "object", "$ref": "http://a.example/" } }),
                "bad_reference",
            ),
            (
                json!({ "description": "x".repeat(9_000), "inputSchema": { "type": "object" } }),
                "too_large",
            ),
            (
                json!({ "inputSchema": { "type": "object", "$schema": "http://json-schema.org/draft-07/schema#", "properties": { "a": { "items": [{}] } } } }),
                "bad_schema",
            ),
        ] {
            let found = definition(said.clone()).unwrap_err();
            assert!(found.contains(&code), "{said}: {found:?}");
        }
        let old = json!({ "inputSchema": { "type": "object", "$schema": "http://json-schema.org/draft-07/schema#", "properties": { "a": { "type": "string" } } } });
        assert!(definition(old).is_ok(), "as most servers write it");
    }

    #[test]
    fn another_description_or_program_is_another_tool() {
        let said = |text: &str| json!({ "description": text, "inputSchema": { "type": "object" } });
        let (a, b) = (from("t", said("x")), from("t", said("y")));
        assert_ne!(a.digest(), b.digest());
        assert_eq!(a.digest(), from("t", said("x")).digest());
        assert_eq!(a.inputs()[0].0, "mcp:s/t");
        assert_ne!(a.inputs()[0].1, b.inputs()[0].1);
    }
}
