//! Requests of the protocol, each to the part that answers it: calls, lists, prompts, resources, changes of lists.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ErrorCode, ErrorData, GetPromptRequestParams,
    GetPromptResponse, GetPromptResult, Implementation, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    Prompt, PromptMessage, ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse,
    ReadResourceResult, ResourceContents, Role, ServerCapabilities, ServerConfig,
    SubscriptionFilter,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{RoleServer, ServerHandler};

use super::registry;
use super::resources;
use super::serve::{Client, internal};
use crate::call::CallError;
use crate::error::Failure as _;

/// The oldest version of the protocol that is spoken.
const OLDEST: &str = "2025-06-18";
/// Tools on one page of the list.
const PAGE: usize = 64;
/// How often the list of tools is compared while a client wants to hear of changes.
const LOOK: Duration = Duration::from_secs(2);

impl Client {
    /// A figure for the list of tools that changes with it.
    async fn list_figure(&self) -> Option<u64> {
        let tools = registry::list(&self.host).await.ok()?;
        let mut hasher = DefaultHasher::new();
        serde_json::to_string(&tools).ok()?.hash(&mut hasher);
        Some(hasher.finish())
    }

    /// Waits until the list of tools is another than before.
    async fn list_changes(&self, before: &mut Option<u64>) {
        loop {
            let now = self.list_figure().await;
            if before.is_some() && now.is_some() && *before != now {
                *before = now;
                return;
            }
            *before = now.or(*before);
            tokio::time::sleep(LOOK).await;
        }
    }
}

fn of_call(error: CallError) -> ErrorData {
    internal(format!("[{}] {error}", error.code().as_str()))
}

/// One page, from a cursor of ours.
fn page<T>(
    all: Vec<T>,
    request: Option<PaginatedRequestParams>,
) -> Result<(Vec<T>, Option<String>), ErrorData> {
    let cursor = request.and_then(|request| request.cursor);
    let from: usize = match cursor {
        None => 0,
        Some(cursor) => cursor
            .parse()
            .ok()
            .filter(|from| *from > 0 && *from < all.len())
            .ok_or_else(|| ErrorData::invalid_params("no page begins at this cursor", None))?,
    };
    let next = (all.len() > from + PAGE).then(|| (from + PAGE).to_string());
    Ok((all.into_iter().skip(from).take(PAGE).collect(), next))
}

impl ServerHandler for Client {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_prompts()
            .enable_resources()
            .build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("runner", env!("CARGO_PKG_VERSION")))
            .with_instructions(resources::instructions(&self.host))
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        let known = ProtocolVersion::KNOWN_VERSIONS.iter();
        known.filter(|version| version.as_str() >= OLDEST).cloned().collect()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.call(request, &context).await
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = registry::list(&self.host).await.map_err(of_call)?;
        let (tools, next) = page(tools, request)?;
        Ok(ListToolsResult { next_cursor: next, ..ListToolsResult::with_all_items(tools) })
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let prompt = Prompt::new(resources::PROMPT, Some(resources::PROMPT_ABOUT), None);
        let (prompts, _) = page(vec![prompt], request)?;
        Ok(ListPromptsResult::with_all_items(prompts))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        if request.name != resources::PROMPT {
            return Err(ErrorData::invalid_params("there is no prompt of this name", None));
        }
        let text = resources::prompt(&self.host).await.map_err(of_call)?;
        let result = GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]);
        Ok(result.with_description(resources::PROMPT_ABOUT).into())
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let (resources, _) = page(resources::resources(), request)?;
        Ok(ListResourcesResult::with_all_items(resources))
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let (templates, _) = page(resources::templates(), request)?;
        Ok(ListResourceTemplatesResult::with_all_items(templates))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let who = self.who(&context)?;
        let uri = request.uri;
        let read = resources::read(&self.host, &who, &uri).await.map_err(of_call)?;
        let Some((text, kind)) = read else {
            let data = serde_json::json!({ "uri": uri });
            let code = ErrorCode::RESOURCE_NOT_FOUND;
            return Err(ErrorData::new(code, "there is no such resource", Some(data)));
        };
        let contents = ResourceContents::text(text, uri).with_mime_type(kind);
        Ok(ReadResourceResult::new(vec![contents]).into())
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let (client, peer) = (self.clone(), context.peer);
        tokio::spawn(async move {
            let mut before = None;
            while !peer.is_transport_closed() {
                let changed = client.list_changes(&mut before);
                // A client that has left hears nothing, and nothing is looked at for it.
                if tokio::time::timeout(10 * LOOK, changed).await.is_ok()
                    && peer.notify_tool_list_changed().await.is_err()
                {
                    return;
                }
            }
        });
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut before = None;
        let wanted = context.accepted().tools_list_changed == Some(true);
        loop {
            tokio::select! {
                () = context.cancelled() => return Ok(()),
                () = self.list_changes(&mut before), if wanted => {
                    if context.sink().notify_tool_list_changed().await.is_err() {
                        return Ok(());
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_follow_each_other_to_the_end() {
        let all: Vec<usize> = (0..150).collect();
        let (mut seen, mut cursor) = (Vec::new(), None);
        loop {
            let request = cursor.take().map(|cursor| {
                let mut request = PaginatedRequestParams::default();
                request.cursor = Some(cursor);
                request
            });
            let (items, next) = page(all.clone(), request).unwrap();
            seen.extend(items);
            cursor = next;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(seen, all);
        for wrong in ["x", "-1", "150", "99999999999999999999999"] {
            let mut request = PaginatedRequestParams::default();
            request.cursor = Some(wrong.to_owned());
            assert!(page(all.clone(), Some(request)).is_err(), "{wrong}");
        }
    }
}
