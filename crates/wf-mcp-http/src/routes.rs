//! Paths. Each route answers; whether a request gets here is the business of the layers.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use http::header::{ALLOW, CACHE_CONTROL, HeaderValue};
use http::{Method, StatusCode};
use serde_json::json;
use tower::Service;
use wf_core::engine::Engine;

use crate::ack;
use crate::clients::Clients;
use crate::entrance::Entrances;
use crate::exchange::{Request, Response};
use crate::fault::{Fault, answer, empty, json_response, set};
use crate::layers::{Answering, Inner};
use crate::pages::{self, Pages};
use crate::probes::Probes;

/// Where MCP is.
pub(crate) const MCP: &str = "/mcp";
/// Where MCP is with challenges, beside the headerless one.
pub(crate) const STANDARD: &str = "/mcp-std";
/// Where a protected resource tells of itself (RFC 9728 section 3); its path may follow.
pub(crate) const METADATA: &str = "/.well-known/oauth-protected-resource";
/// Where an authorization server tells of itself (RFC 8414 section 3).
const SERVER_METADATA: &str = "/.well-known/oauth-authorization-server";
/// Metadata changes with the configuration only; so long may a change take to be seen.
const METADATA_CACHE: &str = "public, max-age=300";

/// Everything there is to ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Route {
    Mcp,
    /// `/mcp` again, with challenges.
    Standard,
    /// What `/mcp` tells of itself (RFC 9728).
    Metadata,
    /// What `/mcp-std` tells of itself.
    StandardMetadata,
    /// What the authorization server tells of itself (RFC 8414), mirrored.
    ServerMetadata,
    /// The page of a link in an escalation; the token follows.
    Ack,
    Health,
    Ready,
    Metrics,
    /// A page of a console.
    Page,
    Unknown,
}

impl Route {
    pub(crate) fn of(path: &str) -> Self {
        match path {
            MCP => Self::Mcp,
            STANDARD => Self::Standard,
            METADATA | "/.well-known/oauth-protected-resource/mcp" => Self::Metadata,
            "/.well-known/oauth-protected-resource/mcp-std" => Self::StandardMetadata,
            SERVER_METADATA => Self::ServerMetadata,
            _ if path.starts_with(ack::PREFIX) => Self::Ack,
            "/healthz" => Self::Health,
            "/readyz" => Self::Ready,
            "/metrics" => Self::Metrics,
            _ if pages::is_page(path) => Self::Page,
            _ => Self::Unknown,
        }
    }

    /// The route in logs and metrics: a path as sent may say too much.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Mcp => MCP,
            Self::Standard => STANDARD,
            Self::Metadata | Self::StandardMetadata => METADATA,
            Self::ServerMetadata => SERVER_METADATA,
            Self::Ack => "/ack",
            Self::Health => "/healthz",
            Self::Ready => "/readyz",
            Self::Metrics => "/metrics",
            Self::Page => pages::PREFIX,
            Self::Unknown => "unknown",
        }
    }

    const fn allow(self) -> &'static str {
        match self {
            Self::Mcp | Self::Standard => "POST, OPTIONS",
            Self::Ack | Self::Page => "GET, HEAD, POST, OPTIONS",
            Self::Metadata
            | Self::StandardMetadata
            | Self::ServerMetadata
            | Self::Health
            | Self::Ready
            | Self::Metrics
            | Self::Unknown => "GET, HEAD, OPTIONS",
        }
    }

    /// MCP, by whichever path.
    pub(crate) const fn is_mcp(self) -> bool {
        matches!(self, Self::Mcp | Self::Standard)
    }

    /// Any page may read it: it says nothing that is not public, and clients in a browser begin with it.
    pub(crate) const fn is_public(self) -> bool {
        match self {
            Self::Metadata | Self::StandardMetadata | Self::ServerMetadata => true,
            Self::Mcp
            | Self::Standard
            | Self::Ack
            | Self::Health
            | Self::Ready
            | Self::Metrics
            | Self::Page
            | Self::Unknown => false,
        }
    }
}

/// What the routes answer from.
#[derive(Debug, Clone)]
pub(crate) struct Answers {
    pub(crate) probes: Arc<dyn Probes>,
    /// The process is shutting down: not ready, whatever the probes say.
    pub(crate) draining: Arc<AtomicBool>,
}

