//! The handler: an rmcp server like any other. `tools`, `rounds` (tools that ask back), `resources`, `prompts`.
//!
//! Left out, since they need requests from the server to the client, and with those a session: `test_sampling`,
//! `test_elicitation`, `test_elicitation_sep1034_defaults`, `test_elicitation_sep1330_enums`, `test_reconnection`. Tasks are
//! an extension that this stack does not pass on.

#![expect(deprecated, reason = "the suite wants what later revisions of MCP advise against, too")]

mod prompts;
mod resources;
mod rounds;
mod tools;

use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult,
    CompletionInfo, GetPromptRequestParams, GetPromptResponse, Implementation, JsonObject,
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse, RequestStateCodec,
    RequestStateError, ServerCapabilities, ServerConfig, SetLevelRequestParams,
    SubscribeRequestParams, SubscriptionFilter, Tool, UnsubscribeRequestParams,
};
use rmcp::service::{RequestContext, SubscriptionContext, SubscriptionSink};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::Value;

type Context = RequestContext<RoleServer>;

/// Nothing here changes while the process lives.
const TTL_MS: u64 = 60_000;
/// A picture of one red point.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8/5+hHgAHggJ/PchI7wAAAABJRU5ErkJggg==";
/// Anybody may know the key of a server that guards nothing. One of worth has a secret one.
const STATE_KEY: &[u8] = b"the key of a server that guards nothing";
/// Streams of notifications at once.
const STREAMS_MAX: usize = 64;

/// What the suite wants to find.
#[derive(Clone)]
pub(crate) struct Fixtures {
    states: RequestStateCodec,
    streams: Arc<Mutex<Vec<SubscriptionSink>>>,
}

/// Every name, for the golden file.
pub(crate) fn offered() -> Vec<String> {
    let tools = tools::all();
    let tools = tools.iter().map(|tool| format!("tool {}", tool.name));
    let resources = resources::all();
    let resources = resources.iter().map(|resource| format!("resource {}", resource.uri));
    let templates = resources::templates();
    let templates = templates.iter().map(|template| format!("template {}", template.uri_template));
    let prompts = prompts::all();
    let prompts = prompts.iter().map(|prompt| format!("prompt {}", prompt.name));
    tools.chain(resources).chain(templates).chain(prompts).collect()
}

fn internal(error: impl std::fmt::Display) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

fn object(value: &Value) -> JsonObject {
    value.as_object().cloned().unwrap_or_default()
}

/// The text of an argument.
fn text<'a>(arguments: Option<&'a JsonObject>, name: &str) -> Result<&'a str, ErrorData> {
    let found = arguments.and_then(|arguments| arguments.get(name)).and_then(Value::as_str);
    found.ok_or_else(|| ErrorData::invalid_params(format!("{name} must be a string"), None))
}

impl Fixtures {
    pub(crate) fn new() -> Result<Self, RequestStateError> {
        Ok(Self { states: RequestStateCodec::try_new(STATE_KEY)?, streams: Arc::default() })
    }

    fn streams(&self) -> Vec<SubscriptionSink> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl ServerHandler for Fixtures {
    fn get_info(&self) -> ServerConfig {
        let can = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_completions()
            .enable_logging()
            .build();
        let name = Implementation::new("conformance_server", env!("CARGO_PKG_VERSION"));
        ServerConfig::new(can).with_server_info(name)
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        tools::all().into_iter().find(|tool| tool.name == name)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListToolsResult, ErrorData> {
        let all = ListToolsResult::with_all_items(tools::all());
        Ok(all.with_ttl_ms(TTL_MS).with_cache_scope(CacheScope::Public))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: Context,
    ) -> Result<CallToolResponse, ErrorData> {
        if rounds::is_one(&request.name) {
            return rounds::call(&self.states, &request, &context);
        }
        tools::call(&request, &context, &self.streams()).await
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListResourcesResult, ErrorData> {
        let all = ListResourcesResult::with_all_items(resources::all());
        Ok(all.with_ttl_ms(TTL_MS).with_cache_scope(CacheScope::Public))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let all = ListResourceTemplatesResult::with_all_items(resources::templates());
        Ok(all.with_ttl_ms(TTL_MS).with_cache_scope(CacheScope::Public))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: Context,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let read = resources::read(&request.uri)?;
        Ok(read.with_ttl_ms(TTL_MS).with_cache_scope(CacheScope::Public).into())
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        _: Context,
    ) -> Result<(), ErrorData> {
        resources::read(&request.uri).map(drop)
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _: Context,
    ) -> Result<(), ErrorData> {
        resources::read(&request.uri).map(drop)
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(requested.supported_by(&self.get_info().capabilities))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mine = context.sink().clone();
        {
            let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
            if streams.len() >= STREAMS_MAX {
                return Err(internal("too many streams"));
            }
            streams.push(mine.clone());
        }
        context.cancelled().await;
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        streams.retain(|stream| stream.id() != mine.id());
        Ok(())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListPromptsResult, ErrorData> {
        let all = ListPromptsResult::with_all_items(prompts::all());
        Ok(all.with_ttl_ms(TTL_MS).with_cache_scope(CacheScope::Public))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: Context,
    ) -> Result<GetPromptResponse, ErrorData> {
        prompts::get(&request)
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _: Context,
    ) -> Result<CompleteResult, ErrorData> {
        let known = ["paris", "park", "party"];
        let begun = known.iter().filter(|value| value.starts_with(&*request.argument.value));
        let values = begun.map(|value| (*value).to_owned()).collect();
        Ok(CompleteResult::new(CompletionInfo::with_all_values(values).map_err(internal)?))
    }

    /// There is no session to keep a level in: every message of a call is sent.
    async fn set_level(&self, _: SetLevelRequestParams, _: Context) -> Result<(), ErrorData> {
        Ok(())
    }
}
