//! A server of somebody else's making that is served by this stack, beside our tools or alone.
//!
//! [`Guest`] wraps any `rmcp` handler; `joined` makes one server of it and of ours. Everything in front of rmcp holds for
//! it too: limits, Host and Origin, authentication, scopes, deadlines, the strict reading of its arguments.

#![expect(deprecated, reason = "clients of earlier revisions still subscribe and set levels")]

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use http::request::Parts;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult,
    GetPromptRequestParams, GetPromptResponse, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams,
    ReadResourceResponse, ServerConfig, SetLevelRequestParams, SubscribeRequestParams,
    SubscriptionFilter, Tool, UnsubscribeRequestParams,
};
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};

use crate::access::Visitor;
use crate::auth::Caller;
use crate::tools::Needs;

/// An `rmcp` handler with its own tools, resources and prompts, to be served by a [`Server`](crate::Server).
///
/// What it may count on:
///
/// - [`caller`] says who asks; nobody gets here without valid credentials, and no service (see [`Caller`]) calls a tool.
/// - A tool with `readOnlyHint` needs the scope to read, every other one the scope to write, unless [`Guest::needs`] says
///   otherwise. Whoever has too little neither sees it in the list nor gets a call through. Resources, prompts and
///   completions need the scope to read.
/// - Arguments were read strictly (no duplicate keys, no numbers beyond 2^53-1, at most 32 levels) and are an object.
/// - A call runs in a task of its own: when the client leaves or the deadline passes, the waiting ends, not the work.
///   rmcp's cancellation token of the call is cancelled then, and the handler may look at it.
///
/// What it must do: answer [`ServerHandler::get_tool`] for each of its tools (rmcp's macros do). A tool that is not found
/// there is neither listed nor called. There are no sessions, so requests to the client (`Peer::create_message` and the
/// like) are never answered; ask with an `InputRequiredResult` instead (MCP 2026-07-28). Tasks and skills are not passed on.
#[derive(Clone)]
pub struct Guest {
    hosted: Arc<dyn Hosted>,
    needs: BTreeMap<String, Needs>,
}

impl fmt::Debug for Guest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guest").field("needs", &self.needs).finish_non_exhaustive()
    }
}

impl Guest {
    /// Serves `handler`.
    pub fn new(handler: impl ServerHandler) -> Self {
        Self { hosted: Arc::new(Of(handler)), needs: BTreeMap::new() }
    }

    /// Says what a tool needs, instead of what follows from its annotations.
    #[must_use]
    pub fn needs(mut self, tool: &str, needs: Needs) -> Self {
        self.needs.insert(tool.to_owned(), needs);
        self
    }

    /// What a call of this tool needs; `None` if there is no such tool.
    pub(crate) fn needs_of(&self, tool: &str) -> Option<Needs> {
        let found = self.hosted.tool(tool)?;
        if let Some(needs) = self.needs.get(tool) {
            return Some(*needs);
        }
        let reads_only = found.annotations.is_some_and(|hints| hints.read_only_hint == Some(true));
        Some(if reads_only { Needs::Read } else { Needs::Write })
    }

    /// The first tool that somebody says something of and that is not there.
    pub(crate) fn misnamed(&self) -> Option<&str> {
        let mut named = self.needs.keys();
        named.find(|name| self.hosted.tool(name).is_none()).map(String::as_str)
    }

    pub(crate) fn hosted(&self) -> &dyn Hosted {
        &*self.hosted
    }
}

/// Who asks, for a handler that is a [`Guest`].
///
/// `None` only for a context that did not come from a [`Server`](crate::Server).
#[must_use]
pub fn caller(context: &RequestContext<RoleServer>) -> Option<&Caller> {
    let parts = context.extensions.get::<Parts>()?;
    parts.extensions.get::<Visitor>().map(|visitor| &visitor.caller)
}

type Context = RequestContext<RoleServer>;
type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, ErrorData>> + Send + 'a>>;

/// A type of its own, so that the methods of [`ServerHandler`] and of [`Hosted`] are never mixed up.
struct Of<H>(H);

/// Declares [`Hosted`], which is [`ServerHandler`] without what makes that one unfit for `dyn`.
macro_rules! hosted {
    ($($method:ident($params:ty) -> $answer:ty;)*) => {
        /// A handler of any type.
        pub(crate) trait Hosted: Send + Sync {
            fn info(&self) -> ServerConfig;
            fn tool(&self, name: &str) -> Option<Tool>;
            fn filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter>;
            fn listen(&self, context: SubscriptionContext) -> Answer<'_, ()>;
            $(fn $method(&self, params: $params, context: Context) -> Answer<'_, $answer>;)*
        }

        impl<H: ServerHandler> Hosted for Of<H> {
            fn info(&self) -> ServerConfig {
                self.0.get_info()
            }

            fn tool(&self, name: &str) -> Option<Tool> {
                self.0.get_tool(name)
            }

            fn filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
                self.0.accepted_subscription_filter(requested)
            }

            fn listen(&self, context: SubscriptionContext) -> Answer<'_, ()> {
                Box::pin(self.0.listen(context))
            }

            $(
                fn $method(&self, params: $params, context: Context) -> Answer<'_, $answer> {
                    Box::pin(self.0.$method(params, context))
                }
            )*
        }
    };
}

hosted! {
    list_tools(Option<PaginatedRequestParams>) -> ListToolsResult;
    call_tool(CallToolRequestParams) -> CallToolResponse;
    list_resources(Option<PaginatedRequestParams>) -> ListResourcesResult;
    list_resource_templates(Option<PaginatedRequestParams>) -> ListResourceTemplatesResult;
    read_resource(ReadResourceRequestParams) -> ReadResourceResponse;
    subscribe(SubscribeRequestParams) -> ();
    unsubscribe(UnsubscribeRequestParams) -> ();
    list_prompts(Option<PaginatedRequestParams>) -> ListPromptsResult;
    get_prompt(GetPromptRequestParams) -> GetPromptResponse;
    complete(CompleteRequestParams) -> CompleteResult;
    set_level(SetLevelRequestParams) -> ();
}
