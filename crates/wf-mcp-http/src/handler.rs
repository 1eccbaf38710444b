//! The server as rmcp sees it: says what it is, lists the tools, and turns calls into calls of the engine.
//!
//! Questions that the client can ask are `asking`'s. A call runs in a task of its own: the client going away, rmcp's
//! cancellation and the request's deadline end the waiting, never the work. What was begun is committed or rejected, and the caller may ask again.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::Extensions;
use http::request::Parts;
use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestParams,
    CompleteResult, DiscoverResult, GetPromptRequestParams, GetPromptResponse, Implementation,
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    MetaObject, PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams,
    ReadResourceResponse, ServerCapabilities, ServerConfig, SubscriptionFilter, Tool,
};
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::Value;
use tokio::time::timeout_at;
use tracing::{Instrument, Span};
use wf_core::engine::{CallMeta, Engine, Reply};
use wf_core::errors::ErrorCode;
use wf_core::models::{Principal, TenantId};
use wf_core::state_machine::Rejection;

use crate::access::Visitor;
use crate::asking::{self, Given, Round};
use crate::auth;
use crate::exchange::{Deadlines, InFlight, RequestId, RequestSpan};
use crate::failpoint;
use crate::fault::RpcFault;
use crate::resources::Library;
use crate::resources::reader::Reader;
use crate::subscriptions;
use crate::telemetry;
use crate::tools::{self, LISTED, Spec, TOOLS, VERSIONS};
use crate::wire::arguments::{self, Asked};
use crate::wire::envelope::{self, Arguments};
use crate::wire::{meta, result};

/// Arguments as the front read them, in the extensions of the request.
#[derive(Debug, Clone)]
pub(crate) struct Sent(pub(crate) Arc<Arguments>);

/// How long a client may keep what is a function of the build, in milliseconds.
pub(crate) const TTL_MS: u64 = 5 * 60 * 1_000;

/// Answers MCP. Cheap to clone: rmcp makes one for each request.
#[derive(Debug, Clone)]
pub(crate) struct Handler {
    engine: Arc<Engine>,
    library: Arc<Library>,
}

/// What a call needs of the request around it.
pub(crate) struct Caller {
    pub(crate) principal: Arc<Principal>,
    pub(crate) request_id: RequestId,
    pub(crate) span: Span,
    pub(crate) deadlines: Deadlines,
    pub(crate) place: Option<InFlight>,
}

impl Caller {
    /// Takes it out of the extensions; the layers put all of it there, and let only persons call.
    pub(crate) fn of(parts: &Parts) -> Option<Self> {
        let extensions = &parts.extensions;
        Some(Self {
            principal: match &extensions.get::<Visitor>()?.caller {
                auth::Caller::User(principal) => Arc::clone(principal),
                auth::Caller::Service(_) => return None,
            },
            request_id: extensions.get::<RequestId>().cloned()?,
            span: extensions.get::<RequestSpan>().map(|s| s.0.clone())?,
            deadlines: extensions.get::<Deadlines>().copied()?,
            place: extensions.get::<InFlight>().cloned(),
        })
    }
}

impl Handler {
    pub(crate) fn new(engine: Arc<Engine>) -> Self {
        let library = Arc::new(Library::new(Arc::clone(&engine)));
        Self { engine, library }
    }

    /// Begins to listen, before anything is answered.
    pub(crate) fn begin_listening(
        &self,
        extensions: &mut Extensions,
        request: &envelope::Request,
    ) -> Result<(), RpcFault> {
        self.library.begin(extensions, request)
    }

    /// Lets go everybody who listens for changes.
    pub(crate) fn stop_listening(&self) {
        self.library.hub.stop();
    }

    /// The answer to arguments that cannot be read; to a start it says what a start needs.
    fn refuse(
        &self,
        spec: &Spec,
        sent: &Arguments,
        rejection: &Rejection,
        meta: &CallMeta,
    ) -> Reply {
        if spec.name != "start_workflow" {
            return self.engine.refuse(rejection, meta);
        }
        let procedure = match sent {
            Arguments::Object(map) => map.get("procedure_id").and_then(Value::as_str),
            Arguments::NoObject(_) | Arguments::Unsafe { .. } => None,
        };
        self.engine.refuse_start(rejection, procedure, meta)
    }

