//! What the suite asks for, as its scenarios describe it.

use std::sync::OnceLock;
use std::time::Duration;

use rmcp::model::*;
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::{Value, json};
use tokio::sync::broadcast::{Sender, channel};

/// A picture of one point.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";
/// A sound of no length.
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA=";
/// What a state that counts says.
const STATE: &str = "the-state-of-round-";

/// Which list changed.
#[derive(Debug, Clone, Copy)]
pub enum Changed {
    Tools,
    Prompts,
}

fn changes() -> &'static Sender<Changed> {
    static CHANGES: OnceLock<Sender<Changed>> = OnceLock::new();
    CHANGES.get_or_init(|| channel(16).0)
}

/// The next change of a list.
pub async fn changed() -> Changed {
    match changes().subscribe().recv().await {
        Ok(changed) => changed,
        Err(_) => std::future::pending().await,
    }
}

/// The tools, each with the properties that it takes.
pub fn tools() -> Vec<Tool> {
    let text = json!({"type": "string"});
    let none = json!({});
    let mut tools: Vec<Tool> = [
        "test_simple_text",
        "test_image_content",
        "test_audio_content",
        "test_embedded_resource",
        "test_multiple_content_types",
        "test_tool_with_logging",
        "test_logging_tool",
        "test_error_handling",
        "test_tool_with_progress",
        "test_elicitation_sep1034_defaults",
        "test_elicitation_sep1330_enums",
        "test_streaming_elicitation",
        "test_missing_capability",
        "test_trigger_tool_change",
        "test_trigger_prompt_change",
        "test_input_required_result_elicitation",
        "test_input_required_result_sampling",
        "test_input_required_result_list_roots",
        "test_input_required_result_request_state",
        "test_input_required_result_multiple_inputs",
        "test_input_required_result_multi_round",
        "test_input_required_result_tampered_state",
        "test_input_required_result_capabilities",
    ]
    .into_iter()
    .map(|name| tool(name, &none, &[]))
    .collect();
    tools.push(tool("test_sampling", &json!({"prompt": text}), &["prompt"]));
    tools.push(tool("test_elicitation", &json!({"message": text}), &["message"]));
    let region = json!({"region": {"type": "string", "x-mcp-header": "Region"}});
    tools.push(tool("test_custom_headers", &region, &[]));
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"address": {"$anchor": "addressDef", "type": "object", "properties": {
            "street": {"type": "string"}, "city": {"type": "string"}}}},
        "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"}, "email": {"type": "string"}},
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": false,
    });
    tools.push(Tool::new("json_schema_2020_12_tool", "Keywords of JSON Schema", object(schema)));
    tools
}

fn object(value: Value) -> JsonObject {
    value.as_object().cloned().unwrap()
}

fn tool(name: &'static str, properties: &Value, required: &[&str]) -> Tool {
    let schema = json!({"type": "object", "properties": properties, "required": required});
    Tool::new(name, format!("Fixture of the suite: {name}"), object(schema))
}

/// The prompts.
pub fn prompts() -> Vec<Prompt> {
    let prompt = |name: &str, arguments: &[&str]| {
        let arguments = arguments.iter().map(|name| json!({"name": name, "required": true}));
        let arguments: Vec<Value> = arguments.collect();
        let prompt = json!({"name": name, "description": "Fixture", "arguments": arguments});
        serde_json::from_value(prompt).unwrap()
    };
    vec![
        prompt("test_simple_prompt", &[]),
        prompt("test_prompt_with_arguments", &["arg1", "arg2"]),
        prompt("test_prompt_with_embedded_resource", &["resourceUri"]),
        prompt("test_prompt_with_image", &[]),
        prompt("test_input_required_result_prompt", &[]),
    ]
}

/// The resources.
pub fn resources() -> Vec<Resource> {
    ["test://static-text", "test://static-binary", "test://watched-resource"]
        .map(|uri| Resource::new(uri, &uri[7..]).with_description("Fixture"))
        .into()
}

