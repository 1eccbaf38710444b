//! Where spans belong: the traces of callers, as `wf_mcp_http::traces` reads them, and which spans are kept.

use std::str::FromStr as _;

use http::StatusCode;
use opentelemetry::trace::{
    Link, SpanContext, SpanId, SpanKind, Status, TraceContextExt as _, TraceFlags, TraceId,
    TraceState,
};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::trace::{Config, SamplingDecision, SamplingResult, ShouldSample};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use wf_mcp_http::{TraceParent, Traces};

/// Joins requests to the traces of their callers.
#[derive(Debug)]
pub(super) struct Joins;

fn context(parent: &TraceParent) -> SpanContext {
    let state = parent.state.as_deref().and_then(|state| TraceState::from_str(state).ok());
    SpanContext::new(
        TraceId::from_bytes(parent.trace_id.to_be_bytes()),
        SpanId::from_bytes(parent.parent_id.to_be_bytes()),
        TraceFlags::new(parent.flags) & TraceFlags::SAMPLED,
        true,
        state.unwrap_or_default(),
    )
}

/// The place of a span, as `traceparent` says it (Trace Context, section 3.2).
pub(super) fn traceparent(span: &Span) -> Option<String> {
    let context = span.context();
    let place = context.span().span_context().clone();
    place.is_valid().then(|| {
        format!("00-{}-{}-{:02x}", place.trace_id(), place.span_id(), place.trace_flags().to_u8())
    })
}

impl Traces for Joins {
    fn join(&self, span: &Span, parent: &TraceParent) {
        // Refused for a span that is begun or not collected: then it stays where it is.
        let _ = span.set_parent(Context::new().with_remote_span_context(context(parent)));
    }

    fn link(&self, span: &Span, other: &TraceParent) {
        span.add_link(context(other));
    }

    fn answered(&self, span: &Span, status: StatusCode) {
        span.set_attribute("http.response.status_code", i64::from(status.as_u16()));
        if status.is_server_error() {
            span.set_status(Status::error(""));
        }
    }
}

/// The sampler of the environment (by default: as the caller decided, else all), but for a batch: that has no caller, and
/// is kept where one of those it served is.
#[derive(Debug, Clone)]
pub(super) struct Linked(Box<dyn ShouldSample>);

impl Linked {
    pub(super) fn configured() -> Self {
        Self(Config::default().sampler)
    }
}

impl ShouldSample for Linked {
    fn should_sample(
        &self,
        parent: Option<&Context>,
        trace_id: TraceId,
        name: &str,
        kind: &SpanKind,
        attributes: &[KeyValue],
        links: &[Link],
    ) -> SamplingResult {
        let has_parent = parent.is_some_and(|cx| cx.span().span_context().is_valid());
        if has_parent || links.is_empty() {
            return self.0.should_sample(parent, trace_id, name, kind, attributes, links);
        }
        let kept = links.iter().any(|link| link.span_context.is_sampled());
        SamplingResult {
            decision: if kept { SamplingDecision::RecordAndSample } else { SamplingDecision::Drop },
            attributes: Vec::new(),
            trace_state: TraceState::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use opentelemetry::trace::TracerProvider as _;
    use opentelemetry_sdk::trace::{Sampler, SdkTracerProvider};
    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

    fn parent(flags: u8, state: Option<&str>) -> TraceParent {
        TraceParent { trace_id: 7, parent_id: 9, flags, state: state.map(str::to_owned) }
    }

    #[test]
    fn a_callers_place_is_taken_over_and_what_is_no_state_is_not() {
        let taken = context(&parent(1, Some("a=1")));
        assert_eq!(taken.trace_id().to_string(), format!("{:032x}", 7));
        assert_eq!(taken.span_id().to_string(), format!("{:016x}", 9));
        assert!(taken.is_remote() && taken.is_sampled());
        assert_eq!(taken.trace_state().header(), "a=1");
        assert_eq!(context(&parent(0, Some("no state"))).trace_state().header(), "");
        assert!(!context(&parent(0xfe, None)).is_sampled());
    }

    #[test]
    fn a_span_that_is_collected_has_a_traceparent_that_can_be_read() {
        assert_eq!(traceparent(&tracing::info_span!("nobody looks")), None);
        let provider = SdkTracerProvider::builder().build();
        let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("test"));
        let subscriber = tracing_subscriber::registry().with(layer);
        tracing::subscriber::with_default(subscriber, || {
            let said = traceparent(&tracing::info_span!("somebody looks")).unwrap();
            let read = TraceParent::parse(&said).unwrap();
            assert_eq!((said.len(), read.flags), (55, 1), "{said}");
        });
    }

    #[test]
    fn a_batch_is_kept_where_one_it_served_is() {
        let sampler = Linked(Box::new(Sampler::AlwaysOff));
        let decide = |links: &[Link]| {
            sampler.should_sample(None, TraceId::INVALID, "batch", &SpanKind::Internal, &[], links)
        };
        let link = |flags| Link::with_context(context(&parent(flags, None)));
        assert_eq!(decide(&[]).decision, SamplingDecision::Drop);
        assert_eq!(decide(&[link(0), link(0)]).decision, SamplingDecision::Drop);
        assert_eq!(decide(&[link(0), link(1)]).decision, SamplingDecision::RecordAndSample);
    }
}