    /// Answers one call of a tool; never fails.
    async fn call(
        &self,
        spec: &'static Spec,
        sent: &Arguments,
        meta: CallMeta,
        meta_verdict: Result<(), Rejection>,
        caller: Caller,
        given: Given,
    ) -> Reply {
        // Rights first: whoever has none learns neither what is wrong with the arguments nor what could be started.
        if let Err(rejection) = spec.needs.of(&caller.principal) {
            return self.engine.refuse(&rejection, &meta);
        }
        let asked = meta_verdict.and_then(|()| read(spec, sent, &meta));
        let asked = match asked {
            Ok(asked) => asked,
            Err(rejection) => return self.refuse(spec, sent, &rejection, &meta),
        };
        let Caller { principal, request_id, span, deadlines, place } = caller;
        let (engine, its_meta, its_id) =
            (Arc::clone(&self.engine), meta.clone(), request_id.clone());
        let work = async move {
            let mut reply = asking::go_on(&engine, &principal, asked, &given, &its_meta).await;
            if let Some(why) = unlogged(&reply) {
                let incident = &*its_id.0;
                tracing::error!(incident, tool = spec.name, why, "a call failed by a bug");
                reply = engine.internal(incident, &its_meta);
            }
            if failpoint::is_asked(failpoint::ANSWER) {
                reply = engine.internal("asked for", &its_meta);
            }
            drop(place);
            reply
        };
        let task = tokio::spawn(work.instrument(span));
        match timeout_at(deadlines.answer_by, task).await {
            Ok(Ok(reply)) => reply,
            Ok(Err(_)) => {
                let incident = &*request_id.0;
                tracing::error!(incident, tool = spec.name, "a call panicked");
                self.engine.internal(incident, &meta)
            }
            Err(_) => self.engine.refuse(&too_slow(), &meta),
        }
    }
}

fn read(spec: &'static Spec, sent: &Arguments, meta: &CallMeta) -> Result<Asked, Rejection> {
    match sent {
        Arguments::Object(map) => arguments::read(spec, map, meta),
        Arguments::NoObject(kind) => {
            let rule = format!("must be an object, not {kind}");
            Err(Rejection::invalid("arguments", &rule))
        }
        Arguments::Unsafe { field, rule } => Err(Rejection::invalid(field, rule)),
    }
}

pub(crate) async fn ask(
    engine: &Engine,
    principal: &Principal,
    asked: &Asked,
    meta: &CallMeta,
) -> Reply {
    match asked {
        Asked::Change(call) => engine.execute(principal, call).await,
        Asked::FindWork(query) => engine.find_work(principal, query, meta).await,
        Asked::GetStatus(query) => engine.get_status(principal, query, meta).await,
        Asked::CheckValue(query) => engine.check_value(principal, query, meta).await,
    }
}

/// What went wrong inside, where the engine answers with a bug of ours: for the log, the caller gets an incident instead.
fn unlogged(reply: &Reply) -> Option<&str> {
    let error = reply.body.get("error").filter(|_| reply.error == Some(ErrorCode::Internal))?;
    if error.pointer("/details/incident").is_some() {
        return None;
    }
    Some(error.get("message").and_then(Value::as_str).unwrap_or_default())
}

/// The call goes on; the same call again will learn what became of it.
fn too_slow() -> Rejection {
    let text = "no answer in time: the outcome is unknown, send the very same call again";
    Rejection::unavailable(text, None)
}

pub(crate) fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    let version = context.protocol_version();
    version.is_some_and(|v| v.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}

fn implementation() -> Implementation {
    Implementation::new("checkpoint", env!("CARGO_PKG_VERSION")).with_title("Checkpoint")
}

fn wrap(reply: Reply, modern: bool) -> Result<CallToolResult, ErrorData> {
    let mut wrapped = result::wrap(reply).map_err(|error| {
        tracing::error!(%error, "a reply has no canonical form");
        ErrorData::internal_error("the result cannot be written", None)
    })?;
    wrapped.meta = own_name(modern);
    Ok(wrapped)
}

