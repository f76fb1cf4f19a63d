//! Tools in the words of others: as a model's interface, or another program, wants them listed.

use serde_json::{Value, json};

use super::definition::Definition;
use super::words::Tier;

/// For whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ExportFormat {
    /// `tools` of OpenAI's interfaces: functions with `parameters`
    Openai,
    /// `tools` of Anthropic's interface: `input_schema`
    Anthropic,
    /// The answer to `tools/list` of the Model Context Protocol
    Mcp,
    /// Everything that is known, in our own words
    Json,
}

/// Tools as a list in this form.
#[must_use]
pub fn export(tools: &[&Definition], format: ExportFormat) -> Value {
    let list =
        |one: fn(&Definition) -> Value| Value::Array(tools.iter().map(|it| one(it)).collect());
    match format {
        ExportFormat::Openai => list(openai),
        ExportFormat::Anthropic => list(shown),
        ExportFormat::Mcp => json!({ "tools": list(mcp) }),
        ExportFormat::Json => json!({ "tools": list(Definition::record) }),
    }
}

fn openai(it: &Definition) -> Value {
    let function = json!({
        "name": it.name, "description": it.description, "parameters": it.schema.json(),
    });
    json!({ "type": "function", "function": function })
}

/// What an agent is shown of a tool, and pays for in its context.
#[must_use]
pub fn shown(it: &Definition) -> Value {
    json!({ "name": it.name, "description": it.description, "input_schema": it.schema.json() })
}

fn mcp(it: &Definition) -> Value {
    let mut tool = json!({
        "name": it.name, "description": it.description, "inputSchema": it.schema.json(),
        "annotations": {
            "readOnlyHint": it.tier == Tier::ReadOnly,
            "destructiveHint": it.tier != Tier::ReadOnly,
            "openWorldHint": it.tier == Tier::ExternalApi,
        },
    });
    // The protocol wants a result to be an object if it is described.
    let returns = it.returns.as_ref().map(super::schema::Schema::json);
    let object = |schema: &&Value| schema.get("type").and_then(Value::as_str) == Some("object");
    if let (Some(returns), Some(tool)) = (returns.filter(object), tool.as_object_mut()) {
        tool.insert("outputSchema".to_owned(), returns.clone());
    }
    tool
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_its_own_words_for_the_same() {
        let text = "name: probe\ndescription: Asks.\nnet: ['GET https://a.example/**']\nschema: { type: object, properties: { id: { type: string } } }\nreturns: { type: object }\ncode: export const execute = 1\n";
        let probe = super::super::read::parse("t", text, &"probe".parse().unwrap()).unwrap();
        let of = |format| export(&[&probe], format);
        let schema = json!({"type": "object", "properties": {"id": {"type": "string"}}});
        assert_eq!(
            of(ExportFormat::Openai),
            json!([{"type": "function", "function": {"name": "probe", "description": "Asks.", "parameters": schema}}])
        );
        assert_eq!(
            of(ExportFormat::Anthropic),
            json!([{"name": "probe", "description": "Asks.", "input_schema": schema}])
        );
        let mcp = of(ExportFormat::Mcp);
        assert_eq!(mcp["tools"][0]["inputSchema"], schema);
        assert_eq!(mcp["tools"][0]["outputSchema"], json!({"type": "object"}));
        assert_eq!(mcp["tools"][0]["annotations"]["openWorldHint"], true);
        assert_eq!(of(ExportFormat::Json)["tools"][0]["securityTier"], "external_api");
    }
}
