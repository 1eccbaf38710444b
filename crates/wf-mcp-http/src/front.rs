//! What stands between HTTP and rmcp: reads and checks a `POST /mcp`, and mends what rmcp does not do as we want.
//!
//! rmcp answers the protocol; before it, this file: labels (406, 415), the body with its limit and deadline (408, 413),
//! the strict reading (-32700, -32600), the revision (-32022, -32020). After it: nothing but JSON leaves.

use std::convert::Infallible;
use std::error::Error;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderValue, StatusCode};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::Value;
use tokio::time::timeout_at;
use tower::Service;
use wf_core::engine::Engine;

use crate::config::HttpConfig;
use crate::exchange::{Deadlines, Request, RequestId, RequestSpan, Response};
use crate::fault::{Fault, RpcFault, RpcKind, empty};
use crate::handler::{Handler, Sent};
use crate::layers::Answering;
use crate::tools;
use crate::wire::envelope::{self, Message};
use crate::wire::headers;
use crate::wire::meta::PROTOCOL_VERSION;

type Mcp = StreamableHttpService<Handler, NeverSessionManager>;

/// The service of `/mcp`.
#[derive(Clone)]
pub(crate) struct Front {
    mcp: Arc<Mcp>,
    max_body_bytes: usize,
}

impl std::fmt::Debug for Front {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Front").finish_non_exhaustive()
    }
}

impl Front {
    pub(crate) fn new(engine: Arc<Engine>, config: &HttpConfig) -> Self {
        let handler = Handler::new(engine);
        let mut settings = StreamableHttpServerConfig::default()
            .with_legacy_session_mode(false)
            .with_json_response(true)
            .with_max_request_body_bytes(config.max_body_bytes);
        // Host and Origin are checked by our own layer, which knows more.
        settings.allowed_hosts = Vec::new();
        let sessions = Arc::new(NeverSessionManager::default());
        let mcp = StreamableHttpService::new(move || Ok(handler.clone()), sessions, settings);
        Self { mcp: Arc::new(mcp), max_body_bytes: config.max_body_bytes }
    }

    /// Ends what rmcp may still wait for.
    pub(crate) fn close(&self) {
        self.mcp.config.cancellation_token.cancel();
    }

    async fn answer(&self, request: Request) -> Result<Response, Fault> {
        let (mut head, body) = request.into_parts();
        headers::check_types(&head.headers)?;
        let bytes = self.body(&head, body).await?;
        let message = envelope::read(&bytes)?;
        let (id, in_body) = match &message {
            Message::Request(request) => {
                (Some(&request.id), request.meta().and_then(|meta| meta.get(PROTOCOL_VERSION)))
            }
            Message::Notification | Message::Response => (None, None),
        };
        // The handshake names its revision in its parameters; rmcp negotiates it.
        let handshake = matches!(&message, Message::Request(r) if r.method == "initialize");
        let version = if handshake {
            None
        } else {
            headers::version(&head.headers, id, in_body.and_then(Value::as_str))?
        };
        let body = match message {
            Message::Request(request) => self.prepare(&mut head, request, bytes)?,
            Message::Notification => bytes,
            Message::Response if version == Some(headers::MODERN) => {
                let text = "this revision has no responses from clients";
                return Err(RpcFault::new(None, RpcKind::InvalidRequest, text).into());
            }
            Message::Response => return Ok(empty(StatusCode::ACCEPTED)),
        };
        headers::normalise(&mut head.headers);
        head.headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
        let incident = head.extensions.get::<RequestId>().cloned();
        let response = self.mcp.handle(Whole::from_parts(head, Full::new(body))).await;
        mended(response, incident)
    }

    /// Hands the arguments of a tool to the handler beside the message, not in it.
    fn prepare(
        &self,
        head: &mut Parts,
        request: envelope::Request,
        bytes: Bytes,
    ) -> Result<Bytes, Fault> {
        let span = head.extensions.get::<RequestSpan>();
        if let Some(RequestSpan(span)) = span {
            // Only methods that MCP knows: the name comes from the client.
            span.record("method", known_method(&request.method));
        }
        if request.method == "initialize" {
            check_handshake(&request)?;
        }
        let Some(tool) = request.tool() else {
            return Ok(bytes);
        };
        if tools::spec(tool).is_none() {
            let shown: String = tool.chars().take(64).collect();
            let text = format!("unknown tool: {shown}; see tools/list");
            let fault = RpcFault::new(Some(&request.id), RpcKind::InvalidParams, text);
            return Err(fault.into());
        }
        let body = Bytes::from(request.to_bytes());
        head.extensions.insert(Sent(Arc::new(request.arguments)));
        Ok(body)
    }

    async fn body(&self, head: &Parts, body: Limited<Incoming>) -> Result<Bytes, Fault> {
        let collected = match head.extensions.get::<Deadlines>() {
            Some(deadlines) => timeout_at(deadlines.body_by, body.collect())
                .await
                .map_err(|_| Fault::BodyTimeout)?,
            None => body.collect().await,
        };
        match collected {
            Ok(collected) => Ok(collected.to_bytes()),
            Err(error) if is_too_large(error.as_ref()) => {
                Err(Fault::BodyTooLarge { limit: self.max_body_bytes })
            }
            Err(_) => Err(Fault::BodyBroken),
        }
    }
}

type Whole<B> = http::Request<B>;

fn is_too_large(error: &(dyn Error + Send + Sync + 'static)) -> bool {
    error.is::<LengthLimitError>()
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
        "logging/setLevel",
    ];
    KNOWN.iter().find(|known| **known == method).copied().unwrap_or("other")
}

/// rmcp answers a handshake that it cannot read as an unknown method.
fn check_handshake(request: &envelope::Request) -> Result<(), RpcFault> {
    let params = request.params.clone().unwrap_or_default();
    serde_json::from_value::<rmcp::model::InitializeRequestParams>(Value::Object(params))
        .map(drop)
        .map_err(|_| {
            let text =
                "initialize needs protocolVersion, capabilities and clientInfo {name, version}";
            RpcFault::new(Some(&request.id), RpcKind::InvalidParams, text)
        })
}

/// rmcp's own failures are plain text; clients get JSON.
fn mended(response: Response, incident: Option<RequestId>) -> Result<Response, Fault> {
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
        return Err(RpcFault::new(None, RpcKind::InvalidRequest, text).into());
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