/// MCP 2026-07-28 wants the server to name itself in every result.
fn own_name(modern: bool) -> Option<MetaObject> {
    let value = modern.then(|| serde_json::to_value(implementation()).ok()).flatten()?;
    let mut meta = MetaObject::default();
    meta.insert("io.modelcontextprotocol/serverInfo".to_owned(), value);
    Some(meta)
}

fn record(span: &Span, tenant: &TenantId, spec: &Spec, reply: &Reply, took: Duration) {
    span.record("tenant", tenant.as_str());
    span.record("tool", spec.name);
    span.record("outcome", reply.outcome.as_str());
    if let Some(code) = reply.error {
        span.record("code", code.as_str());
    }
    telemetry::tool_call(tenant, spec.name, reply, took);
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_prompts()
            .enable_completions();
        ServerConfig::new(capabilities.build())
            .with_server_info(implementation())
            .with_instructions(tools::instructions())
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(&VERSIONS)
    }

    async fn discover(&self, _: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        let discovered = DiscoverResult::from_server_info(VERSIONS.clone(), self.get_info());
        Ok(discovered.with_ttl_ms(TTL_MS).with_cache_scope(CacheScope::Private))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        LISTED.iter().find(|tool| tool.name == name).cloned()
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        if request.is_some_and(|params| params.cursor.is_some()) {
            return Err(ErrorData::invalid_params("there is only one page", None));
        }
        let parts = context.extensions.get::<Parts>();
        let Some(visitor) = parts.and_then(|parts| parts.extensions.get::<Visitor>()) else {
            return Err(ErrorData::internal_error("the request lost its parts", None));
        };
        let all = TOOLS.iter().zip(LISTED.iter());
        let own = all.filter(|(spec, _)| visitor.lists(spec.needs)).map(|(_, tool)| tool.clone());
        let listed = ListToolsResult::with_all_items(own.collect());
        Ok(if is_modern(&context) {
            listed.with_ttl_ms(TTL_MS).with_cache_scope(CacheScope::Private)
        } else {
            listed
        })
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        self.library.list(request, &Reader::of(&context)?).await
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Library::templates(request, &Reader::of(&context)?)
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let mut read = self.library.read(&request, &Reader::of(&context)?).await?;
        read.meta = own_name(is_modern(&context));
        Ok(read.into())
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        self.library.prompts(request, &Reader::of(&context)?)
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let mut prompt = self.library.prompt(&request, &Reader::of(&context)?).await?;
        prompt.meta = own_name(is_modern(&context));
        Ok(prompt.into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        self.library.complete(&request, &Reader::of(&context)?).await
    }

    fn accepted_subscription_filter(
        &self,
        wished: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(subscriptions::accepted(wished))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        self.library.listen(&context).await
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let started = Instant::now();
        let Some(spec) = tools::spec(&request.name) else {
            return Err(ErrorData::invalid_params("unknown tool", None));
        };
        let parts = context.extensions.get::<Parts>();
        let sent = parts.and_then(|parts| parts.extensions.get::<Sent>());
        let (Some(Sent(sent)), Some(caller)) = (sent, parts.and_then(Caller::of)) else {
            return Err(ErrorData::internal_error("the request lost its parts", None));
        };
        let (span, principal) = (caller.span.clone(), Arc::clone(&caller.principal));
        let modern = is_modern(&context);
        let (call_meta, verdict) = meta::read(Some(&context.meta));
        let asks = (modern, asking::asks(&context.meta));
        let round = Round::begin(&self.engine, (&principal, spec, sent), &request, asks)?;
        let reply = self.call(spec, sent, call_meta, verdict, caller, round.given()).await;
        record(&span, &principal.tenant, spec, &reply, started.elapsed());
        if let Some(question) = round.back(&reply, own_name(modern))? {
            return Ok(question);
        }
        wrap(reply, modern).map(CallToolResponse::from)
    }
}