/// A resource of the suite.
pub fn resource(uri: &str) -> Option<ReadResourceResponse> {
    let text = |kind: &str, text: &str| json!({"uri": uri, "mimeType": kind, "text": text});
    let id = uri.strip_prefix("test://template/").and_then(|rest| rest.strip_suffix("/data"));
    let content = match (uri, id) {
        ("test://static-text", _) => {
            text("text/plain", "This is the content of the static text resource.")
        }
        ("test://static-binary", _) => json!({"uri": uri, "mimeType": "image/png", "blob": PNG}),
        ("test://watched-resource", _) => text("text/plain", "Watched."),
        (_, Some(id)) => {
            let data =
                json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
            text("application/json", &data.to_string())
        }
        _ => return None,
    };
    let contents: ResourceContents = serde_json::from_value(content).unwrap();
    Some(ReadResourceResult::new(vec![contents]).into())
}

/// A prompt of the suite.
pub fn prompt(request: &GetPromptRequestParams) -> Result<GetPromptResponse, ErrorData> {
    let given = |name: &str| {
        let arguments = request.arguments.as_ref();
        arguments.and_then(|it| it.get(name)?.as_str()).unwrap_or_default().to_owned()
    };
    let text = |text: String| json!({"role": "user", "content": {"type": "text", "text": text}});
    let messages = match request.name.as_str() {
        "test_simple_prompt" => vec![text("This is a simple prompt for testing.".to_owned())],
        "test_prompt_with_arguments" => vec![text(format!(
            "Prompt with arguments: arg1='{}', arg2='{}'",
            given("arg1"),
            given("arg2")
        ))],
        "test_prompt_with_embedded_resource" => vec![
            json!({"role": "user", "content": {"type": "resource", "resource": {
                "uri": given("resourceUri"), "mimeType": "text/plain",
                "text": "Embedded resource content for testing."}}}),
            text("Please process the embedded resource above.".to_owned()),
        ],
        "test_prompt_with_image" => vec![
            json!({"role": "user", "content": {"type": "image", "data": PNG, "mimeType": "image/png"}}),
            text("Please analyze the image above.".to_owned()),
        ],
        "test_input_required_result_prompt" => {
            match answered(&request.input_responses, "user_context") {
                Some(answer) => vec![text(format!("Context: {}", answer["content"]["context"]))],
                None => {
                    let asks = json!({"user_context": form("What context should the prompt use?", "context", "string")});
                    return Ok(required(asks, None).into());
                }
            }
        }
        _ => return Err(ErrorData::invalid_params("no such prompt", None)),
    };
    let messages = serde_json::from_value(Value::Array(messages)).unwrap();
    Ok(GetPromptResult::new(messages).into())
}

/// A form with one field.
fn form(message: &str, field: &str, kind: &str) -> Value {
    let schema =
        json!({"type": "object", "properties": {field: {"type": kind}}, "required": [field]});
    json!({"method": "elicitation/create", "params": {
        "mode": "form", "message": message, "requestedSchema": schema}})
}

fn sampling(text: &str, most: u32) -> Value {
    json!({"method": "sampling/createMessage", "params": {"maxTokens": most,
        "messages": [{"role": "user", "content": {"type": "text", "text": text}}]}})
}

fn required(asks: Value, state: Option<&str>) -> InputRequiredResult {
    let asks = serde_json::from_value(asks).unwrap();
    InputRequiredResult::new(Some(asks), state.map(str::to_owned))
}

/// An answer that is an object.
fn answered(responses: &Option<InputResponses>, key: &str) -> Option<Value> {
    responses.as_ref()?.get(key).filter(|value| value.is_object()).cloned()
}

fn text(text: impl Into<String>) -> CallToolResponse {
    CallToolResult::success(vec![ContentBlock::text(text)]).into()
}

fn content(content: Value) -> CallToolResponse {
    let result: CallToolResult =
        serde_json::from_value(json!({"resultType": "complete", "content": content})).unwrap();
    result.into()
}

