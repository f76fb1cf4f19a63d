//! The MCP server of `runner` with the tools, prompts and resources that the official conformance suite asks for. They are
//! no part of the program: `tests/mcp/conformance` starts this, without tokens, for the suite alone.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    missing_docs,
    deprecated,
    reason = "a fixture of tests; the suite still asks for sampling, roots and logging"
)]

mod fixtures;

use std::sync::Arc;

use rmcp::model::*;
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use runner::call::Context;
use runner::caller::{Caller, Front};
use runner::mcp::{ANSWER_WITHIN, Client, Gate, Host, Reach, Settings, Who, Words, serve_http};
use runner::policy_files::Choice;
use serde_json::json;

/// Lets every request in.
struct Open;

impl Gate for Open {
    fn admit(&self, _: Option<&str>) -> Option<Who> {
        Some(Who::with_token("suite", "suite"))
    }
}

/// The server, and beside it what the suite asks for.
#[derive(Clone)]
struct Suite(Client);

impl ServerHandler for Suite {
    fn get_info(&self) -> ServerConfig {
        let mut info = self.0.get_info();
        let more = json!({
            "tools": {"listChanged": true}, "completions": {}, "logging": {},
            "prompts": {"listChanged": true}, "resources": {"subscribe": true, "listChanged": true},
        });
        info.capabilities = serde_json::from_value(more).unwrap();
        info
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        fixtures::tools().into_iter().find(|tool| tool.name == name)
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut result = self.0.list_tools(request, context).await?;
        result.tools.extend(fixtures::tools());
        Ok(result)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        match request.name.starts_with("test_") || request.name.starts_with("json_schema") {
            true => fixtures::call(request, context).await,
            false => self.0.call_tool(request, context).await,
        }
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let mut result = self.0.list_prompts(request, context).await?;
        result.prompts.extend(fixtures::prompts());
        Ok(result)
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        match request.name.starts_with("test_") {
            true => fixtures::prompt(&request),
            false => self.0.get_prompt(request, context).await,
        }
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let mut result = self.0.list_resources(request, context).await?;
        result.resources.extend(fixtures::resources());
        Ok(result)
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let mut result = self.0.list_resource_templates(request, context).await?;
        let template = ResourceTemplate::new("test://template/{id}/data", "template");
        result.resource_templates.push(template.with_mime_type("application/json"));
        Ok(result)
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        match fixtures::resource(&request.uri) {
            Some(result) => Ok(result),
            None => self.0.read_resource(request, context).await,
        }
    }

    async fn complete(
        &self,
        _: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let completion = json!({"resultType": "complete", "completion": {"values": ["paris", "park"], "hasMore": false}});
        Ok(serde_json::from_value(completion).unwrap())
    }

    async fn set_level(
        &self,
        _: SetLevelRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn subscribe(
        &self,
        _: SubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn unsubscribe(
        &self,
        _: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    fn accepted_subscription_filter(
        &self,
        wanted: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(wanted.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let sink = context.sink().clone();
        let changes = async {
            loop {
                let changed = fixtures::changed().await;
                let _ = match changed {
                    fixtures::Changed::Tools => sink.notify_tool_list_changed().await,
                    fixtures::Changed::Prompts => sink.notify_prompt_list_changed().await,
                };
            }
        };
        tokio::select! {
            () = context.cancelled() => Ok(()),
            () = changes => Ok(()),
        }
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.0.on_initialized(context).await;
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let caller = Caller::of_process(Front::Mcp);
    let host = Host::new(Settings {
        context: Context::new(caller, std::env::vars_os().collect()),
        folder: None,
        policy: Choice::Default,
        engine: None,
        image: None,
        tools: Vec::new(),
        answer_within: ANSWER_WITHIN,
        words: Words { policy: |_| String::new(), decision: |_, _, _| String::new() },
    });
    let host = host.unwrap_or_else(|error| panic!("{error}"));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("http://{}/mcp", listener.local_addr().unwrap());
    let make = move || Suite(Client::of_requests(Arc::clone(&host)));
    serve_http(listener, Arc::new(Open), Reach::default(), make).await.unwrap();
}
