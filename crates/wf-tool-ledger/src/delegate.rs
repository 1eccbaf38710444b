//! Everything that a handler does, passed on to the one behind; only calls and lists of tools go through `guard`.

#![expect(deprecated, reason = "clients of earlier revisions still subscribe and set levels")]

use std::borrow::Cow;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelledNotificationParam, CompleteRequestParams,
    CompleteResult, CustomNotification, CustomRequest, CustomResult, DiscoverResult,
    GetPromptRequestParams, GetPromptResponse, InitializeRequestParams, InitializeResult,
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, ProgressNotificationParam, ProtocolVersion, ReadResourceRequestParams,
    ReadResourceResponse, ServerConfig, SetLevelRequestParams, SubscribeRequestParams,
    SubscriptionFilter, Tool, UnsubscribeRequestParams,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};

use crate::guard::RetrySafe;

type Context = RequestContext<RoleServer>;
type Told = NotificationContext<RoleServer>;

macro_rules! passed_on {
    ($($method:ident($($argument:ident: $type:ty),*) -> $answer:ty;)*) => {
        $(async fn $method(&self, $($argument: $type),*) -> $answer {
            self.handler().$method($($argument),*).await
        })*
    };
}

impl<H: ServerHandler> ServerHandler for RetrySafe<H> {
    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: Context,
    ) -> Result<CallToolResponse, ErrorData> {
        self.call(request, context).await
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: Context,
    ) -> Result<ListToolsResult, ErrorData> {
        self.list(request, context).await
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.get(name)
    }

    fn get_info(&self) -> ServerConfig {
        self.handler().get_info()
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        self.handler().supported_protocol_versions()
    }

    fn negotiate_initialize(
        &self,
        request: &InitializeRequestParams,
    ) -> Result<InitializeResult, ErrorData> {
        self.handler().negotiate_initialize(request)
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        self.handler().accepted_subscription_filter(requested)
    }

    passed_on! {
        ping(context: Context) -> Result<(), ErrorData>;
        initialize(request: InitializeRequestParams, context: Context) -> Result<InitializeResult, ErrorData>;
        discover(context: Context) -> Result<DiscoverResult, ErrorData>;
        complete(request: CompleteRequestParams, context: Context) -> Result<CompleteResult, ErrorData>;
        set_level(request: SetLevelRequestParams, context: Context) -> Result<(), ErrorData>;
        get_prompt(request: GetPromptRequestParams, context: Context) -> Result<GetPromptResponse, ErrorData>;
        list_prompts(request: Option<PaginatedRequestParams>, context: Context) -> Result<ListPromptsResult, ErrorData>;
        list_resources(request: Option<PaginatedRequestParams>, context: Context)
            -> Result<ListResourcesResult, ErrorData>;
        list_resource_templates(request: Option<PaginatedRequestParams>, context: Context)
            -> Result<ListResourceTemplatesResult, ErrorData>;
        read_resource(request: ReadResourceRequestParams, context: Context) -> Result<ReadResourceResponse, ErrorData>;
        listen(context: SubscriptionContext) -> Result<(), ErrorData>;
        subscribe(request: SubscribeRequestParams, context: Context) -> Result<(), ErrorData>;
        unsubscribe(request: UnsubscribeRequestParams, context: Context) -> Result<(), ErrorData>;
        on_custom_request(request: CustomRequest, context: Context) -> Result<CustomResult, ErrorData>;
        on_cancelled(notification: CancelledNotificationParam, context: Told) -> ();
        on_progress(notification: ProgressNotificationParam, context: Told) -> ();
        on_initialized(context: Told) -> ();
        on_roots_list_changed(context: Told) -> ();
        on_custom_notification(notification: CustomNotification, context: Told) -> ();
    }
}
