//! The two sides as rmcp sees them: one server.

use std::borrow::Cow;

use http::request::Parts;
use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult,
    DiscoverResult, ErrorCode, GetPromptRequestParams, GetPromptResponse, InitializeRequestParams,
    InitializeResult, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ListToolsResult, PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams,
    ReadResourceResponse, Reference, ServerConfig, SetLevelRequestParams, SubscribeRequestParams,
    SubscriptionFilter, Tool, UnsubscribeRequestParams,
};
use rmcp::service::SubscriptionContext;
use rmcp::{ErrorData, ServerHandler};

use super::united::united;
use super::{Context, Joined, Side, call, is_own_resource, is_own_subscription, may_read};
use crate::access::Visitor;
use crate::guest::Guest;
use crate::handler::TTL_MS;
use crate::tools::{self, VERSIONS};

/// The items of both sides, ours first. What two sides say about caching holds for both only as far as it is the same, so
/// the shorter time and the narrower scope are told.
macro_rules! listed {
    ($self:ident, $method:ident, $capability:ident, $items:ident, $request:ident, $context:ident) => {{
        let (own, guest) = $self.asked($request.as_ref());
        let own = own.filter(|own| own.get_info().capabilities.$capability.is_some());
        let guest = guest.map(Guest::hosted);
        let guest = guest.filter(|guest| guest.info().capabilities.$capability.is_some());
        match (own, guest) {
            (Some(own), None) => own.$method($request, $context).await,
            (None, Some(guest)) => {
                may_read(&$context)?;
                guest.$method($request, $context).await
            }
            (Some(own), Some(guest)) => {
                may_read(&$context)?;
                let mut both = own.$method($request.clone(), $context.clone()).await?;
                if both.next_cursor.is_some() {
                    return Ok(both);
                }
                let theirs = guest.$method(None, $context).await?;
                both.$items.extend(theirs.$items);
                both.next_cursor = theirs.next_cursor;
                both.ttl_ms = both.ttl_ms.min(theirs.ttl_ms);
                if both.cache_scope != theirs.cache_scope {
                    both.cache_scope = Some(CacheScope::Private);
                }
                Ok(both)
            }
            (None, None) => Err(ErrorData::new(
                ErrorCode::METHOD_NOT_FOUND,
                "nothing of this kind is served",
                None,
            )),
        }
    }};
}

impl ServerHandler for Joined {
    fn get_info(&self) -> ServerConfig {
        match (&self.own, &self.guest) {
            (Some(own), None) => own.get_info(),
            (None, Some(guest)) => guest.hosted().info(),
            (None, None) => ServerConfig::default(),
            (Some(own), Some(guest)) => {
                let (mut both, theirs) = (own.get_info(), guest.hosted().info());
                both.capabilities = united(both.capabilities, theirs.capabilities);
                both.instructions = match (both.instructions, theirs.instructions) {
                    (Some(ours), Some(theirs)) => Some(format!("{ours}\n\n{theirs}")),
                    (ours, theirs) => ours.or(theirs),
                };
                both
            }
        }
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(&VERSIONS)
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: Context,
    ) -> Result<InitializeResult, ErrorData> {
        context.peer.set_peer_info(request.clone());
        let mut said = self.negotiate_initialize(&request)?;
        // These revisions subscribe by `resources/subscribe`, which ours does not have.
        let theirs = self.guest.as_ref().and_then(|g| g.hosted().info().capabilities.resources);
        if let Some(resources) = &mut said.capabilities.resources {
            resources.subscribe = theirs.and_then(|theirs| theirs.subscribe);
        }
        Ok(said)
    }

