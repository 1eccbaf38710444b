//! Paths. Each route answers; whether a request gets here is the business of the layers.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use http::header::{ALLOW, HeaderValue};
use http::{Method, StatusCode};
use serde_json::json;
use tower::Service;

use crate::exchange::{Request, Response};
use crate::fault::{Fault, answer, empty, json_response};
use crate::layers::{Answering, Inner};
use crate::probes::Probes;

/// Everything there is to ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Route {
    Mcp,
    Health,
    Ready,
    Metrics,
    Unknown,
}

impl Route {
    pub(crate) fn of(path: &str) -> Self {
        match path {
            "/mcp" => Self::Mcp,
            "/healthz" => Self::Health,
            "/readyz" => Self::Ready,
            "/metrics" => Self::Metrics,
            _ => Self::Unknown,
        }
    }

    /// The route in logs and metrics: a path as sent may say too much.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Mcp => "/mcp",
            Self::Health => "/healthz",
            Self::Ready => "/readyz",
            Self::Metrics => "/metrics",
            Self::Unknown => "unknown",
        }
    }

    const fn allow(self) -> &'static str {
        match self {
            Self::Mcp => "POST, OPTIONS",
            Self::Health | Self::Ready | Self::Metrics | Self::Unknown => "GET, HEAD, OPTIONS",
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
    /// `/mcp`, where this listener has it.
    pub(crate) mcp: Option<M>,
    /// `/readyz` and `/metrics` are here.
    pub(crate) admin: bool,
}

impl<M> Routes<M> {
    fn has(&self, route: Route) -> bool {
        match route {
            Route::Mcp => self.mcp.is_some(),
            Route::Health => true,
            Route::Ready | Route::Metrics => self.admin,
            Route::Unknown => false,
        }
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
            Route::Mcp | Route::Unknown => Fault::NotFound.into_response(),
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
            (Some(mcp), Route::Mcp) if method == Method::POST => mcp.call(request),
            (_, Route::Health | Route::Ready | Route::Metrics)
                if method == Method::GET || method == Method::HEAD =>
            {
                let answers = self.answers.clone();
                Box::pin(async move { Ok(answers.answer(route).await) })
            }
            _ => now(Fault::MethodNotAllowed { allow }.into_response()),
        }
    }
}