/// The routes of one listener.
#[derive(Debug, Clone)]
pub(crate) struct Routes<M> {
    pub(crate) answers: Answers,
    pub(crate) entrances: Entrances,
    /// Who checks the links of escalations, where this listener has `/mcp`.
    pub(crate) engine: Option<Arc<Engine>>,
    /// `/mcp`, where this listener has it.
    pub(crate) mcp: Option<M>,
    /// `/readyz` and `/metrics` are here.
    pub(crate) admin: bool,
    /// The pages of a console, where this listener has them, and who their clients are.
    pub(crate) pages: Option<(Arc<dyn Pages>, Clients)>,
}

impl<M> Routes<M> {
    fn has(&self, route: Route) -> bool {
        match route {
            Route::Mcp | Route::Standard => {
                self.mcp.is_some() && self.entrances.at(route).is_some()
            }
            Route::Metadata | Route::StandardMetadata | Route::ServerMetadata => {
                self.mcp.is_some() && self.entrances.document(route).is_some()
            }
            Route::Ack => self.engine.is_some(),
            Route::Health => true,
            Route::Ready | Route::Metrics => self.admin,
            Route::Page => self.pages.is_some(),
            Route::Unknown => false,
        }
    }

    fn metadata(&self, route: Route) -> Response {
        let Some(document) = self.entrances.document(route) else {
            return Fault::NotFound.into_response();
        };
        let mut response = answer(StatusCode::OK, "application/json", document);
        set(&mut response, CACHE_CONTROL, METADATA_CACHE);
        response
    }
}

impl Answers {
    async fn answer(self, route: Route) -> Response {
        match route {
            Route::Health => json_response(StatusCode::OK, &json!({ "status": "ok" })),
            Route::Ready => self.ready().await,
            Route::Metrics => answer(
                StatusCode::OK,
                "text/plain; version=0.0.4; charset=utf-8",
                self.probes.metrics(),
            ),
            Route::Mcp
            | Route::Standard
            | Route::Metadata
            | Route::StandardMetadata
            | Route::ServerMetadata
            | Route::Ack
            | Route::Page
            | Route::Unknown => Fault::NotFound.into_response(),
        }
    }

    async fn ready(self) -> Response {
        let verdict = if self.draining.load(Ordering::Acquire) {
            Err("shutting down".to_owned())
        } else {
            self.probes.ready().await
        };
        match verdict {
            Ok(()) => json_response(StatusCode::OK, &json!({ "status": "ready" })),
            Err(reason) => Fault::NotReady { reason }.into_response(),
        }
    }
}

impl<M: Inner> Service<Request> for Routes<M> {
    type Response = Response;
    type Error = Infallible;
    type Future = Answering;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Answering {
        let route = Route::of(request.uri().path());
        let allow = route.allow();
        let now = |response: Response| -> Answering { Box::pin(std::future::ready(Ok(response))) };
        if !self.has(route) {
            return now(Fault::NotFound.into_response());
        }
        let method = request.method();
        if method == Method::OPTIONS {
            let mut response = empty(StatusCode::NO_CONTENT);
            let value = HeaderValue::from_static(allow);
            response.headers_mut().insert(ALLOW, value);
            return now(response);
        }
        match (&mut self.mcp, route) {
            (Some(mcp), Route::Mcp | Route::Standard) if method == Method::POST => {
                mcp.call(request)
            }
            (_, Route::Ack) if [Method::GET, Method::HEAD, Method::POST].contains(method) => {
                let Some(engine) = self.engine.clone() else {
                    return now(Fault::NotFound.into_response());
                };
                let (method, path) = (method.clone(), request.uri().path().to_owned());
                Box::pin(async move { Ok(ack::page(engine, method, path).await) })
            }
            (_, Route::Page) => {
                let Some((pages, clients)) = self.pages.clone() else {
                    return now(Fault::NotFound.into_response());
                };
                Box::pin(async move {
                    let answer = pages::answer(pages, clients, request).await;
                    Ok(answer.unwrap_or_else(Fault::into_response))
                })
            }
            (_, Route::Health | Route::Ready | Route::Metrics)
                if method == Method::GET || method == Method::HEAD =>
            {
                let answers = self.answers.clone();
                Box::pin(async move { Ok(answers.answer(route).await) })
            }
            (_, Route::Metadata | Route::StandardMetadata | Route::ServerMetadata)
                if method == Method::GET || method == Method::HEAD =>
            {
                now(self.metadata(route))
            }
            _ => now(Fault::MethodNotAllowed { allow }.into_response()),
        }
    }
}
