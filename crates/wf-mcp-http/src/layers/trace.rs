//! Gives each request an id and a span, and tells its end: one log line, one count.
//!
//! Logged: id, route, client address, methods, tenant, tool, outcome, code, status, duration. Never: headers, paths as
//! sent, arguments.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use http::header::{CACHE_CONTROL, HeaderName, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderMap, Method, StatusCode};
use tracing::field::Empty;
use tracing::{Instrument, Span};

use super::{Around, Inner, proceed};
use crate::clients::Clients;
use crate::exchange::{Request, RequestId, RequestSpan, Response};
use crate::fault;
use crate::guard::Wire;
use crate::routes::Route;
use crate::telemetry;
use crate::traces::{Joining, TraceParent, Traces};

static X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Longest request id taken from a client, in characters.
const REQUEST_ID_CHARS_MAX: usize = 64;

/// Numbers the requests of this process.
#[derive(Debug, Clone)]
pub(crate) struct RequestIds {
    instance: Arc<str>,
    count: Arc<AtomicU64>,
}

impl RequestIds {
    pub(crate) fn new(instance: &str) -> Self {
        Self { instance: Arc::from(instance), count: Arc::default() }
    }

    pub(crate) fn next(&self) -> RequestId {
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        RequestId(format!("{}-{number:x}", self.instance).into())
    }

    /// The client's id if it is harmless in a log and a header, else a new one.
    fn of(&self, headers: &HeaderMap) -> RequestId {
        let sane = |text: &&str| {
            (1..=REQUEST_ID_CHARS_MAX).contains(&text.len())
                && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
        };
        let sent = headers.get(&X_REQUEST_ID).and_then(|v| v.to_str().ok());
        sent.filter(sane).map_or_else(|| self.next(), |text| RequestId(text.into()))
    }
}

/// The HTTP method, if it is one that HTTP has: any word may be sent as one.
fn known_verb(method: &Method) -> &str {
    match *method {
        Method::GET
        | Method::HEAD
        | Method::POST
        | Method::PUT
        | Method::PATCH
        | Method::DELETE
        | Method::OPTIONS => method.as_str(),
        _ => "other",
    }
}

/// Tells the end of a request when dropped: hyper drops the whole future when the client goes away.
#[derive(Debug)]
struct Ending {
    span: Span,
    route: Route,
    started: Instant,
    status: Option<StatusCode>,
    traces: Option<Arc<dyn Traces>>,
}

impl Drop for Ending {
    fn drop(&mut self) {
        let ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let parent = &self.span;
        match self.status.map(|status| status.as_u16()) {
            None => tracing::info!(parent: parent, ms, "the client left before the answer"),
            Some(status) if self.route.is_mcp() => {
                tracing::info!(parent: parent, status, ms, "answered");
            }
            Some(status) => tracing::debug!(parent: parent, status, ms, "answered"),
        }
        if let (Some(traces), Some(status)) = (&self.traces, self.status) {
            traces.answered(parent, status);
        }
        telemetry::request(self.route.name(), self.status);
    }
}

/// Traces everything inside.
#[derive(Debug, Clone)]
pub(crate) struct Trace {
    pub(crate) ids: RequestIds,
    pub(crate) clients: Clients,
    pub(crate) traces: Option<Arc<dyn Traces>>,
}

impl Around for Trace {
    async fn around<S: Inner>(self, mut request: Request, next: S) -> Response {
        let started = Instant::now();
        let id = self.ids.of(request.headers());
        let route = Route::of(request.uri().path());
        let wire = request.extensions().get::<Wire>();
        let client = wire.map(|w| self.clients.of(w.ends().peer.ip(), request.headers()));
        let header = TraceParent::of_headers(request.headers());
        let span = tracing::info_span!(
            "request",
            id = &*id.0,
            client = client.map(tracing::field::display),
            http = known_verb(request.method()),
            route = route.name(),
            trace_id = header.as_ref().map(TraceParent::trace_id_text),
            method = Empty,
            tenant = Empty,
            tool = Empty,
            outcome = Empty,
            code = Empty,
        );
        request.extensions_mut().insert(id.clone());
        request.extensions_mut().insert(RequestSpan(span.clone()));
        let joining = Joining::begin(self.traces.clone(), header, &span);
        request.extensions_mut().insert(joining);

        let (traces, status) = (self.traces, None);
        let mut ending = Ending { span: span.clone(), route, started, status, traces };
        let mut response = proceed(next, request).instrument(span).await;
        ending.status = Some(response.status());
        drop(ending);
        if let Ok(value) = HeaderValue::from_str(&id.0) {
            response.headers_mut().insert(X_REQUEST_ID.clone(), value);
        }
        if !response.headers().contains_key(CACHE_CONTROL) {
            fault::set(&mut response, CACHE_CONTROL, "no-store");
        }
        fault::set(&mut response, X_CONTENT_TYPE_OPTIONS, "nosniff");
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: &'static str, value: &[u8]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(name, HeaderValue::from_bytes(value).unwrap());
        headers
    }

    #[test]
    fn only_harmless_request_ids_are_taken_over() {
        let ids = RequestIds::new("a1");
        let of = |value: &[u8]| ids.of(&headers("x-request-id", value)).0.to_string();
        assert_eq!(of(b"abc-1.2_3"), "abc-1.2_3");
        assert_eq!(of(b""), "a1-0");
        assert_eq!(of(b"a b"), "a1-1");
        assert_eq!(of("é".as_bytes()), "a1-2");
        assert_eq!(of(&[b'x'; 65]), "a1-3");
    }
}
