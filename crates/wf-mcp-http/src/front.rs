//! What stands between HTTP and rmcp: reads and checks a `POST /mcp`, and mends what rmcp does not do as we want.
//!
//! rmcp answers the protocol; before it, this file: labels (406, 415), the body with its limit and deadline (408, 413),
//! the strict reading (-32700, -32600), what the caller may ask (401, 403), the revision (-32022, -32020). After it: nothing but JSON leaves.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::request::Parts;
use http::{Extensions, HeaderMap, HeaderValue, StatusCode};
use http_body_util::Full;
use rmcp::model::InitializeRequestParams;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::Value;
use tokio::time::Instant;
use tower::Service;

use crate::access::Visitor;
use crate::asking;
use crate::body;
use crate::config::HttpConfig;
use crate::exchange::{Deadlines, Request, RequestId, RequestSpan, Response};
use crate::fault::{Denied, Fault, RpcFault, RpcKind, empty};
use crate::handler::Sent;
use crate::joined::Joined;
use crate::layers::Answering;
use crate::resources;
use crate::subscriptions;
use crate::traces;
use crate::wire::envelope::{self, Message};
use crate::wire::headers;
use crate::wire::meta::PROTOCOL_VERSION;
use crate::wire::params;

type Mcp = StreamableHttpService<Joined, NeverSessionManager>;

/// The service of `/mcp`.
#[derive(Clone)]
pub(crate) struct Front {
    mcp: Arc<Mcp>,
    served: Joined,
    max_body_bytes: usize,
}

impl std::fmt::Debug for Front {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Front").finish_non_exhaustive()
    }
}

impl Front {
    pub(crate) fn new(served: Joined, config: &HttpConfig) -> Self {
        let mut settings = StreamableHttpServerConfig::default()
            .with_legacy_session_mode(false)
            .with_json_response(true)
            .with_max_request_body_bytes(config.max_body_bytes);
        // Host and Origin are checked by our own layer, which knows more.
        settings.allowed_hosts = Vec::new();
        let sessions = Arc::new(NeverSessionManager::default());
        let each = served.clone();
        let mcp = StreamableHttpService::new(move || Ok(each.clone()), sessions, settings);
        Self { mcp: Arc::new(mcp), served, max_body_bytes: config.max_body_bytes }
    }

    /// Lets go everybody who listens for changes: nobody else would end these answers.
    pub(crate) fn stop_listening(&self) {
        self.served.stop_listening();
    }

    /// Ends what rmcp may still wait for.
    pub(crate) fn close(&self) {
        self.mcp.config.cancellation_token.cancel();
    }

    async fn answer(&self, request: Request) -> Result<Response, Fault> {
        let (head, body) = request.into_parts();
        headers::check_types(&head.headers)?;
        let deadline = head.extensions.get::<Deadlines>().map(|d| d.body_by);
        let deadline = deadline.unwrap_or_else(Instant::now);
        let bytes = body::collect(body, self.max_body_bytes, deadline).await?;
        match envelope::read(&bytes)? {
            Message::Request(request) => self.request(head, request, bytes).await,
            Message::Notification => {
                headers::version(&head.headers, None, None)?;
                check_size(&bytes, None)?;
                self.pass(head, bytes, None).await
            }
            Message::Response => {
                let version = headers::version(&head.headers, None, None)?;
                if version == Some(headers::MODERN) {
                    let text = "this revision has no responses from clients";
                    return Err(RpcFault::new(None, RpcKind::InvalidRequest, text).into());
                }
                Ok(empty(StatusCode::ACCEPTED))
            }
        }
    }

    async fn request(
        &self,
        mut head: Parts,
        request: envelope::Request,
        bytes: Bytes,
    ) -> Result<Response, Fault> {
        admit(&self.served, &head.extensions, &request)?;
        let id = request.id.clone();
        // The handshake names its revision in its parameters, and rmcp negotiates it.
        if request.method == INITIALIZE {
            check_handshake(Some(&head.headers), &request)?;
        } else {
            let in_body = request.meta().and_then(|meta| meta.get(PROTOCOL_VERSION));
            headers::version(&head.headers, Some(&id), in_body.and_then(Value::as_str))?;
        }
        let message = match prepare(&self.served, &mut head.extensions, request)? {
            Some(message) => message,
            None => {
                check_size(&bytes, Some(&id))?;
                bytes
            }
        };
        self.pass(head, message, Some(id)).await
    }

    /// Lets rmcp answer.
    async fn pass(
        &self,
        mut head: Parts,
        message: Bytes,
        id: Option<Value>,
    ) -> Result<Response, Fault> {
        headers::normalise(&mut head.headers);
        head.headers.insert(CONTENT_LENGTH, HeaderValue::from(message.len()));
        let incident = head.extensions.get::<RequestId>().cloned();
        let request = http::Request::from_parts(head, Full::new(message));
        mended(self.mcp.handle(request).await, id.as_ref(), incident)
    }
}

/// The method that begins a connection, in the revisions that have such a thing.
pub(crate) const INITIALIZE: &str = "initialize";

/// Longest message without the arguments of a tool, in bytes. rmcp keeps it, parsed, for as long as the call takes, and
/// parsed JSON is many times its size; accepted arguments have limits of their own.
const MESSAGE_BYTES_MAX: usize = 64 * 1024;