    async fn discover(&self, _: Context) -> Result<DiscoverResult, ErrorData> {
        let discovered = DiscoverResult::from_server_info(VERSIONS.clone(), self.get_info());
        Ok(discovered.with_ttl_ms(TTL_MS).with_cache_scope(CacheScope::Private))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        match (&self.own, &self.guest) {
            (Some(own), _) if tools::spec(name).is_some() => own.get_tool(name),
            (_, Some(guest)) => guest.hosted().tool(name),
            (Some(_) | None, None) => None,
        }
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Result<ListToolsResult, ErrorData> {
        let (own, guest) = self.asked(request.as_ref());
        let ours = match own {
            Some(own) => Some(own.list_tools(request.clone(), context.clone()).await?),
            None => None,
        };
        let Some(guest) = guest else {
            return Ok(ours.unwrap_or_default());
        };
        let theirs = self.guests_tools(guest, request, context).await?;
        Ok(match ours {
            None => theirs,
            Some(mut both) => {
                both.tools.extend(theirs.tools);
                both.next_cursor = theirs.next_cursor;
                both
            }
        })
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: Context,
    ) -> Result<CallToolResponse, ErrorData> {
        match (&self.own, &self.guest) {
            (Some(own), guest) if guest.is_none() || tools::spec(&request.name).is_some() => {
                own.call_tool(request, context).await
            }
            (_, Some(guest)) => call::guests_tool(guest, request, context).await,
            (Some(_) | None, None) => Err(ErrorData::invalid_params("unknown tool", None)),
        }
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Result<ListResourcesResult, ErrorData> {
        listed!(self, list_resources, resources, resources, request, context)
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        listed!(self, list_resource_templates, resources, resource_templates, request, context)
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Result<ListPromptsResult, ErrorData> {
        listed!(self, list_prompts, prompts, prompts, request, context)
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: Context,
    ) -> Result<ReadResourceResponse, ErrorData> {
        match self.of(is_own_resource(&request.uri), &context)? {
            Side::Own(own) => own.read_resource(request, context).await,
            Side::Guest(guest) => guest.read_resource(request, context).await,
        }
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: Context,
    ) -> Result<(), ErrorData> {
        match self.of(is_own_resource(&request.uri), &context)? {
            Side::Own(own) => own.subscribe(request, context).await,
            Side::Guest(guest) => guest.subscribe(request, context).await,
        }
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        context: Context,
    ) -> Result<(), ErrorData> {
        match self.of(is_own_resource(&request.uri), &context)? {
            Side::Own(own) => own.unsubscribe(request, context).await,
            Side::Guest(guest) => guest.unsubscribe(request, context).await,
        }
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        match (&self.own, &self.guest) {
            (Some(own), guest) if guest.is_none() || is_own_subscription(requested) => {
                own.accepted_subscription_filter(requested)
            }
            (_, Some(guest)) => guest.hosted().filter(requested),
            (Some(_) | None, None) => None,
        }
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        match (&self.own, &self.guest) {
            (Some(own), guest) if guest.is_none() || is_own_subscription(context.requested()) => {
                own.listen(context).await
            }
            (_, Some(guest)) => guest.hosted().listen(context).await,
            (Some(_) | None, None) => Ok(()),
        }
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: Context,
    ) -> Result<GetPromptResponse, ErrorData> {
        match self.of(self.is_own_prompt(&request.name), &context)? {
            Side::Own(own) => own.get_prompt(request, context).await,
            Side::Guest(guest) => guest.get_prompt(request, context).await,
        }
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: Context,
    ) -> Result<CompleteResult, ErrorData> {
        let is_own = match &request.r#ref {
            Reference::Resource(resource) => is_own_resource(&resource.uri),
            Reference::Prompt(prompt) => self.is_own_prompt(&prompt.name),
            _ => false,
        };
        match self.of(is_own, &context)? {
            Side::Own(own) => own.complete(request, context).await,
            Side::Guest(guest) => guest.complete(request, context).await,
        }
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        context: Context,
    ) -> Result<(), ErrorData> {
        match self.of(false, &context)? {
            Side::Own(own) => own.set_level(request, context).await,
            Side::Guest(guest) => guest.set_level(request, context).await,
        }
    }
}

impl Joined {
    /// The guest's tools that are neither ours nor unknown to it, and that the caller may call.
    async fn guests_tools(
        &self,
        guest: &Guest,
        request: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Result<ListToolsResult, ErrorData> {
        let parts = context.extensions.get::<Parts>();
        let Some(visitor) = parts.and_then(|parts| parts.extensions.get::<Visitor>()).cloned()
        else {
            return Err(ErrorData::internal_error("the request lost its parts", None));
        };
        let mut theirs = guest.hosted().list_tools(request, context).await?;
        theirs.tools.retain(|tool| {
            let needs = guest.needs_of(&tool.name);
            self.own_tool(&tool.name).is_none() && needs.is_some_and(|needs| visitor.lists(needs))
        });
        // The list depends on what the caller may do.
        theirs.cache_scope = theirs.cache_scope.map(|_| CacheScope::Private);
        Ok(theirs)
    }
}