/// Runs a tool of the suite.
pub async fn call(
    request: CallToolRequestParams,
    context: RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let arguments = request.arguments.clone().unwrap_or_default();
    let given = |name: &str| arguments.get(name).and_then(Value::as_str).unwrap_or_default();
    let embedded = |uri: &str, kind: &str, text: &str| json!({"type": "resource", "resource": {"uri": uri, "mimeType": kind, "text": text}});
    let image = json!({"type": "image", "data": PNG, "mimeType": "image/png"});
    Ok(match request.name.as_ref() {
        "test_simple_text" => text("This is a simple text response for testing."),
        "test_image_content" => content(json!([image])),
        "test_audio_content" => {
            content(json!([{"type": "audio", "data": WAV, "mimeType": "audio/wav"}]))
        }
        "test_embedded_resource" => content(json!([embedded(
            "test://embedded-resource",
            "text/plain",
            "This is an embedded resource content."
        )])),
        "test_multiple_content_types" => content(json!([
            {"type": "text", "text": "Multiple content types test:"},
            image,
            embedded("test://mixed-content-resource", "application/json", "{\"test\":\"data\",\"value\":123}"),
        ])),
        "test_error_handling" => CallToolResult::error(vec![ContentBlock::text(
            "This tool intentionally returns an error for testing",
        )])
        .into(),
        "test_tool_with_logging" | "test_logging_tool" => {
            // Without sessions, a client asks for the log with each request.
            let version = context.protocol_version();
            let asked = !json!(context.meta)["io.modelcontextprotocol/logLevel"].is_null();
            let wanted = asked || version.is_none_or(|it| it.as_str() < "2026-07-28");
            for line in
                ["Tool execution started", "Tool processing data", "Tool execution completed"]
            {
                if !wanted {
                    break;
                }
                let params = LoggingMessageNotificationParam::new(LoggingLevel::Info, json!(line));
                let _ = context.peer.notify_logging_message(params).await;
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            text("Logged.")
        }
        "test_tool_with_progress" => {
            for progress in [0.0, 50.0, 100.0] {
                if let Some(token) = context.meta.get_progress_token() {
                    let params = ProgressNotificationParam::new(token, progress).with_total(100.0);
                    let _ = context.peer.notify_progress(params).await;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            text("Done.")
        }
        "test_trigger_tool_change" => {
            let _ = changes().send(Changed::Tools);
            text("The tools changed.")
        }
        "test_trigger_prompt_change" => {
            let _ = changes().send(Changed::Prompts);
            text("The prompts changed.")
        }
        "test_custom_headers" => text(format!("region {}", given("region"))),
        "json_schema_2020_12_tool" => text("Called."),
        "test_sampling" => {
            let request = sampling(given("prompt"), 100);
            match put(&context, request).await? {
                ClientResult::CreateMessageResult(result) => {
                    text(format!("LLM response: {}", json!(result)))
                }
                _ => text("Another answer."),
            }
        }
        "test_elicitation" => {
            let schema = json!({"type": "object", "required": ["username", "email"], "properties": {
                "username": {"type": "string", "description": "User's response"},
                "email": {"type": "string", "description": "User's email address"}}});
            let answer = elicit(&context, given("message"), schema).await?;
            text(format!("User response: {answer}"))
        }
        "test_elicitation_sep1034_defaults" => {
            let schema = json!({"type": "object", "required": [], "properties": {
                "name": {"type": "string", "default": "John Doe"},
                "age": {"type": "integer", "default": 30},
                "score": {"type": "number", "default": 95.5},
                "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
                "verified": {"type": "boolean", "default": true}}});
            let answer = elicit(&context, "Defaults", schema).await?;
            text(format!("Elicitation completed: {answer}"))
        }
        "test_elicitation_sep1330_enums" => {
            let titled = |words: [&str; 3], titles: [&str; 3]| -> Vec<Value> {
                let pairs = words.iter().zip(titles);
                pairs.map(|(word, title)| json!({"const": word, "title": title})).collect()
            };
            let words = ["value1", "value2", "value3"];
            let schema = json!({"type": "object", "required": [], "properties": {
                "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
                "titledSingle": {"type": "string",
                    "oneOf": titled(words, ["First Option", "Second Option", "Third Option"])},
                "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"],
                    "enumNames": ["Option One", "Option Two", "Option Three"]},
                "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
                "titledMulti": {"type": "array",
                    "items": {"anyOf": titled(words, ["First Choice", "Second Choice", "Third Choice"])}}}});
            let answer = elicit(&context, "Choices", schema).await?;
            text(format!("Elicitation completed: {answer}"))
        }
        "test_missing_capability" => {
            let capabilities = context.client_capabilities().unwrap_or_default();
            if capabilities.sampling.is_none() {
                let wanted = json!({"sampling": {}});
                let wanted = serde_json::from_value(wanted).unwrap();
                return Err(ErrorData::missing_required_client_capability(wanted));
            }
            text("The client can sample.")
        }
        _ => return rounds(&request, &context),
    })
}

/// Tools that answer in rounds.
fn rounds(
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let got = |key: &str| answered(&request.input_responses, key);
    let state = request.request_state.as_deref();
    let wrong = || Err(ErrorData::invalid_params("the state is not ours", None));
    let first = format!("{STATE}1");
    let second = format!("{STATE}2");
    let name = || form("What is your name?", "name", "string");
    Ok(match request.name.as_ref() {
        "test_input_required_result_elicitation" | "test_streaming_elicitation" => {
            match got("user_name").filter(|it| it["content"]["name"].is_string()) {
                Some(it) => text(format!("Hello, {}!", it["content"]["name"].as_str().unwrap())),
                None => required(json!({"user_name": name()}), None).into(),
            }
        }
        "test_input_required_result_sampling" => match got("capital_question") {
            Some(it) => text(it["content"]["text"].as_str().unwrap_or("no text")),
            None => {
                let asks =
                    json!({"capital_question": sampling("What is the capital of France?", 100)});
                required(asks, None).into()
            }
        },
        "test_input_required_result_list_roots" => match got("client_roots") {
            Some(it) => text(format!("roots: {}", it["roots"])),
            None => required(json!({"client_roots": {"method": "roots/list", "params": {}}}), None)
                .into(),
        },
        "test_input_required_result_request_state"
        | "test_input_required_result_tampered_state" => match (state, got("confirm")) {
            (None, _) => {
                required(json!({"confirm": form("Please confirm", "ok", "boolean")}), Some(&first))
                    .into()
            }
            (Some(state), _) if state != first => return wrong(),
            (Some(_), _) => text("state-ok"),
        },
        "test_input_required_result_multiple_inputs" => match state {
            None => required(
                json!({"user_name": name(), "greeting": sampling("Generate a greeting", 50),
                    "client_roots": {"method": "roots/list", "params": {}}}),
                Some(&first),
            )
            .into(),
            Some(state) if state != first => return wrong(),
            Some(_) => text("All there."),
        },
        "test_input_required_result_multi_round" => match state {
            None => required(
                json!({"step1": form("Step 1: What is your name?", "name", "string")}),
                Some(&first),
            )
            .into(),
            Some(state) if state == first => required(
                json!({"step2": form("Step 2: What is your favorite color?", "color", "string")}),
                Some(&second),
            )
            .into(),
            Some(state) if state == second => text("Both steps are done."),
            Some(_) => return wrong(),
        },
        "test_input_required_result_capabilities" => {
            let can = context.client_capabilities().unwrap_or_default();
            let mut asks = serde_json::Map::new();
            if can.elicitation.is_some() {
                asks.insert("user_name".to_owned(), name());
            }
            if can.sampling.is_some() {
                asks.insert("greeting".to_owned(), sampling("Generate a greeting", 50));
            }
            if request.input_responses.is_some() || asks.is_empty() {
                return Ok(text("Only what the client can do was asked."));
            }
            required(Value::Object(asks), None).into()
        }
        _ => return Err(ErrorData::invalid_params("no such tool", None)),
    })
}

/// Puts a request to the client of a session.
async fn put(
    context: &RequestContext<RoleServer>,
    request: Value,
) -> Result<ClientResult, ErrorData> {
    let request: ServerRequest = match request["method"].as_str() {
        Some("sampling/createMessage") => {
            let params = serde_json::from_value(request["params"].clone()).unwrap();
            ServerRequest::CreateMessageRequest(CreateMessageRequest::new(params))
        }
        _ => {
            let params = serde_json::from_value(request["params"].clone()).unwrap();
            ServerRequest::ElicitRequest(ElicitRequest::new(params))
        }
    };
    let sent = context.peer.send_request(request).await;
    sent.map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

async fn elicit(
    context: &RequestContext<RoleServer>,
    message: &str,
    schema: Value,
) -> Result<String, ErrorData> {
    let request = json!({"method": "elicitation/create", "params": {
        "mode": "form", "message": message, "requestedSchema": schema}});
    match put(context, request).await? {
        ClientResult::ElicitResult(result) => {
            let action = json!(result.action);
            let content = result.content.unwrap_or(Value::Null);
            Ok(format!("action={}, content={content}", action.as_str().unwrap_or_default()))
        }
        _ => Ok("another answer".to_owned()),
    }
}