/// Lets in who may ask this, and says in the log what is asked. The same however a request came.
pub(crate) fn admit(
    served: &Joined,
    extensions: &Extensions,
    request: &envelope::Request,
) -> Result<(), Denied> {
    if let Some(visitor) = extensions.get::<Visitor>() {
        let needs = match request.tool() {
            Some(tool) => served.needs_of(tool),
            None => resources::needs(&request.method),
        };
        visitor.admit(request, needs)?;
    }
    if let Some(RequestSpan(span)) = extensions.get::<RequestSpan>() {
        // Only methods that MCP knows: the name comes from the client.
        span.record("method", known_method(&request.method));
    }
    traces::go_on(extensions, request.meta());
    Ok(())
}

/// Checks what rmcp would not, and puts the arguments of a tool of ours beside the message, for the handler. Answers the
/// message without them, where there are any. The same however a request came.
///
/// The arguments of a guest's tool stay in the message, where its handler looks for them: read strictly and written again.
pub(crate) fn prepare(
    served: &Joined,
    extensions: &mut Extensions,
    mut request: envelope::Request,
) -> Result<Option<Bytes>, RpcFault> {
    check_params(&request)?;
    if request.method == subscriptions::LISTEN {
        served.begin_listening(extensions, &request)?;
    }
    let Some(tool) = request.tool() else {
        return Ok(None);
    };
    let is_own = served.own_tool(tool).is_some();
    if !is_own && served.needs_of(tool).is_none() {
        let shown: String = tool.chars().take(64).collect();
        let text = format!("unknown tool: {shown}; the tools are {}", served.known());
        return Err(RpcFault::new(Some(&request.id), RpcKind::InvalidParams, text));
    }
    let mut message = request.to_bytes();
    check_size(&message, Some(&request.id))?;
    if !is_own {
        request.restore();
        message = request.to_bytes();
    }
    extensions.insert(Sent(Arc::new(request.arguments)));
    Ok(Some(message.into()))
}

/// Refuses what would be too much to keep while it is answered.
pub(crate) fn check_size(message: &[u8], id: Option<&Value>) -> Result<(), RpcFault> {
    if message.len() <= MESSAGE_BYTES_MAX {
        return Ok(());
    }
    let text = format!("at most {MESSAGE_BYTES_MAX} bytes besides a tool's arguments");
    Err(RpcFault::new(id, RpcKind::InvalidRequest, text))
}

/// The method for the log, if it is one of MCP.
fn known_method(method: &str) -> &'static str {
    const KNOWN: &[&str] = &[
        "initialize",
        "server/discover",
        "ping",
        "tools/list",
        "tools/call",
        "resources/list",
        "resources/templates/list",
        "resources/read",
        "prompts/list",
        "prompts/get",
        "completion/complete",
        "subscriptions/listen",
        "logging/setLevel",
    ];
    KNOWN.iter().find(|known| **known == method).copied().unwrap_or("other")
}

/// rmcp takes a request whose parameters it cannot read for one of an unknown method.
fn check_params(request: &envelope::Request) -> Result<(), RpcFault> {
    let param = |name: &str| request.params.as_ref().and_then(|params| params.get(name));
    let problem = if param("_meta").is_some_and(|meta| !meta.is_object()) {
        "params._meta must be an object"
    } else if let Some(problem) = params::check(&request.method, request.params.as_ref()) {
        problem
    } else if let Some(problem) = request.params.as_ref().and_then(asking::check_params) {
        problem
    } else {
        return Ok(());
    };
    Err(RpcFault::new(Some(&request.id), RpcKind::InvalidParams, problem))
}

/// A handshake must be one. What calls itself so in the revision that has none is an unknown method; over lines there is
/// no header that names a revision.
pub(crate) fn check_handshake(
    headers: Option<&HeaderMap>,
    request: &envelope::Request,
) -> Result<(), RpcFault> {
    let params = Value::Object(request.params.clone().unwrap_or_default());
    if serde_json::from_value::<InitializeRequestParams>(params).is_ok() {
        return Ok(());
    }
    let modern =
        headers.is_some_and(|map| headers::version(map, None, None) == Ok(Some(headers::MODERN)));
    let (kind, text) = if modern {
        (RpcKind::MethodNotFound, "this revision has no handshake; see server/discover")
    } else {
        let text = "initialize needs protocolVersion, capabilities and clientInfo {name, version}";
        (RpcKind::InvalidParams, text)
    };
    Err(RpcFault::new(Some(&request.id), kind, text))
}

/// rmcp's own failures are plain text; clients get JSON.
fn mended(
    response: Response,
    id: Option<&Value>,
    incident: Option<RequestId>,
) -> Result<Response, Fault> {
    let status = response.status();
    let json = response
        .headers()
        .get(CONTENT_TYPE)
        .is_some_and(|value| value.as_bytes().starts_with(b"application/json"));
    if json || status.is_success() {
        return Ok(response);
    }
    if status.is_client_error() {
        let text = "the message does not fit its headers";
        return Err(RpcFault::new(id, RpcKind::InvalidRequest, text).into());
    }
    let incident = incident.map_or_else(String::new, |RequestId(id)| id.to_string());
    tracing::error!(incident, status = status.as_u16(), "the protocol layer failed");
    Err(Fault::Internal { incident })
}

impl Service<Request> for Front {
    type Response = Response;
    type Error = Infallible;
    type Future = Answering;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Answering {
        let front = self.clone();
        Box::pin(async move {
            let answer = front.answer(request).await;
            Ok(answer.unwrap_or_else(Fault::into_response))
        })
    }
}
