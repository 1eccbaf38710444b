//! What travels along with one request: its id, its span, its deadlines, its place among the requests in flight.
//!
//! The layers put these into the extensions of the request; `front` and `handler` take them out.

use std::sync::Arc;
use std::time::Duration;

use http_body_util::combinators::BoxBody;
use hyper::body::Incoming;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;
use tracing::Span;

use crate::telemetry;

/// A request on its way in.
pub(crate) type Request = http::Request<Incoming>;
/// The body of every answer: rmcp's.
pub(crate) type Body = BoxBody<bytes::Bytes, std::convert::Infallible>;
/// An answer on its way out.
pub(crate) type Response = http::Response<Body>;

/// Names one request in logs, in the answer's `x-request-id` and as the incident id of a bug.
#[derive(Debug, Clone)]
pub(crate) struct RequestId(pub(crate) Arc<str>);

/// The span of one request; inner layers record into it across tasks.
#[derive(Debug, Clone)]
pub(crate) struct RequestSpan(pub(crate) Span);

/// Until when things must have happened.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadlines {
    /// The body must have arrived.
    pub(crate) body_by: Instant,
    /// The caller must have an answer.
    pub(crate) answer_by: Instant,
}

impl Deadlines {
    pub(crate) fn from_now(body: Duration, answer: Duration) -> Self {
        let now = Instant::now();
        Self { body_by: now + body, answer_by: now + answer }
    }
}

/// A place among the requests in flight. It is free again when the last clone is gone, so a call that outlives its
/// connection keeps its place.
#[derive(Debug, Clone)]
pub(crate) struct InFlight(#[expect(dead_code, reason = "held for its drop")] Arc<Place>);

#[derive(Debug)]
struct Place {
    _permit: OwnedSemaphorePermit,
}

impl InFlight {
    pub(crate) fn new(permit: OwnedSemaphorePermit) -> Self {
        telemetry::in_flight(1.0);
        Self(Arc::new(Place { _permit: permit }))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        telemetry::in_flight(-1.0);
    }
}
